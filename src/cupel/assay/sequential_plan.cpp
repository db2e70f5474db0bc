#include "cupel/assay/sequential_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr int kGrid = 1201;
constexpr double kReach = 7;  // standard deviations of the last look

// Sum of r passes of run noise in both arms, in points: variance r.
class Walk {
 public:
  Walk(double pass_deviation, int most) : deviation_(pass_deviation) {
    const double reach = kReach * deviation_ * std::sqrt(most);
    step_ = 2 * reach / (kGrid - 1);
    for (int i = 0; i < kGrid; ++i) grid_.push_back(-reach + step_ * i);
  }

  void advance(int passes) {
    const double sigma = deviation_ * std::sqrt(passes);
    const auto density = [&](double x) {
      return std::exp(-x * x / (2 * sigma * sigma)) / (sigma * std::sqrt(2 * std::numbers::pi));
    };
    std::vector<double> next(kGrid);
    for (std::size_t i = 0; i < kGrid; ++i) {
      if (mass_.empty()) {
        next[i] = density(grid_[i]) * step_;
        continue;
      }
      for (std::size_t j = 0; j < kGrid; ++j) {
        if (mass_[j] > 0) next[i] += mass_[j] * density(grid_[i] - grid_[j]) * step_;
      }
    }
    mass_ = std::move(next);
  }

  // Takes out the mass at x < limit or x >= limit and returns it. The cell that the limit cuts is
  // shared.
  double take(double limit, bool below) {
    double taken = 0;
    for (std::size_t i = 0; i < kGrid; ++i) {
      const double part_below = std::clamp((limit - grid_[i]) / step_ + 0.5, 0.0, 1.0);
      const double part = mass_[i] * (below ? part_below : 1 - part_below);
      taken += part;
      mass_[i] -= part;
    }
    return taken;
  }

 private:
  double deviation_;
  double step_ = 0;
  std::vector<double> grid_;
  std::vector<double> mass_;
};

}  // namespace

Outcome sequential_outcome(const Study& study, double loss, double margin, const LookPlan& plan,
                           int cells) {
  check(plan);
  if (study.items < 1 || study.unstable < 0 || study.changed_squares < 0 || cells < 1) {
    throw InputError("plan", "items, cells, and no negative noise",
                     fmt::format("{} items, u = {}, H = {}, {} cells", study.items, study.unstable,
                                 study.changed_squares, cells));
  }
  const double level = plan.alpha / static_cast<double>(plan.repeats.size());
  const double z_pass = normal_quantile(1 - level);
  const double z_regression = normal_quantile(1 - level / cells);
  Study at = study;
  at.repeats_reference = at.repeats_candidate = 1;
  const double pass_deviation = run_error(at);
  // Without run noise there is a single point, far from grids.
  Walk walk(std::max(pass_deviation, 1e-9), plan.repeats.back());
  Outcome result;
  double open = 1;
  int before = 0;
  for (const int repeats : plan.repeats) {
    walk.advance(repeats - before);
    result.repeats += open * (repeats - before);
    before = repeats;
    at.repeats_reference = at.repeats_candidate = repeats;
    const double se_new = new_items_error(at);
    const double se_set = 100.0 / study.items * std::sqrt((study.unstable + 2) / 2 / repeats);
    const double pass_below = margin - z_pass * (repeats >= 2 ? se_set : se_new) - loss;
    const double regression_from = z_regression * se_new - loss;
    const double pass = walk.take(pass_below * repeats, true);
    const double regression = walk.take(std::max(regression_from, pass_below) * repeats, false);
    result.pass += pass;
    result.regression += regression;
    open -= pass + regression;
  }
  return result;
}

}  // namespace cupel
