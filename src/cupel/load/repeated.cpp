#include "cupel/load/repeated.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cupel {

RepeatedFigure repeated_figure(const std::vector<double>& values) {
  std::vector<double> there = values;
  std::erase_if(there, [](double value) { return !std::isfinite(value); });
  RepeatedFigure figure{.repeats = static_cast<int>(there.size()),
                        .mean = std::numeric_limits<double>::quiet_NaN(),
                        .interval95 = std::nullopt};
  if (there.empty()) return figure;
  figure.mean =
      std::accumulate(there.begin(), there.end(), 0.0) / static_cast<double>(there.size());
  if (there.size() > 1) figure.interval95 = mean_interval(there, 0.95);
  return figure;
}

std::string show(const RepeatedFigure& figure, int digits) {
  if (figure.repeats == 0) return "-";
  std::string text = fmt::format("{:.{}f}", figure.mean, digits);
  if (figure.interval95) {
    const double half = (figure.interval95->high - figure.interval95->low) / 2;
    text += fmt::format(" +- {:.{}f}", half, digits);
  }
  return text;
}

RepeatedFigure over_repeats(std::span<const NamedFigures> repeats, std::string_view name) {
  std::vector<double> values;
  for (const NamedFigures& figures : repeats) {
    for (const auto& [key, value] : figures) {
      if (key == name) values.push_back(value);
    }
  }
  return repeated_figure(values);
}

nlohmann::ordered_json summary_json(std::span<const NamedFigures> repeats) {
  nlohmann::ordered_json summary = nlohmann::ordered_json::object();
  if (repeats.empty()) return summary;
  for (const auto& [name, value] : repeats.front()) {
    const RepeatedFigure figure = over_repeats(repeats, name);
    nlohmann::ordered_json interval;
    if (figure.interval95) interval = {figure.interval95->low, figure.interval95->high};
    summary[name] = {{"mean", figure.mean}, {"interval95", interval}, {"repeats", figure.repeats}};
  }
  return summary;
}

}  // namespace cupel
