// Regular expressions of JSON Schema (ECMA-262) as expressions over JSON string contents.
#pragma once

#include <string_view>

#include "cupel/text/constraint/json_text.h"

namespace cupel {

// The contents of strings in which the pattern is found (anchors bind it to the ends), without the
// quotes, in usual form. By code point, as with the u flag. Supported: literals, ., classes,
// groups,
// |, quantifiers, \d \w \s and their complements, character escapes, ^ and $ at the ends of the
// whole or of an alternative of it. Throws InputError, naming `where`, for what is no regular
// language or is not supported (look-around, back references, \b, \p), with its place, and for
// counted repetitions that come to more than kMaxPatternStates states.
ExprId add_pattern(JsonText& json, std::string_view pattern, std::string_view where);
inline constexpr std::size_t kMaxPatternStates = 4096;

}  // namespace cupel
