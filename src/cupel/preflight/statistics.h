// Sums over quantised values: error, place in the format's range, distribution of sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cupel {

// Signal to noise of a quantiser over everything added.
class SignalToNoise {
 public:
  // Elements that are not finite on either side are left out.
  void add(std::span<const float> exact, std::span<const float> quantised);
  // NaN before a value other than zero was added; infinity without noise.
  double decibel() const;

 private:
  double signal_ = 0;
  double noise_ = 0;
};

// Quantiles of values that were all kept.
class Sample {
 public:
  void add(double value) { values_.push_back(static_cast<float>(value)); }
  void add(const Sample& other) {
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  }
  // The smallest value with at least q of the sample at or below it, q in [0, 1]; NaN if empty.
  double quantile(double q) const;
  // NaN if empty.
  double mean() const;
  std::size_t size() const { return values_.size(); }

 private:
  std::vector<float> values_;
};

// Where values lie in the range of e4m3 with a power-of-two scale for each group (spec 3.3).
class E4m3Range {
 public:
  // `values`: groups of `group` elements. A group that holds NaN or infinity is counted as broken
  // and adds nothing else.
  void add(std::span<const float> values, std::size_t group);

  const Sample& amax() const { return amax_; }
  double over_448() const { return share(over_448_, amax_.size()); }
  double top_binade() const { return share(top_binade_, elements_); }
  double below_normal() const { return share(below_normal_, elements_); }
  std::uint64_t broken_groups() const { return broken_; }

 private:
  static double share(std::uint64_t part, std::uint64_t all);

  Sample amax_;
  std::uint64_t elements_ = 0;
  std::uint64_t over_448_ = 0;
  std::uint64_t top_binade_ = 0;
  std::uint64_t below_normal_ = 0;
  std::uint64_t broken_ = 0;
};

}  // namespace cupel
