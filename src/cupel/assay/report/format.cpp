#include "cupel/assay/report/format.h"

#include <fmt/format.h>

namespace cupel {

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

std::string range(const Interval& i, double scale) {
  return fmt::format("{}..{}", points(scale * i.low), points(scale * i.high));
}

std::string points(double value) {
  // "-0.00" would look like a sign.
  return fmt::format("{:.2f}", value > -0.005 && value < 0.005 ? 0.0 : value);
}

std::string p_value(double p) {
  return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p);
}

std::string p_is(double p) {
  return p < 0.0001 ? "p < 0.0001" : "p = " + p_value(p);
}

std::string point_word(double value) {
  return value == 1 ? "point" : "points";
}

std::string counted(std::size_t n, const std::string& singular) {
  return fmt::format("{} {}{}", n, singular, n == 1 ? "" : "s");
}

}  // namespace cupel
