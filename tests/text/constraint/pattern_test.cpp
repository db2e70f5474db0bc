// Patterns and ranges against other judges: PCRE2, arithmetic.
#include "cupel/text/constraint/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <charconv>
#include <chrono>
#include <cmath>

#include "support/random.h"
#include "text/constraint/driver.h"
#include "text/random_text.h"
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <pcre2.h>

#include "cupel/text/constraint/automaton.h"
#include "cupel/text/constraint/number_range.h"
#include "cupel/text/constraint/string_format.h"

namespace cupel {
namespace {

using test::Random;

bool accepts(GrammarAutomaton& automaton, std::string_view text) {
  auto at = automaton.start();
  for (const char c : text) at = automaton.step(at, static_cast<std::uint8_t>(c));
  return automaton.complete(at);
}

GrammarAutomaton pattern_automaton(std::string_view pattern) {
  Grammar grammar;
  JsonText json(grammar, {});
  grammar.set_root(add_pattern(json, pattern, "pattern"));
  return GrammarAutomaton(std::move(grammar));
}

// The contents of a JSON string in usual form.
std::string contents(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

class Oracle {
 public:
  explicit Oracle(const std::string& pattern) {
    int error = 0;
    std::size_t offset = 0;
    code_ =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX, &error, &offset, nullptr);
    EXPECT_NE(code_, nullptr) << pattern;
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Oracle() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  bool finds(const std::string& text) const {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_,
                       nullptr) >= 0;
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

// A random pattern of what both know alike, over few letters so that strings meet it.
std::string random_pattern(Random& random, int depth) {
  const char* atoms[] = {"a",      "b",   "é",   "😀",  "[ab]", "[^a]",
                         "[a-cé]", "\\d", "\\w", "\\.", "\\n",  "\\\""};
  std::string out;
  for (std::size_t i = 1 + random.below(3); i-- > 0;) {
    std::string atom =
        depth > 0 && random.below(3) == 0
            ? (random.below(2) == 0 ? "(" : "(?:") + random_pattern(random, depth - 1) + ")"
            : atoms[random.below(std::size(atoms))];
    const char* quantifiers[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "+?"};
    out += atom + quantifiers[random.below(std::size(quantifiers))];
  }
  if (depth > 0 && random.below(4) == 0) out += "|" + random_pattern(random, depth - 1);
  return out;
}

TEST(Pattern, FindsWhatPcre2Finds) {
  const std::vector<std::string_view> letters = {"a", "b", "c",  "é",  "😀",
                                                 "1", ".", "\n", "\"", "_"};
  test::RandomText texts(4);
  Random random(4);
  std::size_t found = 0, checked = 0;
  for (int i = 0; i < 300; ++i) {
    std::string pattern = random_pattern(random, 2);
    // An anchor binds one alternative.
    if (pattern.find('|') != std::string::npos) pattern = "(" + pattern + ")";
    if (random.below(2) == 0) pattern = "^" + pattern;
    if (random.below(2) == 0) pattern += "$";
    SCOPED_TRACE(pattern);
    GrammarAutomaton automaton = pattern_automaton(pattern);
    const Oracle oracle(pattern);
    for (int j = 0; j < 60; ++j) {
      const std::string text = texts.pick(letters, texts.below(6));
      ASSERT_EQ(accepts(automaton, contents(text)), oracle.finds(text)) << text;
      found += oracle.finds(text) ? 1 : 0;
      ++checked;
    }
  }
  EXPECT_GT(found, checked / 10);
  EXPECT_LT(found, checked * 9 / 10);
}

TEST(Pattern, AnchorsBindAlternatives) {
  GrammarAutomaton automaton = pattern_automaton("^a|b$|^c$");
  for (const char* text : {"a", "ax", "xb", "c"}) EXPECT_TRUE(accepts(automaton, text)) << text;
  for (const char* text : {"", "xa", "bx", "cx", "xc"})
    EXPECT_FALSE(accepts(automaton, text)) << text;
}

TEST(NumberRange, IntegersAreThoseBetween) {
  Random random(9);
  for (int i = 0; i < 200; ++i) {
    const int magnitude = 1 << (1 + random.below(14));
    auto low = static_cast<std::int64_t>(random.below(2 * static_cast<std::size_t>(magnitude))) -
               magnitude;
    auto high = low + static_cast<std::int64_t>(random.below(static_cast<std::size_t>(magnitude)));
    Grammar grammar;
    grammar.set_root(integer_between(grammar, low, high));
    GrammarAutomaton automaton(std::move(grammar));
    for (std::int64_t n = low - 50; n <= high + 50;
         n += 1 + static_cast<std::int64_t>(random.below(9))) {
      ASSERT_EQ(accepts(automaton, std::to_string(n)), low <= n && n <= high)
          << low << ' ' << n << ' ' << high;
    }
    ASSERT_TRUE(accepts(automaton, std::to_string(low)) &&
                accepts(automaton, std::to_string(high)));
    ASSERT_FALSE(accepts(automaton, "-0") || accepts(automaton, "00"));
  }
  Grammar none;
  none.set_root(integer_between(none, 3, 2));
  EXPECT_EQ(none.least_lengths()[none.root()], Grammar::kNever);
}

TEST(NumberRange, DecimalsAreThoseBetween) {
  Random random(10);
  const double kSteps[] = {1, 0.5, 0.01, 0.001, 100};
  std::size_t inside = 0, checked = 0;
  for (int i = 0; i < 300; ++i) {
    const double step = kSteps[random.below(5)];
    // As short decimals.
    const auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
    const double low = rounded(step * (static_cast<double>(random.below(400)) - 200));
    const double high = rounded(low + step * static_cast<double>(random.below(300)));
    const bool from = random.below(4) > 0, to = random.below(4) > 0;
    NumberBounds bounds;
    if (from) bounds.low = Decimal::of(low);
    if (to) bounds.high = Decimal::of(high);
    bounds.low_open = random.below(2) == 0;
    bounds.high_open = random.below(2) == 0;
    Grammar grammar;
    const auto range = number_between(grammar, bounds);
    ASSERT_TRUE(range);
    grammar.set_root(*range);
    GrammarAutomaton automaton(std::move(grammar));
    for (int j = 0; j < 40; ++j) {
      std::string text = std::to_string(static_cast<std::int64_t>(
          (random.below(2) == 0 ? low : high) + static_cast<double>(random.below(5)) - 2));
      if (random.below(8) == 0) text = random.below(2) == 0 ? "-0" : "0";
      if (random.below(4) > 0) {
        text += '.';
        const std::size_t places = 1 + random.below(4);
        const std::string near = bounds.low ? bounds.low->fraction : "05";
        for (std::size_t k = 0; k < places; ++k) {
          text += random.below(2) == 0 && k < near.size()
                      ? near[k]
                      : static_cast<char>('0' + random.below(10));
        }
      }
      const double value = std::stod(text);
      const bool in = (!from || (bounds.low_open ? value > low : value >= low)) &&
                      (!to || (bounds.high_open ? value < high : value <= high));
      // A zero with a sign is not written.
      const bool minus_zero = value == 0 && text[0] == '-';
      ASSERT_EQ(accepts(automaton, text), in && !minus_zero)
          << text << " from " << low << bounds.low_open << from << " to " << high
          << bounds.high_open << to;
      inside += in ? 1 : 0;
      ++checked;
    }
  }
  EXPECT_GT(inside, checked / 5);
}

TEST(NumberRange, DecimalsOfDoubles) {
  const auto shown = [](double value) {
    const auto d = Decimal::of(value);
    return d ? std::string(d->negative ? "-" : "") + d->whole + "." + d->fraction : "none";
  };
  EXPECT_EQ(shown(0), "0.");
  EXPECT_EQ(shown(-0.1), "-0.1");
  EXPECT_EQ(shown(1e-7), "0.0000001");
  EXPECT_EQ(shown(123456789012345), "123456789012345.");
  EXPECT_EQ(shown(1e14), "100000000000000.");
  EXPECT_EQ(shown(1e15), "none");
  EXPECT_EQ(shown(0.1 + 0.2), "none");
  EXPECT_EQ(shown(1e-16), "none");
}

// Strings that come out of a format, by rules of their own.
TEST(StringFormat, RandomStringsHaveIt) {
  const auto is_date = [](std::string_view text) {
    int y = 0, m = 0, d = 0;
    const auto number = [&](std::size_t at, std::size_t length, int& value) {
      const char* end = text.data() + at + length;
      return std::from_chars(text.data() + at, end, value).ptr == end;
    };
    return text.size() == 10 && number(0, 4, y) && number(5, 2, m) && number(8, 2, d) &&
           (std::chrono::year(y) / m / d).ok();
  };
  Random random(12);
  for (const char* format :
       {"date", "date-time", "time", "ipv4", "uuid", "email", "hostname", "uri"}) {
    const auto constraint = test::schema_constraint({{"type", "string"}, {"format", format}});
    for (int i = 0; i < 30; ++i) {
      auto text = test::random_output(*constraint, *test::mixed_vocabulary(), random, 60);
      ASSERT_TRUE(text);
      const std::string value = nlohmann::json::parse(*text);
      SCOPED_TRACE(value);
      const std::string_view name = format;
      if (name == "date" || name == "date-time") {
        EXPECT_TRUE(is_date(value.substr(0, 10)));
      }
      in_addr address{};
      if (name == "ipv4") {
        EXPECT_EQ(inet_pton(AF_INET, value.c_str(), &address), 1);
      }
      if (name == "uuid") {
        EXPECT_EQ(value.size(), 36U);
        EXPECT_EQ(value[8], '-');
      }
      if (name == "email") {
        EXPECT_EQ(std::count(value.begin(), value.end(), '@'), 1);
      }
    }
  }
  EXPECT_FALSE(format_pattern("regex"));
}

}  // namespace
}  // namespace cupel
