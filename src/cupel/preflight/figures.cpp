#include "cupel/preflight/figures.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cupel {
namespace {

// Notable: what differs between two checkpoints that are known to differ in kind, not what repeats
// of one could show (they show nothing: runs are deterministic).
constexpr double kNotableDecibel = 0.5;
constexpr double kNotableShare = 0.01;
constexpr double kNotableOctave = 0.5;

constexpr FigureInfo decibel(std::string_view operation, std::string_view name) {
  return {operation, name, FigureScale::kDecibel, kNotableDecibel};
}
constexpr FigureInfo share(std::string_view operation, std::string_view name) {
  return {operation, name, FigureScale::kShare, kNotableShare};
}
constexpr FigureInfo octave(std::string_view operation, std::string_view name) {
  return {operation, name, FigureScale::kOctave, kNotableOctave};
}

// In the order of the enumeration.
constexpr std::array<FigureInfo, kFigures> kTable = {{
    octave("KV row", "amax, 1st percentile"),
    octave("KV row", "amax, median"),
    octave("KV row", "amax, largest"),
    share("KV row", "groups above 448"),
    share("KV row", "top binade"),
    share("KV row", "below smallest normal"),
    decibel("KV row", "snr"),
    octave("compressed entry", "amax, 1st percentile"),
    octave("compressed entry", "amax, median"),
    octave("compressed entry", "amax, largest"),
    share("compressed entry", "groups above 448"),
    share("compressed entry", "top binade"),
    share("compressed entry", "below smallest normal"),
    decibel("compressed entry", "snr"),
    decibel("index key", "snr, fp4"),
    decibel("index key", "snr, fp8"),
    decibel("index query", "snr, fp4"),
    decibel("index query", "snr, fp8"),
    share("indexer", "rows that select"),
    share("indexer", "agreement with exact scores, fp4"),
    share("indexer", "agreement with exact scores, fp8"),
    decibel("expert input w1 w3", "snr"),
    share("expert input w1 w3", "top binade"),
    share("expert input w1 w3", "below smallest normal"),
    decibel("expert input w2", "snr"),
    share("expert input w2", "top binade"),
    share("expert input w2", "below smallest normal"),
    octave("router", "margin, 5th percentile"),
    octave("router", "margin, median"),
    share("sink", "share of the softmax, mean"),
    share("sink", "share of the softmax, largest head"),
}};
static_assert(!kTable.back().name.empty(), "one line a figure");

}  // namespace

const FigureInfo& figure_info(Figure figure) {
  return kTable.at(static_cast<std::size_t>(figure));
}

double figure_change(Figure figure, double before, double after) {
  if (figure_info(figure).scale != FigureScale::kOctave) return after - before;
  if (std::isnan(before) || std::isnan(after)) return std::nan("");
  constexpr double kSmallest = 0x1p-30;
  return std::log2(std::max(after, kSmallest) / std::max(before, kSmallest));
}

std::string format_figure(Figure figure, double value) {
  if (std::isnan(value)) return "-";
  switch (figure_info(figure).scale) {
    case FigureScale::kDecibel:
      return fmt::format("{:.2f} dB", value);
    case FigureScale::kShare:
      return fmt::format("{:.3f} %", 100 * value);
    case FigureScale::kOctave:
      return fmt::format("{:.4g}", value);
  }
  return "";
}

std::string format_change(Figure figure, double change) {
  switch (figure_info(figure).scale) {
    case FigureScale::kDecibel:
      return fmt::format("{:+.2f} dB", change);
    case FigureScale::kShare:
      return fmt::format("{:+.3f} points", 100 * change);
    case FigureScale::kOctave:
      return fmt::format("x {:.3g}", std::exp2(change));
  }
  return "";
}

}  // namespace cupel
