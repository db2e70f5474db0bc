#include "text/constraint/random_schema.h"

#include <algorithm>
#include <limits>

#include "text/random_text.h"

namespace cupel::test {
namespace {

// Patterns and strings in which they are found.
struct Pattern {
  const char* pattern;
  std::vector<const char*> strings;
};
const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
      {"^[a-z]{2,4}$", {"ab", "xyz", "quid"}},
      {"^[A-Z][a-z]*( [A-Z][a-z]*)*$", {"A", "Ada Lovelace", "B C D"}},
      {"[0-9]+", {"7", "route 66!", "a1b2"}},
      {"^(foo|ba[rz])-\\d{3}$", {"foo-123", "bar-000", "baz-999"}},
      {"^\\+?[0-9]{3,}", {"123", "+4930 extra", "0001"}},
      {"(end|END)$", {"end", "the END", "\"end"}},
      {"^(\\(\\d+\\))?x+$", {"x", "(12)xx", "xxx"}},
  };
  return all;
}

const std::vector<std::string>& ascii_names() {
  static const std::vector<std::string> all = {"id",    "name", "value", "a",    "ab",  "abc",
                                               "items", "kind", "x\"y",  "next", "tag", "left"};
  return all;
}

std::string pointer_target(const Json& schema) {
  return schema["$ref"].get<std::string>().substr(1);
}

}  // namespace

std::string RandomSchema::name(std::size_t i) const {
  return ascii_names()[i % ascii_names().size()];
}

Json RandomSchema::scalar() {
  switch (random_.below(10)) {
    case 0: {
      Json s = {{"type", "string"}};
      const std::size_t least = random_.below(5);
      if (flip()) s["minLength"] = least;
      if (flip()) s["maxLength"] = least + random_.below(8);
      return s;
    }
    case 1:
      return {{"type", "string"},
              {"pattern", patterns()[random_.below(patterns().size())].pattern}};
    case 2: {
      Json s = {{"type", "integer"}};
      const auto low = static_cast<std::int64_t>(random_.below(2000)) - 1000;
      if (flip()) s[flip() ? "minimum" : "exclusiveMinimum"] = low;
      if (flip()) {
        s[flip() ? "maximum" : "exclusiveMaximum"] =
            low + 2 + static_cast<std::int64_t>(random_.below(3000));
      }
      return s;
    }
    case 3: {
      Json s = {{"type", "number"}};
      const double low = (static_cast<double>(random_.below(2000)) - 1000) / 8;
      if (flip()) s[flip() ? "minimum" : "exclusiveMinimum"] = low;
      if (flip()) {
        s[flip() ? "maximum" : "exclusiveMaximum"] =
            low + static_cast<double>(1 + random_.below(3000)) / 4;
      }
      return s;
    }
    case 4:
      return {{"type", "boolean"}};
    case 5:
      return {{"type", "null"}};
    case 6: {
      Json values = Json::array();
      for (std::size_t i = 1 + random_.below(5); i-- > 0;) {
        const Json choices[] = {"red",        "re\"d", "reddish",
                                "größe",      1,       -2.5,
                                nullptr,      true,    Json::array({1, "x"}),
                                {{"k", "v"}}, "",      17};
        values.push_back(choices[random_.below(std::size(choices))]);
      }
      return {{"enum", values}};
    }
    case 7:
      return {{"const", flip() ? Json("fixed \\ text") : Json(42)}};
    case 8:
      return {{"type", Json::array({"string", "null"})}, {"maxLength", 6}};
    default:
      return {{"type", Json::array({"integer", "boolean"})}, {"description", "either"}};
  }
}

