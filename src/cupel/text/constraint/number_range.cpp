#include "cupel/text/constraint/number_range.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

namespace cupel {
namespace {

constexpr std::size_t kDigits = 15;  // that a double keeps
constexpr std::size_t kPlaces = 6;
constexpr std::size_t kWhole = 9;

std::uint32_t u32(std::size_t n) {
  return static_cast<std::uint32_t>(n);
}

class Builder {
 public:
  // `whole`: the digits before the point where no bound says how many.
  explicit Builder(Grammar& grammar, std::size_t whole = 0) : g_(grammar), whole_(whole) {}

  ExprId digit(int first, int last) {
    ByteSet set;
    for (int d = first; d <= last; ++d) set.set(static_cast<std::size_t>('0' + d));
    return g_.bytes(set);
  }
  ExprId digits(std::size_t min, std::size_t max) {
    return g_.repeat(digit(0, 9), u32(min), u32(max));
  }

  // Digit strings of the length of low and high, from one to the other; null: without that end.
  ExprId same_length(const char* low, const char* high, std::size_t length) {
    if (length == 0) return g_.literal("");
    if (low == nullptr && high == nullptr) return digits(length, length);
    const int from = low != nullptr ? *low - '0' : 0, to = high != nullptr ? *high - '0' : 9;
    const char* low_rest = low != nullptr ? low + 1 : nullptr;
    const char* high_rest = high != nullptr ? high + 1 : nullptr;
    const auto go = [&](int d, const char* l, const char* h) {
      return g_.sequence({digit(d, d), same_length(l, h, length - 1)});
    };
    if (from == to) return go(from, low_rest, high_rest);
    std::vector<ExprId> alternatives;
    const int first = low != nullptr ? from + 1 : from, last = high != nullptr ? to - 1 : to;
    if (low != nullptr) alternatives.push_back(go(from, low_rest, nullptr));
    if (first <= last) {
      alternatives.push_back(g_.sequence({digit(first, last), digits(length - 1, length - 1)}));
    }
    if (high != nullptr) alternatives.push_back(go(to, nullptr, high_rest));
    return g_.choice(alternatives);
  }

  // From low to high, both at least 0.
  ExprId natural(std::int64_t low, std::int64_t high) {
    std::vector<ExprId> alternatives;
    while (low <= high) {
      const std::string first = std::to_string(low);
      const std::string nines(first.size(), '9');
      const std::int64_t end = std::min(high, std::int64_t{std::stoll(nines)});
      alternatives.push_back(same_length(first.c_str(), std::to_string(end).c_str(), first.size()));
      low = end + 1;
    }
    return g_.choice(alternatives);
  }

  // A part of a fraction's bound: the digits still to compare with, or free of it.
  struct End {
    bool free = true;
    std::string_view digits = {};
    bool open = false;

    // Whether a low end lets the digits stop here.
    bool lets_stop() const { return free || (digits.empty() && !open); }
    int digit() const { return digits.empty() ? 0 : digits.front() - '0'; }
    End rest() const { return {false, digits.empty() ? digits : digits.substr(1), open}; }
  };

  // Digits, `first`: at least one, that keep a fraction between its ends.
  ExprId fraction_digits(End low, End high, std::size_t left, bool first) {
    // No more digits are zeros: a low end of zero is met for good, a high one unless it is zero and
    // open.
    low.free = low.lets_stop();
    if (low.free && high.free) return digits(first ? 1 : 0, left);
    std::vector<ExprId> alternatives;
    const bool ends = low.free && (high.free || !high.digits.empty() || !high.open);
    if (ends && !first) alternatives.push_back(g_.literal(""));
    const int from = low.free ? -1 : low.digit(), to = high.free ? 10 : high.digit();
    if (left > 0 && from <= to) {
      const auto go = [&](int d, const End& l, const End& h) {
        alternatives.push_back(g_.sequence({digit(d, d), fraction_digits(l, h, left - 1, false)}));
      };
      if (from == to) {
        go(from, low.rest(), high.rest());
      } else {
        if (!low.free) go(from, low.rest(), End{});
        const int between_first = from + 1, between_last = to - 1;
        if (between_first <= between_last) {
          alternatives.push_back(
              g_.sequence({digit(between_first, between_last), digits(0, left - 1)}));
        }
        if (!high.free) go(to, End{}, high.rest());
      }
    }
    return g_.choice(alternatives);
  }

