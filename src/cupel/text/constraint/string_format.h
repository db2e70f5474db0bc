// The values of "format", as patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cupel {

// An anchored pattern whose strings all have the format (not all strings of the format, where its
// grammar is larger); nothing for formats that are not supported.
std::optional<std::string> format_pattern(std::string_view format);

// The supported ones, for messages.
std::string supported_formats();

}  // namespace cupel
