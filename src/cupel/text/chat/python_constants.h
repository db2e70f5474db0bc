// String constants of a Python source, read as data: nothing is executed.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cupel {

// The strings that top-level statements `NAME = ...` or `NAME: type = ...` assign, by name; of
// several assignments to a name the last. Values: string literals with any quotes and prefix but b
// and f, adjacent ones joined, in parentheses or not; the name of an earlier string. A dictionary
// of such values gives one entry "NAME[key]" for each. Other statements, and values that need to be
// computed, are passed over. Throws InputError naming the line: an unterminated string or bracket.
std::map<std::string, std::string> python_string_constants(std::string_view source,
                                                           std::string_view where);

}  // namespace cupel
