// Reading a number out of an answer text: the lenient rule of SGLang's few-shot GSM8K test
// (serving-stack.md section C), and a strict rule beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cupel {

// Values from here on are not told apart: a longer run of digits saturates at this value. A task
// whose gold is as large is refused, so a saturated value is never correct.
inline constexpr std::int64_t kLargestAnswer = INT64_MAX;

// Lenient rule: commas are deleted, then the last run of ASCII digits is the answer. Sign and
// decimals are ignored ("3.50" reads 50, "-4" reads 4). nullopt (an invalid answer) only if the
// text has no digit.
std::optional<std::int64_t> last_digits(std::string_view text);

// Strict rule: the last line that begins with "#### " must hold one integer and nothing else (an
// optional sign, digits, commas between digits; blanks around it are ignored). nullopt otherwise.
std::optional<std::int64_t> marked_answer(std::string_view text);

}  // namespace cupel
