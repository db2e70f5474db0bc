#include "cupel/server/fields.h"

#include <cmath>

#include <fmt/format.h>

#include "cupel/server/http_error.h"
#include "cupel/text/utf8.h"

namespace cupel {

using nlohmann::json;

json parse_body(std::string_view body, int depth) {
  const json::parser_callback_t watch = [&](int at, json::parse_event_t event, json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && at >= depth) {
      throw HttpError(400, fmt::format("body: nested deeper than {} levels", depth));
    }
    return true;
  };
  try {
    json parsed = json::parse(body, watch);
    if (!parsed.is_object()) throw wrong_parameter("body", "a JSON object", shown(parsed));
    return parsed;
  } catch (const json::parse_error& error) {
    throw HttpError(
        400, fmt::format("body: expected JSON in UTF-8, found a fault at byte {}", error.byte));
  } catch (const json::exception&) {
    throw HttpError(400, "body: expected JSON in UTF-8, found a number out of range");
  }
}

std::string shown(const json& value) {
  constexpr std::size_t kShown = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() <= kShown) return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
  return fmt::format("a string of {} bytes", text.size());
}

std::vector<std::int32_t> read_token_ids(const json& list, const std::string& where) {
  if (!list.is_array()) throw wrong_parameter(where, "a list of token ids", shown(list));
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const json& id : list) {
    const bool fits =
        id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
    if (!fits) throw wrong_parameter(where, "token ids", shown(id));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) throw wrong_parameter(path_, "an object", shown(object));
}

std::string Fields::name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const json* Fields::find(const char* key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw wrong_parameter(name(key), "true or false", shown(*value));
  return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(const char* key, std::int64_t least,
                                            std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  // Numbers above the largest int64 are unsigned in the parser.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() &&
                      value->get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most) {
    const bool open =
        most == std::numeric_limits<std::int64_t>::max() || most == std::numeric_limits<int>::max();
    throw wrong_parameter(name(key),
                          open ? fmt::format("an integer of at least {}", least)
                               : fmt::format("an integer from {} to {}", least, most),
                          shown(*value));
  }
  return value->get<std::int64_t>();
}

std::optional<int> Fields::count(const char* key, int least, int most) {
  const auto value = integer(key, least, most);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::optional<float> Fields::number(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<float>())) {
    throw wrong_parameter(name(key), "a number", shown(*value));
  }
  return value->get<float>();
}

std::optional<std::string> Fields::text(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw wrong_parameter(name(key), "a string", shown(*value));
  return value->get<std::string>();
}

std::vector<std::string> Fields::texts(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) {
    throw wrong_parameter(name(key), "a string or a list of strings", shown(*value));
  }
  std::vector<std::string> all;
  for (const json& text : *value) {
    if (!text.is_string()) throw wrong_parameter(name(key), "strings", shown(text));
    all.push_back(text.get<std::string>());
  }
  return all;
}

std::vector<std::int32_t> Fields::ids(const char* key) {
  const json* value = find(key);
  return value == nullptr ? std::vector<std::int32_t>() : read_token_ids(*value, name(key));
}

void Fields::ignore(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void Fields::refuse(const char* key, const char* why, const Json& harmless) {
  const json* value = find(key);
  if (value == nullptr || *value == harmless) return;
  const bool asks_nothing = *value == false || (value->is_string() && *value == "") ||
                            (value->is_structured() && value->empty());
  if (!asks_nothing) throw HttpError(400, fmt::format("{}: {}", name(key), why), name(key));
}

void Fields::end(bool allow) {
  if (allow) return;
  for (const auto& member : object_.items()) {
    if (known_.find(member.key()) != known_.end()) continue;
    const std::string key = name(shown(member.key()));
    throw HttpError(400, fmt::format("{}: no parameter of this interface", key), member.key());
  }
}

}  // namespace cupel
