// JSON schemas as grammars (docs/structured-output.md has the supported subset).
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "cupel/text/constraint/grammar.h"

namespace cupel {

struct JsonStyle {
  bool spaces = true;  // one space may follow each , and : (never must)
};

// The values of a schema, as JSON text; members in the order in which the schema declares them,
// undeclared ones after them. Throws InputError, naming `where` and the JSON pointer of the place,
// for keywords that are not supported, keywords of a wrong type, a schema nested too deep or too
// large, and one that no value satisfies.
ExprId add_json_schema(Grammar& grammar, const nlohmann::ordered_json& schema,
                       std::string_view where, const JsonStyle& style = {});

// Any JSON object; values in it nest at most kFreeDepth deep.
ExprId add_json_object(Grammar& grammar, const JsonStyle& style = {});
inline constexpr int kFreeDepth = 16;

}  // namespace cupel
