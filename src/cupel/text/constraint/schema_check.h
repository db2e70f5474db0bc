// What a JSON schema may contain (docs/structured-output.md), looked at before anything is made of
// it.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cupel {

// Throws InputError, naming `where` and the JSON pointer, for the first keyword that is not
// supported or has a value of the wrong kind, for references that lead to no schema of the
// document, and for documents too deep or too large. After it every schema of the document is known
// to be well-formed and can be walked by recursion.
void check_json_schema(const nlohmann::ordered_json& document, std::string_view where);

inline constexpr int kMaxSchemaDepth = 128;              // of nested JSON values
inline constexpr std::size_t kMaxSchemaValues = 50'000;  // JSON values of the document

// "where, pointer", as errors have it.
std::string schema_place(std::string_view where, std::string_view pointer);
// `pointer` and one more step, with ~ and / escaped.
std::string pointer_to(std::string_view pointer, std::string_view step);

// Of the keywords that say nothing about values.
bool is_annotation(std::string_view keyword);

}  // namespace cupel
