// The pre-tokeniser against PCRE2 running the regular expressions of the bundled tokenizer.json.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text/random_text.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pcre2.h>

#include "cupel/base/file.h"
#include "cupel/text/pretokenizer.h"

namespace cupel {
namespace {

class Regex {
 public:
  explicit Regex(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (code_ == nullptr) throw std::runtime_error("PCRE2 refuses the pattern " + pattern);
    // Without a just-in-time compiler the interpreter gives the same answers.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  bool find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const {
    const int result = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                   text.size(), from, 0, match_.get(), nullptr);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) throw std::runtime_error("PCRE2 match failed");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_.get());
    begin = range[0];
    end = range[1];
    return true;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

// "Isolated": matches and what lies between them both become pieces.
std::vector<std::string_view> split(const Regex& regex, std::string_view text) {
  std::vector<std::string_view> pieces;
  std::size_t rest = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (rest < text.size() && regex.find(text, rest, begin, end)) {
    if (begin > rest) pieces.push_back(text.substr(rest, begin - rest));
    pieces.push_back(text.substr(begin, end - begin));
    rest = end;
  }
  if (rest < text.size()) pieces.push_back(text.substr(rest));
  return pieces;
}

class PretokenizerOracle : public testing::Test {
 protected:
  PretokenizerOracle() : unassigned_("\\p{Cn}") {
    const auto file =
        nlohmann::json::parse(read_file(CUPEL_SOURCE_DIR "/models/tiny-v4-preview/tokenizer.json"));
    for (const auto& step : file.at("pre_tokenizer").at("pretokenizers")) {
      if (step.at("type") == "Split") regexes_.emplace_back(step.at("pattern").at("Regex"));
    }
  }

  std::vector<std::string_view> expected(std::string_view text) const {
    std::vector<std::string_view> pieces{text};
    for (const Regex& regex : regexes_) {
      std::vector<std::string_view> finer;
      for (const std::string_view piece : pieces) {
        for (const std::string_view part : split(regex, piece)) finer.push_back(part);
      }
      pieces = std::move(finer);
    }
    return pieces;
  }

  // Two programs need not know the same version of Unicode, so characters new to PCRE2 are left
  // out. Its \s has U+180E, which Unicode took from White_Space in 6.3.
  bool comparable(char32_t c) const {
    std::size_t begin = 0;
    std::size_t end = 0;
    return c != 0x180E && !unassigned_.find(test::to_utf8(c), 0, begin, end);
  }

  std::vector<Regex> regexes_;
  Regex unassigned_;
};

TEST_F(PretokenizerOracle, AgreesOnEveryCharacterInContext) {
  ASSERT_EQ(regexes_.size(), 3U);
  int compared = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (c > 0xF0000 && c % 0x1000 > 0x10) continue;  // private use, all alike
    if (!comparable(c)) continue;
    ++compared;
    const std::string x = test::to_utf8(c);
    // Behind and before each kind of neighbour, and three times in a row.
    std::string text;
    for (const char* before : {"a", "a1", "1 ", "  ", "\n", "!", "!a", "", "", "中", "\t"}) {
      text += before;
      text += x;
    }
    ASSERT_EQ(pretokenize(text), expected(text)) << "U+" << std::hex << static_cast<unsigned>(c);
  }
  EXPECT_GT(compared, 140000);
}

TEST_F(PretokenizerOracle, AgreesOnRandomTexts) {
  static constexpr std::string_view kCharacters[] = {
      " ",      " ",      " ",      "\n",     "\r",     "\r\n",   "\t",     "\v",
      "\f",     "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f",
      "\u3000", "\u200b", "\ufeff", "\x01",   "\x7f",   "a",      "Z",      "b",
      "é",      "ß",      "Ж",      "ʰ",      "ǅ",      "\u0301", "\u0903", "\u20dd",
      "\ufe0f", "0",      "7",      "٣",      "५",      "²",      "½",      "Ⅷ",
      "〇",     "𝟗",      "!",      "'",      "<",      "$",      "_",      "~",
      "«",      "—",      "€",      "＋",     "🙂",     "゛",     "中",     "龥",
      "龦",     "あ",     "ー",     "・",     "゠",     "\u3099", "한",     "𠀀"};
  test::RandomText random(3);
  for (int round = 0; round < 60000; ++round) {
    std::string text;
    for (std::size_t i = 1 + random.below(24); i > 0; --i) {
      const char32_t c = random.below(8) == 0 ? random.code_point() : U'\u180e';
      text += comparable(c) ? test::to_utf8(c) : random.pick(kCharacters, 1);
    }
    ASSERT_EQ(pretokenize(text), expected(text)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace cupel
