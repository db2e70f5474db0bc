// A figure over the repeats of a measurement.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cupel/assay/interval.h"

namespace cupel {

struct RepeatedFigure {
  int repeats = 0;  // with this figure
  double mean = 0;  // NaN without any
  // 95 %, Student's t; of one repeat there is none.
  std::optional<Interval> interval95;
};

// Values that are not finite are left out: a repeat without this figure.
RepeatedFigure repeated_figure(const std::vector<double>& values);

// "12.35 +- 0.42", the half width of the interval; "12.35" without one; "-" without a value.
std::string show(const RepeatedFigure& figure, int digits);

// The figures of one repeat, by the names that records give them, in their order.
using NamedFigures = std::vector<std::pair<std::string, double>>;

// The figure `name` over the repeats that have one.
RepeatedFigure over_repeats(std::span<const NamedFigures> repeats, std::string_view name);

// Name -> {"mean", "interval95": [low, high] or null, "repeats"}, for each name of the first.
nlohmann::ordered_json summary_json(std::span<const NamedFigures> repeats);

}  // namespace cupel
