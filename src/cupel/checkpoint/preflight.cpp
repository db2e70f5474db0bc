#include "cupel/checkpoint/preflight.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/weight_rows.h"

namespace cupel {
namespace {

struct Pair {
  const ViewedWeight* before = nullptr;
  const ViewedWeight* after = nullptr;
};

// Both lists ascend by name.
std::vector<Pair> pair_weights(const CheckpointView& before, const CheckpointView& after) {
  std::vector<Pair> pairs;
  auto a = before.weights().begin();
  auto b = after.weights().begin();
  while (a != before.weights().end() || b != after.weights().end()) {
    const bool only_a =
        b == after.weights().end() || (a != before.weights().end() && a->name() < b->name());
    const bool only_b =
        a == before.weights().end() || (b != after.weights().end() && b->name() < a->name());
    const ViewedWeight& any = only_b ? *b : *a;
    Pair pair;
    if (!only_b) pair.before = &*a++;
    if (!only_a) pair.after = &*b++;
    // In a shard that could not be read: neither added nor removed.
    if ((only_a && after.unreadable(any.name())) || (only_b && before.unreadable(any.name()))) {
      continue;
    }
    pairs.push_back(pair);
  }
  return pairs;
}

bool same_shape(const ViewedWeight& a, const ViewedWeight& b) {
  return a.tensor->shape == b.tensor->shape;
}

bool same_form(const ViewedWeight& a, const ViewedWeight& b) {
  if (a.tensor->dtype != b.tensor->dtype || (a.scale == nullptr) != (b.scale == nullptr)) {
    return false;
  }
  return a.scale == nullptr || a.scale->dtype == b.scale->dtype;
}

WeightChange describe(const Pair& pair) {
  WeightChange change;
  const ViewedWeight& main = pair.after != nullptr ? *pair.after : *pair.before;
  change.name = main.name();
  change.role = main.role;
  change.target = main.target;
  change.bytes = main.bytes();
  if (pair.before != nullptr) {
    change.old_form = form_name(*pair.before->tensor, pair.before->scale);
    change.old_shape = pair.before->tensor->shape;
    if (change.role == "unknown") change.role = pair.before->role;
  }
  if (pair.after != nullptr) {
    change.new_form = form_name(*pair.after->tensor, pair.after->scale);
    change.new_shape = pair.after->tensor->shape;
  }
  if (pair.before == nullptr) {
    change.status = WeightStatus::kAdded;
  } else if (pair.after == nullptr) {
    change.status = WeightStatus::kRemoved;
  } else {
    change.retyped = !same_form(*pair.before, *pair.after);
    const WeightRows a(*pair.before->tensor, nullptr);
    const WeightRows b(*pair.after->tensor, nullptr);
    if (a.rows() != b.rows() || a.columns() != b.columns()) {
      change.status = WeightStatus::kReshaped;
    }
    // FP8 wo_a runs as bf16 anyway (spec section 2.6); of experts the form sets the group size of
    // the activations.
    const bool expert = change.role.find("routed expert") != std::string::npos;
    change.new_math = expert && pair.before->tensor->dtype != pair.after->tensor->dtype;
  }
  return change;
}

void compare(const Pair& pair, WeightChange& change) {
  if (pair.before == nullptr || pair.after == nullptr) {
    // The hash finds it under another name.
    if (pair.before != nullptr) change.old_hash = hash_weight(*pair.before);
    if (pair.after != nullptr) change.new_hash = hash_weight(*pair.after);
    return;
  }
  if (change.status == WeightStatus::kReshaped) return;
  if (!pair.before->has_data() || !pair.after->has_data()) return;
  // A second look at small ones finds their pages mapped; large ones would fill the memory.
  constexpr std::uint64_t kKept = 32u << 20;
  const bool keep = pair.before->bytes() + pair.after->bytes() <= kKept;
  change.old_hash = hash_weight(*pair.before, keep);
  change.new_hash = hash_weight(*pair.after, keep);
  if (!change.retyped && same_shape(*pair.before, *pair.after) &&
      change.old_hash == change.new_hash) {
    change.status = WeightStatus::kBitEqual;
  } else {
    change.diff = diff_weights(*pair.before, *pair.after);
    change.status = change.diff.same_values ? WeightStatus::kValueEqual : WeightStatus::kChanged;
  }
  for (const ViewedWeight* side : {pair.before, pair.after}) {
    release_pages(side->tensor->data);
    if (side->scale != nullptr) release_pages(side->scale->data);
  }
}

void find_renamed(std::vector<WeightChange>& changes) {
  std::unordered_map<std::string, std::vector<WeightChange*>> removed;
  for (WeightChange& change : changes) {
    if (change.status == WeightStatus::kRemoved && !change.old_hash.weight.empty()) {
      removed[change.old_hash.weight + change.old_hash.scale].push_back(&change);
    }
  }
  std::erase_if(changes, [&](WeightChange& change) {
    if (change.status != WeightStatus::kAdded || change.new_hash.weight.empty()) return false;
    const auto found = removed.find(change.new_hash.weight + change.new_hash.scale);
    if (found == removed.end() || found->second.empty()) return false;
    // Tensors of equal content: the first by name.
    WeightChange* old = found->second.front();
    if (old->old_shape != change.new_shape || old->old_form != change.new_form) return false;
    found->second.erase(found->second.begin());
    old->status = WeightStatus::kRenamed;
    old->renamed_to = change.name;
    old->new_form = change.new_form;
    old->new_shape = change.new_shape;
    old->new_hash = change.new_hash;
    return true;
  });
}

PreflightSide side_of(const CheckpointView& view) {
  PreflightSide side;
  side.path = view.path().string();
  side.kind = view.kind();
  side.shards = static_cast<std::int64_t>(view.shards().size());
  side.tensors = view.tensors();
  side.bytes = view.bytes();
  for (const ViewedWeight& weight : view.weights()) {
    if (weight.target) continue;
    side.drafter_tensors += weight.scale == nullptr ? 1 : 2;
    side.drafter_bytes += weight.bytes();
  }
  side.faults = view.faults();
  side.config = view.config();
  if (side.config) side.facts = derive_facts(*side.config, view.drafter_stages());
  return side;
}

std::uint64_t bytes_of(const Pair& pair) {
  const auto bytes = [](const ViewedWeight* w) { return w && w->has_data() ? w->bytes() : 0; };
  return bytes(pair.before) + bytes(pair.after);
}

}  // namespace

std::string_view status_name(WeightStatus status) {
  switch (status) {
    case WeightStatus::kBitEqual:
      return "bit-equal";
    case WeightStatus::kValueEqual:
      return "value-equal";
    case WeightStatus::kChanged:
      return "changed";
    case WeightStatus::kReshaped:
      return "reshaped";
    case WeightStatus::kAdded:
      return "added";
    case WeightStatus::kRemoved:
      return "removed";
    case WeightStatus::kRenamed:
      return "renamed";
    case WeightStatus::kNotCompared:
      return "not compared";
  }
  return "";
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kFault:
      return "fault";
    case Severity::kStructure:
      return "structure";
    case Severity::kDamage:
      return "damage";
    case Severity::kSuspect:
      return "suspect";
    case Severity::kDrift:
      return "drift";
    case Severity::kForm:
      return "form";
    case Severity::kDrafter:
      return "drafter";
    case Severity::kNote:
      return "note";
  }
  return "";
}

