#include "cupel/preflight/numerics.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"
#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/model/network.h"
#include "cupel/preflight/activation_collector.h"
#include "cupel/text/tokenizer.h"

namespace cupel {
namespace {

constexpr std::size_t kPositions = 128;  // with logits, of each prompt

std::vector<std::size_t> logits_rows(std::size_t rows) {
  const std::size_t count = std::min(rows, kPositions);
  std::vector<std::size_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rows * (i + 1) / count - 1;
  return out;
}

// `next`: the prompt's next token, or -1.
void add_logits(std::span<const float> logits, std::int32_t next, ModelNumerics& out) {
  std::size_t best = 0;
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) {
      second = logits[best];
      best = i;
    } else {
      second = std::max(second, logits[i]);
    }
  }
  out.arg_max.push_back(static_cast<std::int32_t>(best));
  out.margin.add(static_cast<double>(logits[best]) - second);
  if (next < 0) return;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - logits[best]);
  out.surprise.add(std::log(sum) + logits[best] - logits[static_cast<std::size_t>(next)]);
}

void run_prompt(Network& network, std::span<const std::int32_t> ids, const StepTaps& taps,
                ModelNumerics& out) {
  SequenceState state = network.open();
  const std::vector<std::size_t> rows = logits_rows(ids.size());
  const SegmentInput input{.state = &state, .ids = ids};
  const std::vector<float> logits = network.forward({&input, 1}, rows, &taps);
  network.close(state);
  const auto vocab = static_cast<std::size_t>(network.config().vocab_size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t next = rows[i] + 1;
    add_logits(std::span(logits).subspan(i * vocab, vocab), next < ids.size() ? ids[next] : -1,
               out);
  }
}

// Bytes of memory that could be used without swapping; nothing where the system does not say.
std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib << 10;
  }
  return std::nullopt;
}

// Weights in memory are kept in their stored form but for a few that are widened.
std::uint64_t memory_needed(const PreflightSide& side) {
  const std::uint64_t target = side.bytes - side.drafter_bytes;
  return target + target / 4;
}

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30));
}

// Why the models cannot be run; empty if they can.
std::string obstacle(const PreflightReport& report, const NumericsOptions& options) {
  for (const auto& [side, name] :
       {std::pair(&report.before, "OLD"), std::pair(&report.after, "NEW")}) {
    if (side->kind == CheckpointView::Kind::kConfigOnly) {
      return fmt::format("{} is a configuration alone", name);
    }
    if (side->kind == CheckpointView::Kind::kHeadersOnly) {
      return fmt::format("{} is looked at by its headers", name);
    }
    if (std::ranges::any_of(side->faults, [](const Fault& fault) { return fault.target; })) {
      return fmt::format("{} would not load", name);
    }
  }
  if (options.ignore_memory) return {};
  // One after the other: the larger of the two must fit.
  const std::uint64_t needed = std::max(memory_needed(report.before), memory_needed(report.after));
  const auto available = available_memory();
  if (available && needed > *available) {
    return fmt::format("a model needs about {} of memory, {} are free (--numerics runs it anyway)",
                       gib(needed), gib(*available));
  }
  return {};
}

}  // namespace

ModelNumerics measure_numerics(const std::filesystem::path& folder,
                               const NumericsOptions& options) {
  const Checkpoint checkpoint(folder);
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json");
  const auto executor = make_executor("cpu", options.threads);
  Network network(checkpoint,
                  {.backend = BackendKind::kReference, .numerics = Numerics::kReference},
                  *executor);
  ActivationCollector collector(checkpoint, executor->host_threads());
  const StepTaps taps = collector.taps();
  ModelNumerics out;
  out.index_topk = checkpoint.config().index_topk;
  Hasher hasher;
  for (std::size_t i = 0; i < options.prompts.size(); ++i) {
    const std::vector<std::int32_t> ids = tokenizer.encode(options.prompts[i]);
    if (ids.empty()) {
      throw InputError(fmt::format("calibration prompt {}", i), "at least one token", "none");
    }
    const std::size_t length = ids.size();
    hasher.add(std::as_bytes(std::span(&length, 1))).add(std::as_bytes(std::span(ids)));
    run_prompt(network, ids, taps, out);
    out.tokens += length;
    out.longest = std::max(out.longest, length);
    if (options.progress) options.progress(i + 1, options.prompts.size());
  }
  out.ids_hash = hasher.hex();
  out.layers = collector.figures();
  out.broken_groups = collector.broken_groups();
  for (int l = 0; l < checkpoint.config().layers; ++l) {
    out.kinds.push_back(checkpoint.config().kind(l));
  }
  return out;
}