  // The point and what follows it, or nothing.
  ExprId fraction(const End& low, const End& high, std::size_t places) {
    std::vector<ExprId> alternatives;
    if (low.lets_stop() && (high.free || !high.digits.empty() || !high.open)) {
      alternatives.push_back(g_.literal(""));
    }
    if (places > 0) {
      alternatives.push_back(
          g_.sequence({g_.literal("."), fraction_digits(low, high, places, true)}));
    }
    return g_.choice(alternatives);
  }

  // Numbers of at least 0 between two decimals taken without their signs.
  ExprId magnitude(const Decimal& low, bool low_open, const Decimal* high, bool high_open,
                   std::size_t places) {
    const std::int64_t first = std::stoll(low.whole);
    const End low_end{false, low.fraction, low_open};
    const End high_end = high != nullptr ? End{false, high->fraction, high_open} : End{};
    const std::int64_t last =
        high != nullptr ? std::stoll(high->whole)
                        : std::stoll(std::string(std::max(whole_, low.whole.size()), '9')) + 1;
    if (first > last) return g_.choice({});
    if (first == last) {
      return g_.sequence({g_.literal(low.whole), fraction(low_end, high_end, places)});
    }
    std::vector<ExprId> alternatives = {
        g_.sequence({g_.literal(low.whole), fraction(low_end, {}, places)})};
    if (first + 1 <= last - 1) {
      alternatives.push_back(g_.sequence({natural(first + 1, last - 1), fraction({}, {}, places)}));
    }
    if (high != nullptr) {
      alternatives.push_back(
          g_.sequence({g_.literal(high->whole), fraction({}, high_end, places)}));
    }
    return g_.choice(alternatives);
  }

 private:
  Grammar& g_;
  std::size_t whole_;
};

}  // namespace

std::optional<Decimal> Decimal::of(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  Decimal d;
  d.negative = value < 0;
  const std::string text = fmt::format("{:.{}e}", std::abs(value), kDigits - 1);
  if (std::strtod(text.c_str(), nullptr) != std::abs(value)) return std::nullopt;
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  const std::string digits = text.substr(0, 1) + text.substr(2, kDigits - 1);
  if (value == 0) return d;
  if (exponent >= static_cast<int>(kDigits) || exponent < -static_cast<int>(kDigits)) {
    return std::nullopt;
  }
  if (exponent >= 0) {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    d.whole = digits.substr(0, whole);
    d.fraction = digits.substr(whole);
  } else {
    d.fraction = std::string(static_cast<std::size_t>(-exponent) - 1, '0') + digits;
  }
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.fraction.size() > kDigits) return std::nullopt;
  return d;
}

ExprId integer_between(Grammar& grammar, std::int64_t low, std::int64_t high) {
  Builder builder(grammar);
  low = std::max(low, -kLargestInteger);
  high = std::min(high, kLargestInteger);
  std::vector<ExprId> alternatives;
  if (high >= 0) alternatives.push_back(builder.natural(std::max<std::int64_t>(low, 0), high));
  if (low < 0) {
    alternatives.push_back(grammar.sequence(
        {grammar.literal("-"), builder.natural(std::max<std::int64_t>(-high, 1), -low)}));
  }
  return grammar.choice(alternatives);
}

std::optional<ExprId> number_between(Grammar& grammar, const NumberBounds& bounds) {
  const Decimal zero;
  std::size_t whole = 1, places = 0;
  for (const auto* bound : {&bounds.low, &bounds.high}) {
    if (!*bound) continue;
    whole = std::max(whole, (*bound)->whole.size());
    places = std::max(places, (*bound)->fraction.size());
  }
  if (whole + places > kDigits) return std::nullopt;
  if (!bounds.low || !bounds.high) whole = std::max(whole, std::min(kWhole, kDigits - places));
  places = std::max(places, std::min(kPlaces, kDigits - whole));

  Builder builder(grammar, whole);
  std::vector<ExprId> alternatives;
  const Decimal* low = bounds.low ? &*bounds.low : nullptr;
  const Decimal* high = bounds.high ? &*bounds.high : nullptr;
  if (high == nullptr || !high->negative) {
    const bool from_zero = low == nullptr || low->negative;
    alternatives.push_back(builder.magnitude(from_zero ? zero : *low, !from_zero && bounds.low_open,
                                             high, bounds.high_open, places));
  }
  if (low == nullptr || low->negative) {
    const bool to_zero = high == nullptr || !high->negative;
    // Zero has been written without a sign.
    alternatives.push_back(
        grammar.sequence({grammar.literal("-"),
                          builder.magnitude(to_zero ? zero : *high, to_zero || bounds.high_open,
                                            low, bounds.low_open, places)}));
  }
  return grammar.choice(alternatives);
}

}  // namespace cupel