Json RandomSchema::object(int depth) {
  Json s = {{"type", "object"}};
  Json properties = Json::object(), required = Json::array();
  const std::size_t start = random_.below(ascii_names().size());
  for (std::size_t i = random_.below(5); i-- > 0;) {
    properties[name(start + i)] = any(depth - 1);
    if (random_.below(3) > 0) required.push_back(name(start + i));
  }
  if (random_.below(8) == 0) properties["größe"] = {{"type", "integer"}};
  if (!properties.empty() || flip()) s["properties"] = properties;
  if (!required.empty()) s["required"] = required;
  switch (random_.below(4)) {
    case 0:
      s["additionalProperties"] = false;
      break;
    case 1:
      s["additionalProperties"] = scalar();
      break;
    case 2:
      s["additionalProperties"] = true;
      break;
    default:
      break;
  }
  return s;
}

Json RandomSchema::array(int depth) {
  Json s = {{"type", "array"}};
  const std::size_t least = random_.below(3);
  if (flip()) s["minItems"] = least;
  if (flip()) s["maxItems"] = least + random_.below(3);
  if (random_.below(3) == 0) {
    s["prefixItems"] = Json::array();
    for (std::size_t i = std::max<std::size_t>(least, 1); i-- > 0;) {
      s["prefixItems"].push_back(any(depth - 1));
    }
    if (flip()) s["items"] = flip() ? any(depth - 1) : Json(false);
  } else {
    s["items"] = any(depth - 1);
  }
  return s;
}

// Objects that a const tells apart.
Json RandomSchema::discriminated(int depth) {
  Json alternatives = Json::array();
  for (std::size_t i = 0; i < 2 + random_.below(2); ++i) {
    Json s = object(depth);
    Json properties = {{"kind", {{"const", "k" + std::to_string(i)}}}};
    if (s.contains("properties")) {
      for (const auto& [key, value] : s["properties"].items()) {
        if (key != "kind") properties[key] = value;
      }
    }
    s["properties"] = properties;
    Json required = Json::array({"kind"});
    if (s.contains("required")) {
      for (const Json& key : s["required"]) {
        if (key != "kind") required.push_back(key);
      }
    }
    s["required"] = required;
    alternatives.push_back(s);
  }
  return {{flip() ? "oneOf" : "anyOf", alternatives}};
}

Json RandomSchema::merged() {
  const auto low = static_cast<std::int64_t>(random_.below(50));
  if (flip()) {
    return {{"type", "integer"},
            {"allOf", Json::array({{{"minimum", low}}, {{"maximum", low + 5}}})}};
  }
  return {{"type", "object"},
          {"properties",
           {{"a", {{"type", "integer"}}}, {"ab", {{"type", "string"}, {"maxLength", 4}}}}},
          {"additionalProperties", false},
          {"allOf", Json::array({{{"required", Json::array({"a"})}}})},
          {"anyOf", Json::array({{{"required", Json::array({"ab"})}},
                                 {{"properties", {{"a", {{"maximum", 9}}}}}}})}};
}

Json RandomSchema::any(int depth) {
  if (depth <= 0) return scalar();
  switch (random_.below(12)) {
    case 0:
    case 1:
    case 2:
      return object(depth);
    case 3:
    case 4:
      return array(depth);
    case 5: {
      Json alternatives = Json::array();
      for (std::size_t i = 0; i < 2 + random_.below(2); ++i) alternatives.push_back(any(depth - 1));
      return {{"anyOf", alternatives}};
    }
    case 6:
      return discriminated(depth);
    case 7:
      return merged();
    case 8:
      return {{"$ref", flip() ? "#/$defs/tree" : "#/$defs/leaf"}};
    case 9:
      return random_.below(4) == 0 ? Json(true) : scalar();
    default:
      return scalar();
  }
}

Json RandomSchema::schema() {
  Json s = any(3);
  while (!s.is_object() || s.contains("$ref")) s = any(3);
  s["$defs"] = {{"leaf", scalar()},
                {"tree",
                 {{"type", "object"},
                  {"properties",
                   {{"left", {{"$ref", "#/$defs/tree"}}},
                    {"value", {{"$ref", "#/$defs/leaf"}}},
                    {"children", {{"type", "array"}, {"items", {{"$ref", "#/$defs/tree"}}}}}}},
                  {"required", Json::array({"value"})},
                  {"additionalProperties", false}}}};
  return s;
}

