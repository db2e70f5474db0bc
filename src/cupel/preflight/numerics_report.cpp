// The numerics of two models side by side, as text and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/preflight/numerics.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

std::string_view kind_text(LayerKind kind) {
  switch (kind) {
    case LayerKind::kSlidingOnly:
      return "sliding";
    case LayerKind::kSparse:
      return "ratio-4";
    case LayerKind::kDenseEntries:
      return "ratio-128";
  }
  return "";
}

// One column of a table by layer.
struct Column {
  std::string_view title;
  Figure figure;
};

std::string cell(Figure figure, double value) {
  if (std::isnan(value)) return "-";
  switch (figure_info(figure).scale) {
    case FigureScale::kDecibel:
      return fmt::format("{:.1f}", value);
    case FigureScale::kShare:
      return fmt::format("{:.2f}", 100 * value);
    case FigureScale::kOctave:
      return fmt::format("{:.3g}", value);
  }
  return "";
}

// "OLD|NEW" in each cell; one value where they print alike.
std::string table(std::string_view title, const ModelNumerics& before, const ModelNumerics& after,
                  std::span<const Column> columns) {
  std::string out = fmt::format("\n  {}\n  {:>5} {:<9}", title, "layer", "");
  for (const Column& column : columns) out += fmt::format(" {:>15}", column.title);
  out += '\n';
  const std::size_t layers = std::max(before.layers.size(), after.layers.size());
  for (std::size_t l = 0; l < layers; ++l) {
    const auto& kinds = l < before.kinds.size() ? before.kinds : after.kinds;
    out += fmt::format("  {:>5} {:<9}", l, kind_text(kinds[l]));
    for (const Column& column : columns) {
      const auto value = [&](const ModelNumerics& m) {
        return l < m.layers.size() ? cell(column.figure, at(m.layers[l], column.figure))
                                   : std::string("-");
      };
      const std::string a = value(before);
      const std::string b = value(after);
      out += fmt::format(" {:>15}", a == b ? a : fmt::format("{}|{}", a, b));
    }
    out += '\n';
  }
  return out;
}

constexpr Column kRange[] = {
    {"kv amax median", Figure::kKvAmaxMedian}, {"kv amax max", Figure::kKvAmaxMax},
    {"kv >448 %", Figure::kKvOver448},         {"kv top %", Figure::kKvTopBinade},
    {"kv <normal %", Figure::kKvBelowNormal},  {"entry amax max", Figure::kEntryAmaxMax},
    {"entry top %", Figure::kEntryTopBinade},  {"entry <norm. %", Figure::kEntryBelowNormal}};
constexpr Column kNoise[] = {{"kv", Figure::kKvSnr},
                             {"entry", Figure::kEntrySnr},
                             {"index key fp4", Figure::kIndexKeySnrFp4},
                             {"index key fp8", Figure::kIndexKeySnrFp8},
                             {"index q fp4", Figure::kIndexQuerySnrFp4},
                             {"expert in", Figure::kExpertInSnr},
                             {"expert hidden", Figure::kExpertHiddenSnr}};
constexpr Column kChoices[] = {{"selecting %", Figure::kSelecting},
                               {"agree fp4 %", Figure::kAgreementFp4},
                               {"agree fp8 %", Figure::kAgreementFp8},
                               {"router p5", Figure::kRouterMarginLow},
                               {"router median", Figure::kRouterMarginMedian},
                               {"sink %", Figure::kSinkMean},
                               {"sink, head %", Figure::kSinkMaxHead}};

std::string selecting_line(const ModelNumerics& before, const ModelNumerics& after) {
  const auto reach = [](const ModelNumerics& m) {
    if (std::ranges::find(m.kinds, LayerKind::kSparse) == m.kinds.end()) {
      return std::string("no layer has an indexer");
    }
    // More entries than index_topk, one for four tokens.
    const std::size_t first = 4 * (static_cast<std::size_t>(m.index_topk) + 1);
    return fmt::format("index_topk {}: selects from {} visible tokens on, {} in these prompts",
                       m.index_topk, first, m.longest >= first ? "which happens" : "never");
  };
  const std::string a = reach(before);
  const std::string b = reach(after);
  std::string out = fmt::format("  indexer: {}\n", a);
  if (a != b) out += fmt::format("  indexer of NEW: {}\n", b);
  return out;
}

