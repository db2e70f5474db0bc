// What changes when one checkpoint replaces another, as far as files can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/base/error.h"
#include "cupel/checkpoint/checkpoint_view.h"
#include "cupel/checkpoint/config_diff.h"
#include "cupel/checkpoint/weight_diff.h"

namespace cupel {

enum class WeightStatus {
  kBitEqual,     // same form, same bytes
  kValueEqual,   // other bytes, the same dequantised values
  kChanged,      // other values
  kReshaped,     // elements of another shape
  kAdded,        // only in NEW
  kRemoved,      // only in OLD
  kRenamed,      // the same bytes under another name
  kNotCompared,  // no values on one side
};
std::string_view status_name(WeightStatus status);

// One weight, its scale included.
struct WeightChange {
  std::string name;
  std::string renamed_to;  // of kRenamed
  std::string role;
  bool target = true;
  WeightStatus status = WeightStatus::kNotCompared;
  std::string old_form;  // "FP4 1x32", "FP8 128x128", or a dtype; empty where absent
  std::string new_form;
  std::vector<std::int64_t> old_shape;  // as stored
  std::vector<std::int64_t> new_shape;
  bool retyped = false;   // both there, dtype or scales in another form
  bool new_math = false;  // retyped so that activations are quantised otherwise (spec section 2.7)
  std::uint64_t bytes = 0;  // of NEW, of OLD where removed
  WeightHash old_hash;
  WeightHash new_hash;
  WeightDiff diff;  // of kValueEqual and kChanged
};

// From grave to harmless; findings come in this order.
enum class Severity {
  kFault,      // a load of NEW would refuse it
  kStructure,  // another network or other prompts
  kDamage,     // a pattern of values that training does not produce
  kSuspect,    // values that stand out
  kDrift,      // values moved
  kForm,       // stored otherwise, same values
  kDrafter,    // reaches the drafter only
  kNote,       // reaches nothing
};
std::string_view severity_name(Severity severity);

struct Finding {
  Severity severity = Severity::kNote;
  std::string what;      // one line
  std::string evidence;  // figures, may be empty
  std::vector<std::string> tensors;
  double weight = 0;  // rank within the severity, largest first
  bool target = true;
};

// Sums over the weights of one role.
struct RoleSummary {
  std::string role;
  bool target = true;
  std::int64_t weights = 0;
  std::int64_t bit_equal = 0;
  std::int64_t value_equal = 0;
  std::int64_t changed = 0;
  std::int64_t other = 0;    // added, removed, reshaped, renamed, not compared
  double median_change = 0;  // relative, over the changed ones
  double max_change = 0;
  std::string max_name;
  double min_cosine = 1;
};

// Filled by a layer that can run the models (preflight/numerics.h).
struct NumericsSection {
  std::string text;
  std::string json;
};

struct PreflightSide {
  std::string path;
  CheckpointView::Kind kind = CheckpointView::Kind::kFull;
  std::int64_t shards = 0;
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::int64_t drafter_tensors = 0;  // mtp.*: what a load of the target alone skips
  std::uint64_t drafter_bytes = 0;
  std::vector<Fault> faults;
  std::optional<ModelConfig> config;
  std::optional<ConfigFacts> facts;
};

enum class Verdict {
  kIdentical,   // nothing that reaches the target differs
  kInert,       // same structure, numerics moved
  kUndecided,   // no difference seen, but not everything was compared
  kStructural,  // another structure
};

struct PreflightReport {
  PreflightSide before;
  PreflightSide after;
  std::vector<ConfigChange> config;
  std::optional<bool> same_main_ratios;  // nothing if a configuration is missing
  std::vector<WeightChange> weights;     // by ascending name; those of NEW and those removed
  std::vector<RoleSummary> roles;        // most changed first
  std::vector<Finding> findings;         // gravest first
  std::vector<std::string> not_compared;
  std::optional<NumericsSection> numerics;
  Verdict verdict = Verdict::kUndecided;
  std::string verdict_text;  // "structurally inert, numerics moved: …"
  double seconds = 0;        // of reading and comparing values
  std::uint64_t bytes_read = 0;
};

struct PreflightOptions {
  bool headers_only = false;
  int threads = 0;  // 0: one per hardware thread
  // Bytes done and in all; called from one thread at a time.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

// Throws InputError if one of the paths holds nothing to look at. Streams through the files; memory
// does not grow with their size beyond a record a tensor.
PreflightReport run_preflight(const std::filesystem::path& before,
                              const std::filesystem::path& after, const PreflightOptions& options);

// Fills roles, findings, verdict from the rest; for run_preflight.
void judge_preflight(PreflightReport& report, const CheckpointView& before,
                     const CheckpointView& after);

// identical 0, structural change 1, inert or undecided 2.
ExitCode exit_code(Verdict verdict);

struct PreflightReportOptions {
  int top = 20;  // rows of each table
  std::vector<double> gpu_gib = {80, 141, 192};
};
std::string preflight_text(const PreflightReport& report, const PreflightReportOptions& options);
// Everything: every weight that is not bit-equal, every role and finding.
std::string preflight_json(const PreflightReport& report, const PreflightReportOptions& options);

}  // namespace cupel