std::vector<FigureDifference> compare_numerics(const ModelNumerics& before,
                                               const ModelNumerics& after) {
  std::vector<FigureDifference> out;
  const std::size_t layers = std::min(before.layers.size(), after.layers.size());
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (before.kinds[layer] != after.kinds[layer]) continue;
    for (std::size_t i = 0; i < kFigures; ++i) {
      FigureDifference d;
      d.layer = layer;
      d.figure = static_cast<Figure>(i);
      d.before = before.layers[layer][i];
      d.after = after.layers[layer][i];
      d.change = figure_change(d.figure, d.before, d.after);
      if (std::isnan(d.change) || d.change == 0) continue;
      d.weight = std::fabs(d.change) / figure_info(d.figure).notable;
      out.push_back(d);
    }
  }
  std::ranges::stable_sort(out, std::greater(), &FigureDifference::weight);
  return out;
}

std::optional<double> arg_max_agreement(const ModelNumerics& before, const ModelNumerics& after) {
  if (before.ids_hash != after.ids_hash || before.arg_max.empty()) return std::nullopt;
  std::size_t same = 0;
  for (std::size_t i = 0; i < before.arg_max.size(); ++i) {
    same += before.arg_max[i] == after.arg_max[i];
  }
  return static_cast<double>(same) / static_cast<double>(before.arg_max.size());
}

void add_numerics(PreflightReport& report, const NumericsOptions& options, int top) {
  const auto skip = [&](std::string_view why) {
    report.not_compared.push_back(fmt::format("numerics: {}", why));
  };
  if (const std::string why = obstacle(report, options); !why.empty()) return skip(why);
  const bool twice = report.verdict != Verdict::kIdentical;
  NumericsOptions run = options;
  std::size_t before_this = 0;
  if (options.progress) {
    run.progress = [&](std::size_t done, std::size_t all) {
      options.progress(before_this + done, twice ? 2 * all : all);
    };
  }
  ModelNumerics before;
  ModelNumerics after;
  try {
    before = measure_numerics(report.before.path, run);
    before_this = options.prompts.size();
    // Equal values give equal bits (DESIGN section 5).
    after = twice ? measure_numerics(report.after.path, run) : before;
  } catch (const InputError& error) {
    return skip(error.what());
  }
  report.numerics = {numerics_text(before, after, top), numerics_json(before, after)};
  if (after.broken_groups > 0) {
    report.findings.insert(
        std::ranges::upper_bound(report.findings, Severity::kDamage, {}, &Finding::severity),
        {Severity::kDamage,
         fmt::format("NEW computes NaN or infinity: {} quantisation groups", after.broken_groups),
         fmt::format("on the calibration prompts; OLD: {}", before.broken_groups),
         {},
         0,
         true});
  }
  if (report.verdict != Verdict::kInert) return;
  const auto agreement = arg_max_agreement(before, after);
  const auto differences = compare_numerics(before, after);
  report.verdict_text += fmt::format("; on {} prompts ", options.prompts.size());
  report.verdict_text +=
      agreement
          ? fmt::format("the most likely token is another at {} of {} positions",
                        std::lround((1 - *agreement) * static_cast<double>(before.arg_max.size())),
                        before.arg_max.size())
          : "token ids differ";
  if (!differences.empty()) {
    const FigureDifference& d = differences.front();
    report.verdict_text +=
        fmt::format(", largest change in layer {}: {} {} {} -> {}", d.layer,
                    figure_info(d.figure).operation, figure_info(d.figure).name,
                    format_figure(d.figure, d.before), format_figure(d.figure, d.after));
  }
}

}  // namespace cupel
