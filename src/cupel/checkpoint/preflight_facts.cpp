#include "cupel/checkpoint/preflight_facts.h"

#include <fmt/format.h>

namespace cupel {
namespace {

std::string layers_text(const ConfigFacts& f) {
  return fmt::format("{} sliding, {} ratio-4, {} ratio-128", f.sliding_only_layers, f.sparse_layers,
                     f.dense_entries_layers);
}

}  // namespace

std::string_view kind_name(CheckpointView::Kind kind) {
  switch (kind) {
    case CheckpointView::Kind::kConfigOnly:
      return "configuration only";
    case CheckpointView::Kind::kHeadersOnly:
      return "headers only";
    case CheckpointView::Kind::kFull:
      return "full";
  }
  return "";
}

std::vector<FactRow> fact_rows(const PreflightReport& report,
                               const PreflightReportOptions& options) {
  std::vector<FactRow> rows;
  const auto side = [&](const std::string& name, const auto& text) {
    const auto cell = [&](const PreflightSide& s) {
      return s.facts ? std::string(text(*s.facts, *s.config)) : std::string("-");
    };
    rows.push_back({name, cell(report.before), cell(report.after)});
  };
  using F = ConfigFacts;
  using C = ModelConfig;
  side("main layers", [](const F& f, const C&) { return layers_text(f); });
  side("compress_ratios entries",
       [](const F& f, const C&) { return fmt::format("{}", f.ratio_entries); });
  side("drafter", [](const F& f, const C& c) {
    return fmt::format("{}, {} stage{} (num_nextn_predict_layers {})", drafter_name(f.drafter),
                       f.drafter_stages, f.drafter_stages == 1 ? "" : "s", c.nextn_predict_layers);
  });
  side("target tensors, bytes", [](const F& f, const C&) {
    return fmt::format("{}, {}", f.target_tensors, f.target_bytes);
  });
  side("routed experts", [](const F& f, const C& c) {
    return fmt::format("{}, {} bytes", expert_dtype_name(c.expert_dtype), f.expert_bytes);
  });
  side("a target-only load skips", [](const F& f, const C&) {
    return fmt::format("{} tensors, {} bytes", f.drafter_tensors, f.drafter_bytes);
  });
  const auto& caches = report.after.facts    ? report.after.facts->caches
                       : report.before.facts ? report.before.facts->caches
                                             : std::vector<ConfigFacts::Cache>();
  for (std::size_t i = 0; i < caches.size(); ++i) {
    side(fmt::format("cache, {}", caches[i].backend), [&](const F& f, const C&) {
      return fmt::format("{:.1f} B/token + {} B", f.caches[i].bytes_per_token,
                         f.caches[i].window_bytes);
    });
  }
  for (const double gib : options.gpu_gib) {
    side(fmt::format("GPUs of {:g} GiB, full context", gib), [&](const F& f, const C& c) {
      return fmt::format("{}", gpus_needed(f, gib, c.max_position_embeddings));
    });
  }
  side("indexer selects from", [](const F& f, const C&) {
    return fmt::format("{} visible tokens on", f.indexer_idle_below);
  });
  return rows;
}

}  // namespace cupel
