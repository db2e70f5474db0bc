#include "cupel/text/constraint/schema_merge.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/text/constraint/schema_check.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxAlternatives = 256;
constexpr int kMaxDepth = 32;  // of references and combinations within one another
// A schema is a thousand steps, as often as it is met; two members compared are one.
constexpr std::size_t kMaxWork = 20'000'000;

const std::set<std::string> kAllTypes = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

bool is_combination(std::string_view keyword) {
  return keyword == "$ref" || keyword == "allOf" || keyword == "anyOf" || keyword == "oneOf";
}

std::set<std::string> listed_types(const Json& type) {
  std::set<std::string> types;
  if (type.is_string()) {
    types.insert(type.get<std::string>());
  } else {
    for (const Json& name : type) types.insert(name.get<std::string>());
  }
  if (types.contains("number")) types.insert("integer");
  return types;
}

Json both_schemas(const Json& a, const Json& b) {
  if (a == b || b == Json(true)) return a;
  if (a == Json(true)) return b;
  // Nested lists are laid open and hold nothing twice, so that schemas which refer to themselves
  // come to the same form again.
  Json all = Json::array();
  for (const Json* schema : {&a, &b}) {
    const bool list = schema->is_object() && schema->size() == 1 && schema->contains("allOf");
    for (const Json& member : list ? (*schema)["allOf"] : Json::array({*schema})) {
      if (std::find(all.begin(), all.end(), member) == all.end()) all.push_back(member);
    }
  }
  return {{"allOf", all}};
}

// The schema of a member that "properties" may not name.
Json member_schema(const Json& flat, const std::string& name) {
  if (flat.contains("properties") && flat["properties"].contains(name)) {
    return flat["properties"][name];
  }
  return flat.value("additionalProperties", Json(true));
}

std::size_t member_count(const Json& flat) {
  return flat.contains("properties") ? flat["properties"].size() : 1;
}

Json merged_properties(const Json& a, const Json& b) {
  Json properties = Json::object();
  for (const Json* side : {&a, &b}) {
    if (!side->contains("properties")) continue;
    for (const auto& [name, schema] : (*side)["properties"].items()) {
      if (!properties.contains(name)) {
        properties[name] = both_schemas(member_schema(a, name), member_schema(b, name));
      }
    }
  }
  return properties;
}

std::optional<std::size_t> prefix_length(const Json& flat) {
  if (!flat.contains("prefixItems")) return std::nullopt;
  return flat["prefixItems"].size();
}

// Values of keywords that both have; nothing if there is no rule.
std::optional<Json> merged(std::string_view keyword, const Json& a, const Json& b) {
  if (a == b) return a;
  if (keyword == "type") {
    const auto x = listed_types(a), y = listed_types(b);
    Json both = Json::array();
    for (const std::string& type : x) {
      if (y.contains(type)) both.push_back(type);
    }
    return both;
  }
  if (keyword == "required") {
    Json names = a;
    for (const Json& name : b) {
      if (std::find(a.begin(), a.end(), name) == a.end()) names.push_back(name);
    }
    return names;
  }
  if (keyword == "enum") {
    Json values = Json::array();
    for (const Json& value : a) {
      if (std::find(b.begin(), b.end(), value) != b.end()) values.push_back(value);
    }
    return values;
  }
  if (keyword == "additionalProperties" || keyword == "items") return both_schemas(a, b);
  if (keyword == "minimum" || keyword == "exclusiveMinimum" || keyword == "minItems" ||
      keyword == "minLength") {
    return a < b ? b : a;
  }
  if (keyword == "maximum" || keyword == "exclusiveMaximum" || keyword == "maxItems" ||
      keyword == "maxLength") {
    return a < b ? a : b;
  }
  return std::nullopt;
}

Json merge(const Json& a, const Json& b, const std::string& place) {
  Json both = a;
  const auto refuse = [&](std::string_view keyword) {
    throw InputError(place, "keywords that can be merged", fmt::format("{} twice", keyword));
  };
  const bool tuples = a.contains("prefixItems") || b.contains("prefixItems");
  if (tuples && prefix_length(a) != prefix_length(b)) {
    if (a.contains("items") || b.contains("items")) refuse("prefixItems with items");
  }
  for (const auto& [keyword, value] : b.items()) {
    if (keyword == "properties") continue;
    if (keyword == "const" && a.contains("enum")) {
      const bool there = std::find(a["enum"].begin(), a["enum"].end(), value) != a["enum"].end();
      both["enum"] = there ? Json::array({value}) : Json::array();
    } else if (keyword == "enum" && a.contains("const")) {
      const bool there = std::find(value.begin(), value.end(), a["const"]) != value.end();
      both["enum"] = there ? Json::array({a["const"]}) : Json::array();
    } else if (keyword == "const" && a.contains("const") && a["const"] != value) {
      both.erase("const");
      both["enum"] = Json::array();
    } else if (!a.contains(keyword)) {
      both[keyword] = value;
    } else if (auto joined = merged(keyword, a[keyword], value)) {
      both[keyword] = *joined;
    } else {
      refuse(keyword);
    }
  }
  if (a.contains("properties") || b.contains("properties")) {
    both["properties"] = merged_properties(a, b);
  }
  return both;
}

}  // namespace

std::set<std::string> schema_types(const Json& flat) {
  if (flat.contains("type")) return listed_types(flat["type"]);
  static const std::pair<std::string_view, std::string_view> kAbout[] = {
      {"properties", "object"}, {"required", "object"},         {"additionalProperties", "object"},
      {"items", "array"},       {"prefixItems", "array"},       {"minItems", "array"},
      {"maxItems", "array"},    {"minLength", "string"},        {"maxLength", "string"},
      {"pattern", "string"},    {"format", "string"},           {"minimum", "number"},
      {"maximum", "number"},    {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}};
  std::set<std::string> types;
  for (const auto& [keyword, type] : kAbout) {
    if (flat.contains(keyword)) types.emplace(type);
  }
  if (types.contains("number")) types.insert("integer");
  return types.empty() ? kAllTypes : types;
}