// JSON has no infinity.
Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string_view scale_name(FigureScale scale) {
  switch (scale) {
    case FigureScale::kDecibel:
      return "dB";
    case FigureScale::kShare:
      return "share";
    case FigureScale::kOctave:
      return "size, changes in octaves";
  }
  return "";
}

Json model_json(const ModelNumerics& m) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < m.layers.size(); ++l) {
    Json layer = {{"layer", l}, {"kind", kind_text(m.kinds[l])}};
    for (std::size_t i = 0; i < kFigures; ++i) {
      if (std::isnan(m.layers[l][i])) continue;
      const FigureInfo& info = figure_info(static_cast<Figure>(i));
      layer[std::string(info.operation)][std::string(info.name)] = finite(m.layers[l][i]);
    }
    layers.push_back(std::move(layer));
  }
  return {{"tokens", m.tokens},
          {"longest_prompt", m.longest},
          {"index_topk", m.index_topk},
          {"broken_groups", m.broken_groups},
          {"positions", m.arg_max.size()},
          {"logit_margin",
           {{"p1", finite(m.margin.quantile(0.01))},
            {"p5", finite(m.margin.quantile(0.05))},
            {"median", finite(m.margin.quantile(0.5))}}},
          {"mean_surprise", finite(m.surprise.mean())},
          {"layers", layers}};
}

}  // namespace

std::string numerics_text(const ModelNumerics& before, const ModelNumerics& after, int top) {
  std::string out =
      fmt::format("  {} tokens, the longest prompt {}; published rounding; shares in %, OLD|NEW\n",
                  after.tokens, after.longest);
  out += selecting_line(before, after);
  const auto logits = [](const ModelNumerics& m) {
    return fmt::format(
        "margin 5th percentile {:.3g}, median {:.3g}; surprise at the next token "
        "{:.4f}",
        m.margin.quantile(0.05), m.margin.quantile(0.5), m.surprise.mean());
  };
  out += fmt::format("  logits at {} positions\n    OLD {}\n    NEW {}\n", after.arg_max.size(),
                     logits(before), logits(after));
  const auto agreement = arg_max_agreement(before, after);
  out += agreement ? fmt::format("    most likely token equal at {:.2f} %\n", 100 * *agreement)
                   : "    not paired: the prompts have other token ids\n";
  out +=
      table("e4m3 range (nope part of KV rows and of compressed entries)", before, after, kRange);
  out += table("signal to quantisation noise, dB", before, after, kNoise);
  out +=
      table("choices: indexer against exact scores, router margin, sink", before, after, kChoices);
  const auto differences = compare_numerics(before, after);
  if (differences.empty()) return out + "\n  no figure differs\n";
  out += fmt::format("\n  where NEW differs most\n  {:>5} {:<18} {:<34} {:>12} {:>12} {:>15}\n",
                     "layer", "operation", "figure", "OLD", "NEW", "change");
  const std::size_t shown = std::min(differences.size(), static_cast<std::size_t>(top));
  for (std::size_t i = 0; i < shown; ++i) {
    const FigureDifference& d = differences[i];
    const FigureInfo& info = figure_info(d.figure);
    out += fmt::format("  {:>5} {:<18} {:<34} {:>12} {:>12} {:>15}\n", d.layer, info.operation,
                       info.name, format_figure(d.figure, d.before),
                       format_figure(d.figure, d.after), format_change(d.figure, d.change));
  }
  return out;
}

std::string numerics_json(const ModelNumerics& before, const ModelNumerics& after) {
  Json differences = Json::array();
  for (const FigureDifference& d : compare_numerics(before, after)) {
    const FigureInfo& info = figure_info(d.figure);
    differences.push_back({{"layer", d.layer},
                           {"operation", info.operation},
                           {"figure", info.name},
                           {"unit", scale_name(info.scale)},
                           {"old", finite(d.before)},
                           {"new", finite(d.after)},
                           {"change", finite(d.change)},
                           {"weight", finite(d.weight)}});
  }
  const auto agreement = arg_max_agreement(before, after);
  const Json out = {{"old", model_json(before)},
                    {"new", model_json(after)},
                    {"arg_max_agreement", agreement ? Json(*agreement) : Json(nullptr)},
                    {"differences", differences}};
  return out.dump();
}

}  // namespace cupel
