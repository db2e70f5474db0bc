// Text with blanks in braces, filled in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace cupel {

// `text` with each "{name}" of the list replaced by its value. Values are not looked into.
std::string fill_template(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::string_view>> values);

// The tools template of the prompt: `schemas` is one JSON text a line.
std::string fill_tools_template(std::string_view text, std::string_view schemas);

}  // namespace cupel
