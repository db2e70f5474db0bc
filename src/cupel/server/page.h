// The page at "/": a chat box. Made of page/index.html when the program is built.
#pragma once

#include <string_view>

namespace cupel {

std::string_view page_html();

}  // namespace cupel
