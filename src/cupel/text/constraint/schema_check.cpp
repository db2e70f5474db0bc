#include "cupel/text/constraint/schema_check.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/text/constraint/string_format.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

enum class Kind {
  kAnnotation,
  kTypes,
  kSchema,
  kSchemas,  // a list of them
  kSchemaByName,
  kNames,
  kCount,
  kNumber,
  kValues,
  kValue,
  kText,
  kReference,
  kFormat,
  kFalse,  // only the value false, which says nothing
};

const std::map<std::string, Kind, std::less<>>& keywords() {
  static const std::map<std::string, Kind, std::less<>> all = {
      {"title", Kind::kAnnotation},
      {"description", Kind::kAnnotation},
      {"default", Kind::kAnnotation},
      {"examples", Kind::kAnnotation},
      {"deprecated", Kind::kAnnotation},
      {"readOnly", Kind::kAnnotation},
      {"writeOnly", Kind::kAnnotation},
      {"$schema", Kind::kAnnotation},
      {"$id", Kind::kAnnotation},
      {"$comment", Kind::kAnnotation},
      {"type", Kind::kTypes},
      {"properties", Kind::kSchemaByName},
      {"$defs", Kind::kSchemaByName},
      {"definitions", Kind::kSchemaByName},
      {"required", Kind::kNames},
      {"additionalProperties", Kind::kSchema},
      {"items", Kind::kSchema},
      {"prefixItems", Kind::kSchemas},
      {"anyOf", Kind::kSchemas},
      {"oneOf", Kind::kSchemas},
      {"allOf", Kind::kSchemas},
      {"minItems", Kind::kCount},
      {"maxItems", Kind::kCount},
      {"minLength", Kind::kCount},
      {"maxLength", Kind::kCount},
      {"minimum", Kind::kNumber},
      {"maximum", Kind::kNumber},
      {"exclusiveMinimum", Kind::kNumber},
      {"exclusiveMaximum", Kind::kNumber},
      {"enum", Kind::kValues},
      {"const", Kind::kValue},
      {"pattern", Kind::kText},
      {"format", Kind::kFormat},
      {"$ref", Kind::kReference},
      {"uniqueItems", Kind::kFalse},
  };
  return all;
}

constexpr std::int64_t kLargestCount = 1'000'000'000;

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

bool is_type(const Json& name) {
  static constexpr std::string_view kTypes[] = {"null",   "boolean", "integer", "number",
                                                "string", "array",   "object"};
  return name.is_string() && std::find(std::begin(kTypes), std::end(kTypes),
                                       name.get_ref<const std::string&>()) != std::end(kTypes);
}

bool all_of(const Json& list, bool (*holds)(const Json&)) {
  return list.is_array() && std::all_of(list.begin(), list.end(), holds);
}

class Check {
 public:
  Check(const Json& document, std::string_view where) : document_(document), where_(where) {}

