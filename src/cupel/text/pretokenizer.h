// The pre-tokeniser of the DeepSeek V3 and V4 vocabularies (spec section 6.1): three "isolated"
// splits, each run inside the pieces of the one before. Merges never cross a piece boundary.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace cupel {

// The three regular expressions this pre-tokeniser implements, as tokenizer.json spells them (the
// published file has the characters CR and LF where these have the escapes \r and \n).
inline constexpr std::array<std::string_view, 3> kSplitPatterns = {
    R"(\p{N}{1,3})",
    "[一-龥぀-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

// The pieces of `text` in order; their concatenation is `text`. Any bytes are accepted. A byte that
// is not part of a valid UTF-8 sequence is a piece of its own, and the valid text on either side of
// it is split as if it stood alone (so whitespace before it counts as whitespace at the end).
// \s is Unicode White_Space, as in the regex engine of the published tokenizer. Linear time.
std::vector<std::string_view> pretokenize(std::string_view text);

}  // namespace cupel
