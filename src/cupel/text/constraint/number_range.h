// Numbers between bounds, as automata over digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupel/text/constraint/grammar.h"

namespace cupel {

// A bound as it is written: sign, digits before and after the point, without superfluous zeros
// but the one before the point.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  // Of at most 15 significant digits and places, within which decimals and doubles compare alike;
  // nothing for others.
  static std::optional<Decimal> of(double value);
};

struct NumberBounds {
  std::optional<Decimal> low, high;
  bool low_open = false, high_open = false;  // whether the bound itself is excluded
};

// Integers from low to high, of at most 18 digits; nothing matches if low > high.
ExprId integer_between(Grammar& grammar, std::int64_t low, std::int64_t high);
inline constexpr std::int64_t kLargestInteger = 999'999'999'999'999'999;

// Numbers within bounds, without exponents: up to 6 places, more if a bound has more, and at most
// 15 digits; up to 9 digits before the point, more if a bound has more. Nothing if these limits do
// not leave room for the digits of both bounds.
std::optional<ExprId> number_between(Grammar& grammar, const NumberBounds& bounds);

}  // namespace cupel