ExitCode exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return ExitCode::kPass;
    case Verdict::kStructural:
      return ExitCode::kRegression;
    case Verdict::kInert:
    case Verdict::kUndecided:
      return ExitCode::kInconclusive;
  }
  return ExitCode::kInconclusive;
}

PreflightReport run_preflight(const std::filesystem::path& before,
                              const std::filesystem::path& after, const PreflightOptions& options) {
  const CheckpointView old_view(before, options.headers_only);
  const CheckpointView new_view(after, options.headers_only);
  PreflightReport report;
  report.before = side_of(old_view);
  report.after = side_of(new_view);
  if (!old_view.config_text().empty() && !new_view.config_text().empty()) {
    report.config = diff_configs(old_view.config_text(), old_view.config_path().string(),
                                 new_view.config_text(), new_view.config_path().string());
  }
  const auto& old_config = report.before.config;
  const auto& new_config = report.after.config;
  if (old_config && new_config) {
    report.same_main_ratios = same_main_ratios(*old_config, *new_config);
  }
  if (old_view.kind() != CheckpointView::Kind::kConfigOnly &&
      new_view.kind() != CheckpointView::Kind::kConfigOnly) {
    const std::vector<Pair> pairs = pair_weights(old_view, new_view);
    report.weights.resize(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) report.weights[i] = describe(pairs[i]);
    if (!options.headers_only) {
      std::uint64_t total = 0;
      for (const Pair& pair : pairs) total += bytes_of(pair);
      const auto start = std::chrono::steady_clock::now();
      std::mutex mutex;
      ThreadPool pool(options.threads);
      pool.parallel_for(pairs.size(), [&](std::size_t i, int) {
        compare(pairs[i], report.weights[i]);
        const std::scoped_lock lock(mutex);
        report.bytes_read += bytes_of(pairs[i]);
        if (options.progress) options.progress(report.bytes_read, total);
      });
      report.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      find_renamed(report.weights);
    }
  }
  judge_preflight(report, old_view, new_view);
  return report;
}

}  // namespace cupel
