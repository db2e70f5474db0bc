#include "cupel/checkpoint/weight_diff.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <hwy/highway.h>

#include "cupel/base/hash.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/weight_rows.h"

namespace cupel {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBand = 128;  // rows, as of a scale block

std::string hash_tensor(const Tensor& tensor, bool keep) {
  constexpr std::size_t kPiece = 8u << 20;
  Hasher hasher;
  std::span<const std::byte> rest = tensor.data;
  prefetch(rest.first(std::min(rest.size(), kPiece)));
  while (!rest.empty()) {
    const auto piece = rest.first(std::min(rest.size(), kPiece));
    rest = rest.subspan(piece.size());
    prefetch(rest.first(std::min(rest.size(), kPiece)));  // the disk works while we hash
    hasher.add(piece);
    if (!keep) release_pages(piece);
  }
  return hasher.hex();
}

struct Sums {
  double old_squares = 0;
  double new_squares = 0;
  double difference = 0;
  double product = 0;

  void add(const Sums& other) {
    old_squares += other.old_squares;
    new_squares += other.new_squares;
    difference += other.difference;
    product += other.product;
  }
};

float amax_of(const float* values, std::size_t count) {
  const hn::ScalableTag<float> d;
  auto top = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    top = hn::Max(top, hn::Abs(hn::LoadU(d, values + i)));
  }
  float out = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < count; ++i) out = std::max(out, std::fabs(values[i]));
  return out;
}

bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  std::uint32_t broken = 0;
  for (const float value : values) {
    broken |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
  }
  return broken == 0;
}

float largest_difference(const float* a, const float* b, std::size_t count) {
  const hn::ScalableTag<float> d;
  auto top = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    top = hn::Max(top, hn::Abs(hn::Sub(hn::LoadU(d, b + i), hn::LoadU(d, a + i))));
  }
  float out = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < count; ++i) out = std::max(out, std::fabs(b[i] - a[i]));
  return out;
}

std::size_t count_changed(const float* a, const float* b, std::size_t count) {
  std::size_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) changed += a[i] != b[i];
  return changed;
}

// Where a value is no finite number, both become zero and are counted.
void take_out_broken(std::span<float> a, std::span<float> b, WeightDiff& out) {
  if (all_finite(a) && all_finite(b)) return;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool broken_a = !std::isfinite(a[i]);
    const bool broken_b = !std::isfinite(b[i]);
    if (!broken_a && !broken_b) continue;
    out.old_nan += broken_a;
    out.new_nan += broken_b;
    if (broken_a != broken_b) out.same_values = false;
    a[i] = b[i] = 0;
  }
}

Sums row_sums(const float* a, const float* b, std::size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  auto aa = hn::Zero(d);
  auto bb = hn::Zero(d);
  auto ab = hn::Zero(d);
  auto dd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto x = hn::PromoteTo(d, hn::LoadU(narrow, a + i));
    const auto y = hn::PromoteTo(d, hn::LoadU(narrow, b + i));
    const auto difference = hn::Sub(y, x);
    aa = hn::MulAdd(x, x, aa);
    bb = hn::MulAdd(y, y, bb);
    ab = hn::MulAdd(x, y, ab);
    dd = hn::MulAdd(difference, difference, dd);
  }
  const auto sum = [&](auto lanes) { return hn::GetLane(hn::SumOfLanes(d, lanes)); };
  Sums out{sum(aa), sum(bb), sum(dd), sum(ab)};
  for (; i < count; ++i) {
    const double x = a[i];
    const double y = b[i];
    out.add({x * x, y * y, (y - x) * (y - x), x * y});
  }
  return out;
}

double ratio(double change, double reference) {
  if (change == 0) return 0;
  return reference == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(change / reference);
}

class CodeCounter {
 public:
  void add(std::span<const std::uint8_t> codes) {
    // Several counters: equal neighbours would wait for each other.
    for (std::size_t i = 0; i < codes.size(); ++i) ++counts_[i % kCounters][codes[i]];
  }
  CodeShares shares(WeightForm form) const {
    std::array<double, 3> sums{};
    double total = 0;
    const auto take = [&](unsigned magnitude, unsigned largest, unsigned subnormals, double n) {
      total += n;
      if (magnitude == 0) sums[0] += n;
      if (magnitude > 0 && magnitude <= subnormals) sums[1] += n;
      if (magnitude == largest) sums[2] += n;
    };
    for (unsigned code = 0; code < 256; ++code) {
      double n = 0;
      for (const auto& counts : counts_) n += static_cast<double>(counts[code]);
      if (form == WeightForm::kFp8) {
        take(code & 0x7fu, 0x7e, 7, n);
      } else {
        take(code & 7u, 7, 1, n);
        take(code >> 4 & 7u, 7, 1, n);
      }
    }
    if (total == 0) return {};
    return {sums[0] / total, sums[1] / total, sums[2] / total};
  }

