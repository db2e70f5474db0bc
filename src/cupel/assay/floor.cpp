#include "cupel/assay/floor.h"

#include <cmath>

#include <boost/math/distributions/binomial.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

struct OneRun {
  double fails = 0;
  double passes = 0;
};

void check(const FloorCase& c) {
  if (c.items < 1) throw InputError("items", "1 or more", std::to_string(c.items));
  if (c.retries < 0) throw InputError("retries", "0 or more", std::to_string(c.retries));
  for (const double share : {c.score, c.floor}) {
    if (!(share >= 0 && share <= 1)) {
      throw InputError("score and floor", "a share from 0 to 1", fmt::format("{}", share));
    }
  }
}

OneRun one_run(const FloorCase& c) {
  check(c);
  const double correct = std::round(c.score * c.items);
  double trials = c.items;
  double p = correct / c.items;
  // A floor that is a whole number of items but for rounding is reached by that number.
  double needed = std::ceil(c.floor * c.items - 1e-9);
  if (c.unstable) {
    trials = *c.unstable;
    p = 0.5;
    const double most = 4 * correct * (1 - correct / c.items);
    if (trials < 0 || trials > most + 1) {
      throw InputError("unstable items", fmt::format("0 to {:.0f} at this score", most),
                       std::to_string(*c.unstable));
    }
    needed -= std::floor(correct - trials / 2);
  }
  if (needed <= 0) return {0, 1};
  if (needed > trials) return {1, 0};
  const boost::math::binomial_distribution<double> run(trials, p);
  return {boost::math::cdf(run, needed - 1),
          boost::math::cdf(boost::math::complement(run, needed - 1))};
}

}  // namespace

double floor_fails(const FloorCase& c) {
  return std::pow(one_run(c).fails, 1 + c.retries);
}

double floor_passes(const FloorCase& c) {
  const OneRun run = one_run(c);
  if (run.passes >= 1) return 1;
  return -std::expm1((1 + c.retries) * std::log1p(-run.passes));
}

int propose_floor(const FloorCase& c, double false_alarm) {
  if (!(false_alarm >= 0 && false_alarm <= 1)) {
    throw InputError("false alarm rate", "a share from 0 to 1", fmt::format("{}", false_alarm));
  }
  // The chance to fail rises with the floor.
  int low = 0;
  int high = c.items;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    FloorCase tried = c;
    tried.floor = static_cast<double>(middle) / c.items;
    if (floor_fails(tried) <= false_alarm) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace cupel
