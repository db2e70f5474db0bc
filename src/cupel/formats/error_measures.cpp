#include "cupel/formats/error_measures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace cupel {
namespace {

// Neumaier's compensated sum: the error does not grow with the number of terms.
class Sum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    const bool sum_larger = std::fabs(sum_) >= std::fabs(term);
    compensation_ += sum_larger ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  // Once the sum is infinite the compensation is NaN and means nothing.
  double value() const { return std::isfinite(sum_) ? sum_ + compensation_ : sum_; }

 private:
  double sum_ = 0.0;
  double compensation_ = 0.0;
};

struct Energies {
  double error = 0.0;      // ||a - r||^2
  double reference = 0.0;  // ||r||^2
};

void check_lengths(std::span<const float> actual, std::span<const float> reference) {
  if (actual.size() != reference.size())
    throw std::invalid_argument("arrays of one length expected");
}

Energies energies(std::span<const float> actual, std::span<const float> reference) {
  check_lengths(actual, reference);
  Sum error;
  Sum energy;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double r = reference[i];
    const double difference = actual[i] - r;
    error.add(difference * difference);
    energy.add(r * r);
  }
  return {error.value(), energy.value()};
}

}  // namespace

double relative_frobenius_error(std::span<const float> actual, std::span<const float> reference) {
  const Energies sums = energies(actual, reference);
  if (sums.error == 0.0) return 0.0;
  return std::sqrt(sums.error) / std::sqrt(sums.reference);
}

double max_abs_error(std::span<const float> actual, std::span<const float> reference) {
  check_lengths(actual, reference);
  double largest = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(actual[i]) - reference[i]);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

double snr_db(std::span<const float> actual, std::span<const float> reference) {
  const Energies sums = energies(actual, reference);
  if (sums.error == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(sums.reference / sums.error);
}

double cosine_similarity(std::span<const float> actual, std::span<const float> reference) {
  check_lengths(actual, reference);
  Sum dot;
  Sum actual_energy;
  Sum reference_energy;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i];
    const double r = reference[i];
    dot.add(a * r);
    actual_energy.add(a * a);
    reference_energy.add(r * r);
  }
  const double cosine =
      dot.value() / (std::sqrt(actual_energy.value()) * std::sqrt(reference_energy.value()));
  // Rounding can carry parallel vectors past 1; a NaN stays one.
  return std::clamp(cosine, -1.0, 1.0);
}

}  // namespace cupel
