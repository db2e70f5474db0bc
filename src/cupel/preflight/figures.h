// What preflight measures in each layer of a running model: one table of figures, so that text,
// JSON and the ranking of differences cannot disagree about what there is.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace cupel {

// Formats are those of spec sections 3.3, 3.5.6 and 3.8.3; a binade of e4m3 counts from the scaled
// value, |x| / scale.
enum class Figure : std::size_t {
  // Nope part of the window's KV rows, groups of 64.
  kKvAmaxLow,      // 1st percentile of the groups' amax
  kKvAmaxMedian,   //
  kKvAmaxMax,      //
  kKvOver448,      // share of groups that a cast without a scale would saturate
  kKvTopBinade,    // share of elements in [256, 448], where a published cast fault lived
  kKvBelowNormal,  // share of elements below 2^-6, the smallest normal, zero excluded
  kKvSnr,          // signal to quantisation noise
  // The same of compressed entries; layers with a compressor.
  kEntryAmaxLow,
  kEntryAmaxMedian,
  kEntryAmaxMax,
  kEntryOver448,
  kEntryTopBinade,
  kEntryBelowNormal,
  kEntrySnr,
  // Indexer, ratio-4 layers. FP4 as published, FP8 as the packed and unified layouts keep it.
  kIndexKeySnrFp4,
  kIndexKeySnrFp8,
  kIndexQuerySnrFp4,
  kIndexQuerySnrFp8,
  kSelecting,     // share of rows that see more entries than index_topk: only those select
  kAgreementFp4,  // share of the exact choice that is chosen, over rows that select
  kAgreementFp8,
  // Inputs of the experts' products, groups of 128: of w1 and w3, and of w2.
  kExpertInSnr,
  kExpertInTopBinade,
  kExpertInBelowNormal,
  kExpertHiddenSnr,
  kExpertHiddenTopBinade,
  kExpertHiddenBelowNormal,
  // Last chosen less first refused expert, in biased score; layers that route by score.
  kRouterMarginLow,  // 5th percentile
  kRouterMarginMedian,
  // Share of the softmax that goes to the sink.
  kSinkMean,     // over rows and heads
  kSinkMaxHead,  // of the head with the largest mean
  kCount
};
inline constexpr std::size_t kFigures = static_cast<std::size_t>(Figure::kCount);

enum class FigureScale {
  kDecibel,  // differences count as they are
  kShare,    // in [0, 1]; likewise
  kOctave    // a positive size; differences count in factors of two
};

struct FigureInfo {
  std::string_view operation;  // "KV row"
  std::string_view name;       // "snr"
  FigureScale scale;
  double notable;  // a difference of this size weighs 1 in the ranking
};
const FigureInfo& figure_info(Figure figure);

// NaN: does not apply to the layer, or was not seen.
using LayerFigures = std::array<double, kFigures>;
inline double& at(LayerFigures& figures, Figure figure) {
  return figures[static_cast<std::size_t>(figure)];
}
inline double at(const LayerFigures& figures, Figure figure) {
  return figures[static_cast<std::size_t>(figure)];
}

// NEW less OLD in the figure's own scale; NaN if either is. Sizes below 2^-30 count as 2^-30.
double figure_change(Figure figure, double before, double after);

// "31.2 dB", "0.42 %", "0.0131"; "-" for NaN.
std::string format_figure(Figure figure, double value);
// "-3.1 dB", "+0.4 points", "x 1.41".
std::string format_change(Figure figure, double change);

}  // namespace cupel
