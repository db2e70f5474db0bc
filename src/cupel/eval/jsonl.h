// JSON-lines text: splitting, and errors that name the file and the line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace cupel::jsonl {

// Calls visit(object, where) for each line of `text`, which must hold one JSON object; `where` is
// "NAME:LINE" with lines counted from 1. Lines of blanks only are skipped. Throws InputError for
// the first line that is no JSON object.
void for_each_object(std::string_view text, std::string_view name,
                     const std::function<void(const nlohmann::json&, const std::string&)>& visit);

// The member `key` of `object`, of the type asked for. Throws InputError with `where` and the key.
std::string text_member(const nlohmann::json& object, const char* key, const std::string& where);
std::int64_t integer_member(const nlohmann::json& object, const char* key, const std::string& where,
                            std::int64_t low, std::int64_t high);
double number_member(const nlohmann::json& object, const char* key, const std::string& where);
bool flag_member(const nlohmann::json& object, const char* key, const std::string& where);
// The member as it is. Throws InputError if it is missing.
const nlohmann::json& member(const nlohmann::json& object, const char* key,
                             const std::string& where);

}  // namespace cupel::jsonl