bool has_type(const Json& value, const std::set<std::string>& types) {
  if (value.is_null()) return types.contains("null");
  if (value.is_boolean()) return types.contains("boolean");
  if (value.is_number_integer()) return types.contains("integer");
  if (value.is_number()) return types.contains("number");
  if (value.is_string()) return types.contains("string");
  return types.contains(value.is_array() ? "array" : "object");
}

Json enumerated(const Json& flat) {
  if (flat.contains("const") && !flat.contains("enum")) return Json::array({flat["const"]});
  if (!flat.contains("enum")) return nullptr;
  Json values = Json::array();
  for (const Json& value : flat["enum"]) {
    if (!flat.contains("const") || flat["const"] == value) values.push_back(value);
  }
  return values;
}

const Json& SchemaDocument::resolve(const Json& reference) const {
  return document_.at(Json::json_pointer(reference.get_ref<const std::string&>().substr(1)));
}

std::vector<Json> SchemaDocument::flatten(const Json& schema, const std::string& pointer,
                                          int depth) const {
  const std::string place = schema_place(where_, pointer);
  if (depth > kMaxDepth) {
    throw InputError(place, fmt::format("references and combinations at most {} deep", kMaxDepth),
                     "deeper ones, or one that leads back to itself");
  }
  const auto spend = [&](std::size_t steps) {
    work_ += steps;
    if (work_ > kMaxWork) {
      throw InputError(place, fmt::format("combinations that take at most {} steps", kMaxWork),
                       "more");
    }
  };
  spend(1000);
  if (schema.is_boolean()) {
    return schema.get<bool>() ? std::vector<Json>{Json::object()} : std::vector<Json>{};
  }
  Json own = Json::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (!is_combination(keyword) && !is_annotation(keyword)) own[keyword] = value;
  }
  std::vector<Json> alternatives = {own};
  const auto combine = [&](const std::vector<Json>& others) {
    const std::size_t count = alternatives.size() * others.size();
    if (count > kMaxAlternatives) {
      throw InputError(place,
                       fmt::format("combinations of at most {} alternatives", kMaxAlternatives),
                       std::to_string(count));
    }
    std::vector<Json> pairs;
    for (const Json& a : alternatives) {
      for (const Json& b : others) {
        spend(member_count(a) * member_count(b));
        pairs.push_back(merge(a, b, place));
      }
    }
    alternatives = std::move(pairs);
  };
  const auto any = [&](const char* keyword) {
    std::vector<Json> all;
    for (const Json& member : schema[keyword]) {
      const auto flat = flatten(member, pointer, depth + 1);
      all.insert(all.end(), flat.begin(), flat.end());
    }
    combine(all);
  };
  if (schema.contains("$ref")) combine(flatten(resolve(schema["$ref"]), pointer, depth + 1));
  if (schema.contains("allOf")) {
    for (const Json& member : schema["allOf"]) combine(flatten(member, pointer, depth + 1));
  }
  if (schema.contains("anyOf")) any("anyOf");
  if (schema.contains("oneOf")) {
    require_exclusive(schema["oneOf"], pointer_to(pointer, "oneOf"));
    any("oneOf");
  }
  return alternatives;
}

void SchemaDocument::require_exclusive(const Json& one_of, const std::string& pointer) const {
  for (std::size_t i = 0; i < one_of.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!disjoint(one_of[i], one_of[j], pointer, 0)) {
        throw InputError(schema_place(where_, pointer),
                         "schemas that exclude each other by type, by const or enum, or by a "
                         "required member (or anyOf)",
                         fmt::format("numbers {} and {}, which may not", j, i));
      }
    }
  }
}

bool SchemaDocument::disjoint(const Json& a, const Json& b, const std::string& pointer,
                              int depth) const {
  if (depth > 4) return false;
  for (const Json& x : flatten(a, pointer)) {
    for (const Json& y : flatten(b, pointer)) {
      if (!disjoint_flat(x, y, pointer, depth)) return false;
    }
  }
  return true;
}

bool SchemaDocument::disjoint_flat(const Json& a, const Json& b, const std::string& pointer,
                                   int depth) const {
  // Only a "type" excludes others here: a validator takes keywords about other types for met.
  const auto types = [](const Json& flat) {
    return flat.contains("type") ? listed_types(flat["type"]) : kAllTypes;
  };
  const auto x = types(a), y = types(b);
  const Json values = enumerated(a), others = enumerated(b);
  const auto none = [](const Json& list, const auto& meets) {
    return std::none_of(list.begin(), list.end(), meets);
  };
  // A double of whole value is an integer to a validator.
  if (values.is_array() && none(values, [&](const Json& v) {
        return (v.is_number() ? y.contains("number") || y.contains("integer") : has_type(v, y)) &&
               (!others.is_array() || std::find(others.begin(), others.end(), v) != others.end());
      })) {
    return true;
  }
  if (others.is_array() && !values.is_array()) return disjoint_flat(b, a, pointer, depth);
  std::set<std::string> common;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(),
                        std::inserter(common, common.begin()));
  if (common.empty()) return true;
  if (common != std::set<std::string>{"object"}) return false;
  for (const Json* side : {&a, &b}) {
    if (!side->contains("required")) continue;
    for (const Json& name : (*side)["required"]) {
      const auto& key = name.get_ref<const std::string&>();
      if (disjoint(member_schema(a, key), member_schema(b, key), pointer, depth + 1)) return true;
    }
  }
  return false;
}

}  // namespace cupel
