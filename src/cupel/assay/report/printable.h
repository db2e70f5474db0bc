// Text of models and servers made fit to be shown: it may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

// Valid UTF-8 that XML 1.0 and HTML can hold and that cannot reorder what stands around it.
// Ill-formed sequences become U+FFFD (text/utf8.h); a control character below U+0020 other than tab
// and newline becomes its picture (U+2400 + value), U+007F becomes U+2421; controls U+0080..U+009F,
// bidirectional controls, U+FFFE and U+FFFF become U+FFFD. The result is a fixed point.
std::string printable(std::string_view text);

// The first character of valid UTF-8 with the marks of no width that follow it; empty for none.
std::string_view first_character(std::string_view text);

}  // namespace cupel