  void run() {
    size();
    pending_.emplace_back(&document_, "");
    while (!pending_.empty()) {
      const auto [value, pointer] = std::move(pending_.back());
      pending_.pop_back();
      schemas_.insert(pointer);
      schema(*value, pointer);
    }
    for (const auto& [pointer, target] : references_) {
      if (!schemas_.contains(target)) {
        refuse(pointer, "a reference to a schema of this document", "#" + target);
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view pointer, std::string_view expected,
                           std::string_view found) const {
    throw InputError(schema_place(where_, pointer), expected, found);
  }

  // Without recursion: what is too deep must not be walked by it.
  void size() const {
    std::size_t values = 0;
    std::vector<std::pair<const Json*, int>> open = {{&document_, 1}};
    while (!open.empty()) {
      const auto [value, depth] = open.back();
      open.pop_back();
      if (++values > kMaxSchemaValues) {
        refuse("", fmt::format("a schema of at most {} values", kMaxSchemaValues), "more");
      }
      if (depth > kMaxSchemaDepth) {
        refuse("", fmt::format("a schema nested at most {} deep", kMaxSchemaDepth), "deeper");
      }
      if (!value->is_structured()) continue;
      for (const Json& child : *value) open.emplace_back(&child, depth + 1);
    }
  }

  void schema(const Json& value, const std::string& pointer) {
    if (value.is_boolean()) return;
    if (!value.is_object()) refuse(pointer, "a schema: an object, true or false", shown(value));
    for (const auto& [name, content] : value.items()) {
      const auto known = keywords().find(name);
      if (known == keywords().end()) refuse(pointer, "keywords that are supported", name);
      keyword(known->second, content, pointer_to(pointer, name));
    }
  }

  void require(bool holds, const std::string& pointer, std::string_view expected,
               const Json& found) const {
    if (!holds) refuse(pointer, expected, shown(found));
  }

  void keyword(Kind kind, const Json& value, const std::string& pointer) {
    switch (kind) {
      case Kind::kAnnotation:
      case Kind::kValue:
        break;
      case Kind::kTypes:
        require(is_type(value) || (all_of(value, is_type) && !value.empty()), pointer,
                "a type or a list of types", value);
        break;
      case Kind::kSchema:
        pending_.emplace_back(&value, pointer);
        break;
      case Kind::kSchemas:
        require(value.is_array() && !value.empty(), pointer, "a list of schemas", value);
        for (std::size_t i = 0; i < value.size(); ++i) {
          pending_.emplace_back(&value[i], pointer_to(pointer, std::to_string(i)));
        }
        break;
      case Kind::kSchemaByName:
        require(value.is_object(), pointer, "an object of schemas", value);
        for (const auto& [name, schema] : value.items()) {
          pending_.emplace_back(&schema, pointer_to(pointer, name));
        }
        break;
      case Kind::kNames:
        require(all_of(value, [](const Json& name) { return name.is_string(); }), pointer,
                "a list of names", value);
        break;
      case Kind::kCount:
        require(value.is_number_integer() && value >= 0 && value <= kLargestCount, pointer,
                fmt::format("an integer from 0 to {}", kLargestCount), value);
        break;
      case Kind::kNumber:
        require(value.is_number(), pointer, "a number", value);
        break;
      case Kind::kValues:
        require(value.is_array() && !value.empty(), pointer, "a list of values", value);
        break;
      case Kind::kText:
        require(value.is_string(), pointer, "a regular expression", value);
        break;
      case Kind::kFormat:
        require(value.is_string() && format_pattern(value.get_ref<const std::string&>()), pointer,
                "a format of " + supported_formats(), value);
        break;
      case Kind::kReference: {
        require(value.is_string() && value.get_ref<const std::string&>().starts_with('#'), pointer,
                "a reference to a schema of this document (#...)", value);
        references_.emplace_back(pointer, value.get_ref<const std::string&>().substr(1));
        break;
      }
      case Kind::kFalse:
        require(value == Json(false), pointer, "no such keyword, or false", value);
        break;
    }
  }

  const Json& document_;
  std::string where_;
  std::vector<std::pair<const Json*, std::string>> pending_;
  std::set<std::string> schemas_;                                // pointers
  std::vector<std::pair<std::string, std::string>> references_;  // pointer of the keyword, target
};

}  // namespace

void check_json_schema(const Json& document, std::string_view where) {
  Check(document, where).run();
}

std::string schema_place(std::string_view where, std::string_view pointer) {
  return fmt::format("{}, {}", where, pointer.empty() ? "the whole schema" : pointer);
}

std::string pointer_to(std::string_view pointer, std::string_view step) {
  std::string longer = fmt::format("{}/", pointer);
  for (const char c : step) {
    if (c == '~') {
      longer += "~0";
    } else if (c == '/') {
      longer += "~1";
    } else {
      longer += c;
    }
  }
  return longer;
}

bool is_annotation(std::string_view keyword) {
  const auto known = keywords().find(keyword);
  return keyword == "$defs" || keyword == "definitions" ||
         (known != keywords().end() &&
          (known->second == Kind::kAnnotation || known->second == Kind::kFalse));
}

}  // namespace cupel