 private:
  static constexpr std::size_t kCounters = 4;
  std::array<std::array<std::uint64_t, 256>, kCounters> counts_{};
};

void diff_scales(const WeightRows& before, const WeightRows& after, WeightDiff& out) {
  const auto& a = before.scales();
  const auto& b = after.scales();
  if (before.form() != after.form() || a.empty() || a.size() != b.size()) return;
  out.scales_compared = true;
  out.scales = a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    constexpr std::size_t kMostListed = 16;
    if (out.first_changed_scales.size() < kMostListed) out.first_changed_scales.push_back(i);
    ++out.changed_scales;
    if (!(a[i] > 0) || !(b[i] > 0)) continue;
    const double change = std::log2(static_cast<double>(b[i]) / a[i]);
    if (!std::isfinite(change)) continue;
    out.lowest_exponent_change = std::min(out.lowest_exponent_change, change);
    out.highest_exponent_change = std::max(out.highest_exponent_change, change);
  }
}

// The same rows in another order?
void find_permutation(const Tensor& before, const Tensor& after, WeightDiff& out) {
  constexpr std::int64_t kLargest = 1 << 20;
  if (before.dtype != after.dtype || before.shape != after.shape || before.shape.empty() ||
      before.elements() > kLargest || before.elements() == 0) {
    return;
  }
  const auto rows = static_cast<std::size_t>(before.shape.front());
  const std::size_t width = before.data.size() / rows;
  const auto row = [&](const Tensor& tensor, std::size_t r) {
    return std::string_view(reinterpret_cast<const char*>(tensor.data.data()) + r * width, width);
  };
  std::vector<std::string_view> a;
  std::vector<std::string_view> b;
  for (std::size_t r = 0; r < rows; ++r) {
    a.push_back(row(before, r));
    b.push_back(row(after, r));
  }
  auto sorted_a = a;
  auto sorted_b = b;
  std::ranges::sort(sorted_a);
  std::ranges::sort(sorted_b);
  if (sorted_a != sorted_b) return;
  out.permuted = true;
  constexpr std::size_t kMostShifts = 256;
  for (std::size_t k = 1; k < std::min(rows, kMostShifts); ++k) {
    for (const std::size_t shift : {k, rows - k}) {
      bool all = true;
      for (std::size_t r = 0; r < rows && all; ++r) all = b[(r + shift) % rows] == a[r];
      if (!all) continue;
      out.shift = shift == k ? static_cast<std::int64_t>(k) : -static_cast<std::int64_t>(k);
      return;
    }
  }
}

bool halves_swapped(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (b[i] != static_cast<std::uint8_t>(a[i] << 4 | a[i] >> 4)) return false;
  }
  return true;
}

// Amax of each run of 128 columns of a band.
void diff_amax(std::span<const float> a, std::span<const float> b, std::size_t rows,
               std::size_t columns, WeightDiff& out) {
  for (std::size_t c = 0; c < columns; c += kBand) {
    const std::size_t width = std::min(kBand, columns - c);
    float max_a = 0;
    float max_b = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      max_a = std::max(max_a, amax_of(a.data() + r * columns + c, width));
      max_b = std::max(max_b, amax_of(b.data() + r * columns + c, width));
    }
    ++out.blocks;
    if (max_a == max_b) continue;
    ++out.changed_amax;
    if (max_a == 0 || max_b == 0) continue;
    const double octaves = std::fabs(std::log2(static_cast<double>(max_b) / max_a));
    out.max_amax_octaves = std::max(out.max_amax_octaves, octaves);
  }
}

