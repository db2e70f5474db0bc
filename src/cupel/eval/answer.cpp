#include "cupel/eval/answer.h"

namespace cupel {
namespace {

constexpr std::string_view kMark = "#### ";
constexpr std::string_view kBlank = " \t\r";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::int64_t append_digit(std::int64_t value, char digit) {
  const int d = digit - '0';
  if (value > (kLargestAnswer - d) / 10) return kLargestAnswer;
  return value * 10 + d;
}

}  // namespace

std::optional<std::int64_t> last_digits(std::string_view text) {
  std::optional<std::int64_t> value;
  bool in_run = false;
  for (const char c : text) {
    if (c == ',') continue;  // deleted, so "1,319" is one run
    if (is_digit(c)) {
      value = append_digit(in_run ? *value : 0, c);
      in_run = true;
    } else {
      in_run = false;
    }
  }
  return value;
}

std::optional<std::int64_t> marked_answer(std::string_view text) {
  std::optional<std::string_view> marked;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(kMark)) marked = line.substr(kMark.size());
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  if (!marked) return std::nullopt;

  std::string_view number = *marked;
  const std::size_t begin = number.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return std::nullopt;
  number = number.substr(begin, number.find_last_not_of(kBlank) + 1 - begin);
  const bool negative = number.front() == '-';
  if (negative || number.front() == '+') number.remove_prefix(1);
  if (number.empty() || !is_digit(number.front()) || !is_digit(number.back())) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : number) {
    if (c == ',') continue;
    if (!is_digit(c)) return std::nullopt;
    value = append_digit(value, c);
  }
  return negative ? -value : value;
}

}  // namespace cupel
