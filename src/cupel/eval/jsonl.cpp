#include "cupel/eval/jsonl.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"

namespace cupel::jsonl {
namespace {

constexpr std::size_t kExcerpt = 60;  // bytes of a wrong value that an error shows

std::string excerpt(const nlohmann::json& value) {
  // ASCII, so that the cut never falls into a UTF-8 sequence.
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kExcerpt ? text : text.substr(0, kExcerpt) + "...";
}

[[noreturn]] void wrong_type(const nlohmann::json& value, const char* key, const std::string& where,
                             std::string_view expected) {
  throw InputError(fmt::format("{}, \"{}\"", where, key), expected, excerpt(value));
}

}  // namespace

void for_each_object(std::string_view text, std::string_view name,
                     const std::function<void(const nlohmann::json&, const std::string&)>& visit) {
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    nlohmann::json object;
    try {
      object = nlohmann::json::parse(line);
    } catch (const nlohmann::json::parse_error& error) {
      throw InputError(where, "one JSON object",
                       fmt::format("broken JSON at byte {} of the line", error.byte));
    } catch (const nlohmann::json::out_of_range&) {
      throw InputError(where, "one JSON object", "a number out of range");
    }
    if (!object.is_object()) throw InputError(where, "one JSON object", excerpt(object));
    visit(object, where);
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* key,
                             const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) {
    throw InputError(where, fmt::format("a member \"{}\"", key), "an object without it");
  }
  return *found;
}

std::string text_member(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = member(object, key, where);
  if (!value.is_string()) wrong_type(value, key, where, "a string");
  return value.get<std::string>();
}

std::int64_t integer_member(const nlohmann::json& object, const char* key, const std::string& where,
                            std::int64_t low, std::int64_t high) {
  const nlohmann::json& value = member(object, key, where);
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < low ||
      value.get<std::int64_t>() > high) {
    wrong_type(value, key, where, fmt::format("an integer from {} to {}", low, high));
  }
  return value.get<std::int64_t>();
}

double number_member(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = member(object, key, where);
  if (!value.is_number()) wrong_type(value, key, where, "a number");
  return value.get<double>();
}

bool flag_member(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = member(object, key, where);
  if (!value.is_boolean()) wrong_type(value, key, where, "true or false");
  return value.get<bool>();
}

}  // namespace cupel::jsonl