std::string RandomSchema::random_text(std::size_t least, std::size_t most) {
  std::string text;
  for (std::size_t i = least + values_.below(most - least + 1); i-- > 0;) {
    switch (values_.below(6)) {
      case 0:
        text += "\"\\/\n\t\b\x1f\x7f"[values_.below(8)];
        break;
      case 1: {
        const char32_t wide[] = {0x80,   0x7ff,  0x800,   0xd7ff,  0xe000,
                                 0xfeff, 0xffff, 0x10000, 0x1f600, 0x10ffff};
        text += to_utf8(wide[values_.below(std::size(wide))]);
        break;
      }
      default:
        text += static_cast<char>(' ' + 1 + values_.below(93));
    }
  }
  return text;
}

Json RandomSchema::free_value(int depth) {
  switch (values_.below(depth > 0 ? 7 : 5)) {
    case 0:
      return random_text(0, 5);
    case 1:
      return static_cast<std::int64_t>(values_.bits() >> 12) - (std::int64_t{1} << 51);
    case 2:
      return values_.uniform(-1e20, 1e20);
    case 3:
      return values_.below(2) == 0;
    case 4:
      return nullptr;
    case 5: {
      Json list = Json::array();
      for (std::size_t i = values_.below(3); i-- > 0;) list.push_back(free_value(depth - 1));
      return list;
    }
    default: {
      Json map = Json::object();
      for (std::size_t i = values_.below(3); i-- > 0;) {
        map[random_text(0, 3)] = free_value(depth - 1);
      }
      return map;
    }
  }
}

Json RandomSchema::object_of(const Json& schema, const Json& document, int depth) {
  Json map = Json::object();
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  for (const auto& [key, member] : properties.items()) {
    const bool must = std::find(required.begin(), required.end(), Json(key)) != required.end();
    if (must || (depth > 0 && values_.below(2) == 0))
      map[key] = value_of(member, document, depth - 1);
  }
  if (schema.contains("additionalProperties") && schema["additionalProperties"] != Json(false)) {
    for (std::size_t i = values_.below(3); i-- > 0;) {
      const std::string key =
          values_.below(2) == 0 ? random_text(0, 3) : name(values_.below(12)) + "z";
      if (!properties.contains(key)) {
        map[key] = value_of(schema["additionalProperties"], document, depth - 1);
      }
    }
  }
  return map;
}

Json RandomSchema::array_of(const Json& schema, const Json& document, int depth) {
  Json list = Json::array();
  const std::size_t least = schema.value("minItems", std::size_t{0});
  std::size_t most = std::min(schema.value("maxItems", least + 2), depth > 0 ? least + 2 : least);
  const Json prefix = schema.value("prefixItems", Json::array());
  const Json items = schema.value("items", Json(!schema.contains("prefixItems")));
  if (items == Json(false)) most = std::min(most, prefix.size());
  for (std::size_t i = least + values_.below(most - least + 1); i-- > 0;) {
    list.push_back(
        value_of(list.size() < prefix.size() ? prefix[list.size()] : items, document, depth - 1));
  }
  return list;
}

