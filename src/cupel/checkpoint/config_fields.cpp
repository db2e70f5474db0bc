#include "cupel/checkpoint/config_fields.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using nlohmann::json;

std::string found_text(const json& value) {
  constexpr std::size_t kLongest = 100;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// False if `value` is no integer or does not fit.
bool get_integer(const json& value, std::int64_t& out) {
  if (!value.is_number_integer()) return false;
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest) return false;
  out = value.get<std::int64_t>();
  return true;
}

std::string range_text(std::int64_t lowest, std::int64_t highest) {
  return lowest == highest ? fmt::format("{}", lowest)
                           : fmt::format("an integer from {} to {}", lowest, highest);
}

}  // namespace

ConfigFields::ConfigFields(const json& object, std::string file, std::string prefix)
    : object_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {}

bool ConfigFields::has(std::string_view name) const {
  const auto found = object_->find(name);
  return found != object_->end() && !found->is_null();
}

const json& ConfigFields::value(std::string_view name, std::string_view expected) const {
  const auto found = object_->find(name);
  if (found == object_->end()) fail(name, expected, "no such field");
  return *found;
}

void ConfigFields::fail(std::string_view name, std::string_view expected,
                        std::string_view found) const {
  throw InputError(fmt::format("{}: field {}{}", file_, prefix_, name), expected, found);
}

void ConfigFields::fail(std::string_view name, std::string_view expected) const {
  const auto found = object_->find(name);
  fail(name, expected, found == object_->end() ? "no such field" : found_text(*found));
}

std::int64_t ConfigFields::integer64(std::string_view name, std::int64_t lowest,
                                     std::int64_t highest) const {
  const std::string expected = range_text(lowest, highest);
  std::int64_t out = 0;
  if (!get_integer(value(name, expected), out) || out < lowest || out > highest) {
    fail(name, expected);
  }
  return out;
}

int ConfigFields::integer(std::string_view name, int lowest, int highest) const {
  return static_cast<int>(integer64(name, lowest, highest));
}

std::vector<int> ConfigFields::integers(std::string_view name, int lowest, int highest) const {
  const std::string expected = fmt::format("an array of integers from {} to {}", lowest, highest);
  const json& array = value(name, expected);
  if (!array.is_array()) fail(name, expected);
  std::vector<int> out;
  for (std::size_t i = 0; i < array.size(); ++i) {
    std::int64_t item = 0;
    if (!get_integer(array[i], item) || item < lowest || item > highest) {
      fail(fmt::format("{}[{}]", name, i), range_text(lowest, highest), found_text(array[i]));
    }
    out.push_back(static_cast<int>(item));
  }
  return out;
}

double ConfigFields::positive(std::string_view name) const {
  constexpr std::string_view kExpected = "a number greater than 0";
  const json& number = value(name, kExpected);
  if (!number.is_number()) fail(name, kExpected);
  const double out = number.get<double>();
  if (!(out >= std::numeric_limits<float>::min() && out <= std::numeric_limits<float>::max())) {
    fail(name, "a number greater than 0 within the range of float32");
  }
  return out;
}

std::string ConfigFields::text(std::string_view name) const {
  const json& string = value(name, "a string");
  if (!string.is_string()) fail(name, "a string");
  return string.get<std::string>();
}

ConfigFields ConfigFields::object(std::string_view name) const {
  const json& inner = value(name, "an object");
  if (!inner.is_object()) fail(name, "an object");
  return {inner, file_, fmt::format("{}{}.", prefix_, name)};
}

void ConfigFields::require_text(std::string_view name, std::string_view only) const {
  const std::string expected = fmt::format("\"{}\", the only supported value", only);
  if (value(name, expected) != only) fail(name, expected);
}

void ConfigFields::require_integer(std::string_view name, int only, std::string_view why) const {
  const std::string expected = fmt::format("{} ({})", only, why);
  std::int64_t out = 0;
  if (!get_integer(value(name, expected), out) || out != only) fail(name, expected);
}

void ConfigFields::require_bool_if_present(std::string_view name, bool only) const {
  if (has(name) && *object_->find(name) != only) {
    fail(name, fmt::format("{}, the only supported value", only));
  }
}

}  // namespace cupel