void find_outlier_rows(const std::vector<float>& changes, WeightDiff& out) {
  if (changes.size() < 2) return;
  std::vector<float> sorted = changes;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  out.median_row_change = *middle;
  const auto worst = std::ranges::max_element(changes);
  out.worst_row = worst - changes.begin();
  out.worst_row_change = *worst;
  const double limit = std::max(4 * out.median_row_change, 0.05);
  out.outlier_rows = static_cast<std::uint64_t>(
      std::ranges::count_if(changes, [&](float change) { return change > limit; }));
}

}  // namespace

WeightHash hash_weight(const ViewedWeight& weight, bool keep) {
  if (!weight.has_data()) return {};
  return {hash_tensor(*weight.tensor, keep),
          weight.scale == nullptr ? std::string() : hash_tensor(*weight.scale, keep)};
}

WeightDiff diff_weights(const ViewedWeight& before, const ViewedWeight& after) {
  const WeightRows a(*before.tensor, before.scale);
  const WeightRows b(*after.tensor, after.scale);
  WeightDiff out;
  if (a.rows() != b.rows() || a.columns() != b.columns()) {
    out.same_shape = false;
    out.same_values = false;
    return out;
  }
  const bool same_form = a.form() == b.form() && before.tensor->dtype == after.tensor->dtype;
  const bool coded = a.form() != WeightForm::kPlain || b.form() != WeightForm::kPlain;
  out.nibbles_swapped = same_form && a.form() == WeightForm::kFp4;
  out.same_codes = same_form;
  out.elements = a.rows() * a.columns();
  CodeCounter codes_a;
  CodeCounter codes_b;
  std::vector<float> values_a(std::min(kBand, a.rows()) * a.columns());
  std::vector<float> values_b(values_a.size());
  std::vector<float> row_changes(a.rows());
  Sums total;
  for (std::size_t first = 0; first < a.rows(); first += kBand) {
    const std::size_t rows = std::min(kBand, a.rows() - first);
    const std::size_t count = rows * a.columns();
    const auto bytes_a = a.codes(first, rows);
    const auto bytes_b = b.codes(first, rows);
    if (same_form) {
      out.same_codes = out.same_codes && std::ranges::equal(bytes_a, bytes_b);
      out.nibbles_swapped = out.nibbles_swapped && halves_swapped(bytes_a, bytes_b);
    }
    if (coded) {
      if (a.form() != WeightForm::kPlain) codes_a.add(bytes_a);
      if (b.form() != WeightForm::kPlain) codes_b.add(bytes_b);
    }
    const std::span<float> band_a = std::span(values_a).first(count);
    const std::span<float> band_b = std::span(values_b).first(count);
    a.decode(first, rows, band_a);
    b.decode(first, rows, band_b);
    take_out_broken(band_a, band_b, out);
    diff_amax(band_a, band_b, rows, a.columns(), out);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row_a = band_a.data() + r * a.columns();
      const float* row_b = band_b.data() + r * a.columns();
      const std::size_t changed = count_changed(row_a, row_b, a.columns());
      out.changed_elements += changed;
      const Sums sums = row_sums(row_a, row_b, a.columns());
      total.add(sums);
      if (changed == 0) continue;
      row_changes[first + r] = static_cast<float>(ratio(sums.difference, sums.old_squares));
      out.max_abs_change =
          std::max<double>(out.max_abs_change, largest_difference(row_a, row_b, a.columns()));
    }
    release_pages(std::as_bytes(bytes_a));
    release_pages(std::as_bytes(bytes_b));
  }
  if (out.changed_elements > 0) out.same_values = false;
  out.old_norm = std::sqrt(total.old_squares);
  out.new_norm = std::sqrt(total.new_squares);
  out.relative_change = ratio(total.difference, total.old_squares);
  out.cosine = total.product / std::sqrt(total.old_squares * total.new_squares);
  if (total.old_squares > 0) {
    out.gain = total.product / total.old_squares;
    const double rest = std::max(0.0, total.new_squares - out.gain * out.gain * total.old_squares);
    out.gain_residual = ratio(rest, total.new_squares);
  }
  if (a.form() != WeightForm::kPlain) out.old_codes = codes_a.shares(a.form());
  if (b.form() != WeightForm::kPlain) out.new_codes = codes_b.shares(b.form());
  diff_scales(a, b, out);
  if (same_form && !out.same_values && before.scale == nullptr) {
    find_permutation(*before.tensor, *after.tensor, out);
  }
  find_outlier_rows(row_changes, out);
  out.nibbles_swapped = out.nibbles_swapped && !out.same_values;
  return out;
}

}  // namespace cupel
