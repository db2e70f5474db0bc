// The part of preflight that runs: both checkpoints on the same prompts, and what the number
// formats do to the activations of each.
//
// A layer of its own between engine/ and eval/: it needs model/, while the rest of preflight
// (checkpoint/) compares files and must not. The report's numerics section is the seam: checkpoint/
// prints it and knows nothing of how it is made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/preflight.h"
#include "cupel/preflight/figures.h"
#include "cupel/preflight/statistics.h"

namespace cupel {

struct NumericsOptions {
  std::vector<std::string> prompts;  // as text, at least one
  int threads = 0;                   // 0: one per hardware thread
  // Load models that do not fit in the memory that is free.
  bool ignore_memory = false;
  // Prompts done and in all, of both models together.
  std::function<void(std::size_t, std::size_t)> progress;
};

// One model on all prompts, with the published rounding (backend reference, numerics reference).
struct ModelNumerics {
  std::vector<LayerKind> kinds;      // by layer
  std::vector<LayerFigures> layers;  // by layer
  int index_topk = 0;
  std::size_t tokens = 0;
  std::size_t longest = 0;          // tokens of the longest prompt
  std::string ids_hash;             // of all prompts' token ids
  std::uint64_t broken_groups = 0;  // quantisation groups with NaN or infinity
  // At up to 128 positions of each prompt, its last among them.
  std::vector<std::int32_t> arg_max;
  Sample margin;    // largest less second logit
  Sample surprise;  // -ln of the probability of the prompt's next token; not at the last position
};

// Loads and runs one checkpoint. Throws InputError for a faulty one and for a prompt that is empty
// or longer than the context.
ModelNumerics measure_numerics(const std::filesystem::path& folder, const NumericsOptions& options);

// A figure that differs. Ordered by `weight`: the change in units of what is notable.
struct FigureDifference {
  std::size_t layer = 0;
  Figure figure = Figure::kCount;
  double before = 0;
  double after = 0;
  double change = 0;  // as figure_change
  double weight = 0;
};
// Of the layers that both have and that are of the same kind, largest weight first; equal figures
// are left out.
std::vector<FigureDifference> compare_numerics(const ModelNumerics& before,
                                               const ModelNumerics& after);

// Share of positions with the same arg max; nothing if the prompts' token ids differ.
std::optional<double> arg_max_agreement(const ModelNumerics& before, const ModelNumerics& after);

// Rows of each table as in PreflightReportOptions::top.
std::string numerics_text(const ModelNumerics& before, const ModelNumerics& after, int top);
std::string numerics_json(const ModelNumerics& before, const ModelNumerics& after);

// Runs both checkpoints of a report and fills its numerics; where that is not possible, says why
// under "not compared". Adds a finding if NEW computes NaN, and to the verdict in words how the
// answers moved. `top`: rows of the tables in the text.
void add_numerics(PreflightReport& report, const NumericsOptions& options, int top);

}  // namespace cupel
