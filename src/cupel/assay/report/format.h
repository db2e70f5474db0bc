// Numbers as every report shows them.
#pragma once

#include <string>

#include "cupel/assay/interval.h"

namespace cupel {

std::string percent(double share);                   // 0.9742 -> "97.42"
std::string range(const Interval& i, double scale);  // "96.42..98.15"; both ends times scale
std::string points(double value);                    // "-0.31", never "-0.00"
std::string p_value(double p);                       // "0.0009", "<0.0001"
std::string p_is(double p);                          // "p = 0.0009", "p < 0.0001"
std::string point_word(double value);                // "point" for 1, else "points"

// "3 items", "1 item".
std::string counted(std::size_t n, const std::string& singular);

}  // namespace cupel
