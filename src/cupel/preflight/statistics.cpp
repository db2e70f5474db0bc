#include "cupel/preflight/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cupel/formats/quantise.h"

namespace cupel {

void SignalToNoise::add(std::span<const float> exact, std::span<const float> quantised) {
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double x = exact[i];
    const double error = quantised[i] - x;
    if (!std::isfinite(error)) continue;
    signal_ += x * x;
    noise_ += error * error;
  }
}

double SignalToNoise::decibel() const {
  if (signal_ == 0 && noise_ == 0) return std::nan("");
  if (noise_ == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal_ / noise_);
}

double Sample::quantile(double q) const {
  if (values_.empty()) return std::nan("");
  std::vector<float> copy = values_;
  const double rank = std::ceil(q * static_cast<double>(copy.size())) - 1;
  const auto nth = copy.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 0.0));
  std::ranges::nth_element(copy, nth);
  return *nth;
}

double Sample::mean() const {
  if (values_.empty()) return std::nan("");
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

void E4m3Range::add(std::span<const float> values, std::size_t group) {
  constexpr float kTop = 256;
  constexpr float kSmallestNormal = 0x1p-6f;
  for (std::size_t first = 0; first < values.size(); first += group) {
    const auto part = values.subspan(first, std::min(group, values.size() - first));
    const float amax = magnitude_max(part);
    if (!std::isfinite(amax)) {
      ++broken_;
      continue;
    }
    amax_.add(amax);
    over_448_ += amax > kE4m3Max;
    const int exponent = e4m3_scale_exponent(amax);
    const float top = std::ldexp(kTop, exponent);
    const float normal = std::ldexp(kSmallestNormal, exponent);
    for (const float value : part) {
      const float magnitude = std::fabs(value);
      top_binade_ += magnitude >= top;
      below_normal_ += magnitude < normal && magnitude > 0;
    }
    elements_ += part.size();
  }
}

double E4m3Range::share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace cupel