Json RandomSchema::typed(const std::string& type, const Json& schema, const Json& document,
                         int depth) {
  if (type == "null") return nullptr;
  if (type == "boolean") return values_.below(2) == 0;
  if (type == "object") return object_of(schema, document, depth);
  if (type == "array") return array_of(schema, document, depth);
  if (type == "string") {
    if (schema.contains("pattern")) {
      const auto found = std::find_if(patterns().begin(), patterns().end(), [&](const Pattern& p) {
        return schema["pattern"] == p.pattern;
      });
      return found->strings[values_.below(found->strings.size())];
    }
    const std::size_t least = schema.value("minLength", std::size_t{0});
    return random_text(least, schema.value("maxLength", least + 9));
  }
  // In steps that bounds are multiples of.
  const bool whole = type == "integer";
  const double step = whole ? 1 : 0.125;
  double low = schema.contains("exclusiveMinimum") ? schema["exclusiveMinimum"].get<double>() + step
                                                   : schema.value("minimum", -1e300);
  double high = schema.contains("exclusiveMaximum")
                    ? schema["exclusiveMaximum"].get<double>() - step
                    : schema.value("maximum", 1e300);
  if (low < -1e299) low = std::min(-12000.0, high - 5000);
  if (high > 1e299) high = std::max(34567.0, low + 5000);
  const auto steps = static_cast<std::size_t>((high - low) / step);
  const std::size_t chosen =
      values_.below(4) == 0 ? (values_.below(2) == 0 ? 0 : steps) : values_.below(steps + 1);
  const double value = low + static_cast<double>(chosen) * step;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json RandomSchema::value_of(const Json& schema, const Json& document, int depth) {
  if (schema.is_boolean() || schema.empty()) return free_value(std::min(depth, 2));
  if (schema.contains("$ref")) {
    return value_of(document.at(Json::json_pointer(pointer_target(schema))), document, depth);
  }
  if (schema.contains("allOf")) {  // merged() made it
    if (schema["type"] == "integer") {
      return schema["allOf"][0]["minimum"].get<std::int64_t>() +
             static_cast<std::int64_t>(values_.below(6));
    }
    Json map = {{"a", static_cast<std::int64_t>(values_.below(9)) + 1}};
    if (values_.below(2) == 0) map["ab"] = random_text(0, 4);
    return map;
  }
  for (const char* combination : {"anyOf", "oneOf"}) {
    if (schema.contains(combination)) {
      const Json& list = schema[combination];
      return value_of(list[values_.below(list.size())], document, depth);
    }
  }
  if (schema.contains("const")) return schema["const"];
  if (schema.contains("enum")) return schema["enum"][values_.below(schema["enum"].size())];
  const Json& type = schema["type"];
  return typed(type.is_string() ? type : type[values_.below(type.size())], schema, document, depth);
}

Json RandomSchema::value(const Json& document) {
  return value_of(document, document, 4);
}

namespace {

// Python's default separators: a space after each.
std::string spaced(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text(1, value.is_array() ? '[' : '{');
  bool first = true;
  for (const auto& [key, child] : value.items()) {
    if (!first) text += ", ";
    first = false;
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += spaced(child);
  }
  return text + (value.is_array() ? ']' : '}');
}

bool has_structured_enum(const std::string& schema) {
  return schema.find(R"({"k":"v"})") != std::string::npos ||
         schema.find(R"([1,"x"])") != std::string::npos;
}

}  // namespace

std::string RandomSchema::text(const Json& value, const Json& document) {
  // Values of enum and const have one form, without spaces.
  return has_structured_enum(document.dump()) || values_.below(2) == 0 ? value.dump()
                                                                       : spaced(value);
}

Json draft7(const Json& schema) {
  if (schema.is_array()) {
    Json list = Json::array();
    for (const Json& member : schema) list.push_back(draft7(member));
    return list;
  }
  if (!schema.is_object()) return schema;
  Json out = Json::object();
  const bool tuple = schema.contains("prefixItems") && schema["prefixItems"].is_array();
  for (const auto& [key, value] : schema.items()) {
    if (key == "enum" || key == "const") {
      out[key] = value;
    } else if (tuple && key == "prefixItems") {
      out["items"] = draft7(value);
    } else if (tuple && key == "items") {
      out["additionalItems"] = draft7(value);
    } else {
      out[key] = draft7(value);
    }
  }
  return out;
}

}  // namespace cupel::test
