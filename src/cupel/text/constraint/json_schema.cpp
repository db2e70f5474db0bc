#include "cupel/text/constraint/json_schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/text/constraint/automaton.h"
#include "cupel/text/constraint/json_text.h"
#include "cupel/text/constraint/number_range.h"
#include "cupel/text/constraint/pattern.h"
#include "cupel/text/constraint/schema_check.h"
#include "cupel/text/constraint/schema_merge.h"
#include "cupel/text/constraint/string_format.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kUnbounded = Grammar::kUnbounded;
constexpr std::size_t kMaxExpressions = 1'000'000;
constexpr int kMaxNesting = 256;  // of schemas, references followed

std::uint32_t count_of(const Json& flat, const char* keyword, std::uint32_t otherwise) {
  return flat.contains(keyword) ? flat[keyword].get<std::uint32_t>() : otherwise;
}

class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, const SchemaDocument& document, const JsonStyle& style)
      : g_(grammar), json_(grammar, style), document_(document), style_(style) {}

  // One rule for equal schemas, wherever they stand: schemas may refer to themselves.
  ExprId compile(const Json& schema, const std::string& pointer) {
    if (schema == Json(true)) return json_.value(kFreeDepth);
    const auto [known, added] = rules_.try_emplace(schema.dump(), 0);
    if (!added) return known->second;
    if (++nesting_ > kMaxNesting) {
      refuse(pointer, fmt::format("schemas within one another at most {} deep", kMaxNesting),
             "deeper ones");
    }
    const ExprId rule = known->second = g_.declare();
    g_.define(rule, body(schema, pointer));
    --nesting_;
    if (g_.size() > kMaxExpressions) {
      refuse(pointer, fmt::format("a grammar of at most {} expressions", kMaxExpressions), "more");
    }
    return rule;
  }

  // A flat schema (SchemaDocument::flatten).
  ExprId compile_flat(const Json& flat, const std::string& pointer) {
    if (const Json values = enumerated(flat); values.is_array())
      return values_of(values, flat, pointer);
    return compile_types(flat, pointer);
  }

 private:
  [[noreturn]] void refuse(const std::string& pointer, std::string_view expected,
                           std::string_view found) const {
    throw InputError(schema_place(document_.where(), pointer), expected, found);
  }

  ExprId body(const Json& schema, const std::string& pointer) {
    if (schema == Json(false)) return g_.choice({});
    std::vector<std::string> keywords;  // that say something
    for (const auto& [keyword, value] : schema.items()) {
      if (!is_annotation(keyword)) keywords.push_back(keyword);
    }
    // A combination by itself needs no merging.
    if (keywords.size() == 1) {
      const std::string& keyword = keywords.front();
      if (keyword == "$ref") {
        return compile(document_.resolve(schema["$ref"]),
                       schema["$ref"].get<std::string>().substr(1));
      }
      if (keyword == "oneOf") document_.require_exclusive(schema[keyword], pointer + "/oneOf");
      if (keyword == "anyOf" || keyword == "oneOf") {
        std::vector<ExprId> alternatives;
        for (std::size_t i = 0; i < schema[keyword].size(); ++i) {
          alternatives.push_back(
              compile(schema[keyword][i], fmt::format("{}/{}/{}", pointer, keyword, i)));
        }
        return g_.choice(alternatives);
      }
    }
    std::vector<ExprId> alternatives;
    for (const Json& flat : document_.flatten(schema, pointer)) {
      alternatives.push_back(compile_flat(flat, pointer));
    }
    return g_.choice(alternatives);
  }

  // Those of the values that the other keywords accept.
  ExprId values_of(const Json& values, Json flat, const std::string& pointer) {
    flat.erase("enum");
    flat.erase("const");
    const bool only_types = flat.empty() || (flat.size() == 1 && flat.contains("type"));
    std::optional<GrammarAutomaton> others;
    if (!only_types) {
      Grammar grammar;
      grammar.set_root(SchemaCompiler(grammar, document_, style_).compile_flat(flat, pointer));
      others.emplace(std::move(grammar));
    }
    const auto types = schema_types(flat);
    std::vector<std::string> texts;
    for (const Json& value : values) {
      const std::string text = value.dump();
      if (only_types ? has_type(value, types) : accepts(*others, text)) texts.push_back(text);
    }
    return texts.empty() ? g_.choice({}) : g_.one_of(std::move(texts));
  }

  static bool accepts(GrammarAutomaton& automaton, std::string_view text) {
    auto at = automaton.start();
    for (const char c : text) at = automaton.step(at, static_cast<std::uint8_t>(c));
    return automaton.complete(at);
  }

  ExprId compile_types(const Json& flat, const std::string& pointer) {
    const auto types = schema_types(flat);
    std::vector<ExprId> kinds;
    if (types.contains("string")) kinds.push_back(string(flat, pointer));
    if (types.contains("number")) {
      kinds.push_back(number(flat, pointer));
    } else if (types.contains("integer")) {
      kinds.push_back(integer(flat));
    }
    if (types.contains("boolean")) kinds.push_back(json_.boolean());
    if (types.contains("null")) kinds.push_back(json_.null());
    if (types.contains("object")) kinds.push_back(object(flat, pointer));
    if (types.contains("array")) kinds.push_back(array(flat, pointer));
    return g_.choice(kinds);
  }

  ExprId string(const Json& flat, const std::string& pointer) {
    const bool pattern = flat.contains("pattern"), format = flat.contains("format");
    const bool length = flat.contains("minLength") || flat.contains("maxLength");
    if (pattern + format + length > 1) {
      refuse(pointer, "one of pattern, format and a length", "several");
    }
    if (pattern || format) {
      const auto& text = flat[pattern ? "pattern" : "format"].get_ref<const std::string&>();
      const std::string place =
          schema_place(document_.where(), pointer_to(pointer, pattern ? "pattern" : "format"));
      return g_.sequence({json_.quote(),
                          add_pattern(json_, pattern ? text : *format_pattern(text), place),
                          json_.quote()});
    }
    const std::uint32_t min = count_of(flat, "minLength", 0);
    const std::uint32_t max = count_of(flat, "maxLength", kUnbounded);
    return min <= max ? json_.string(min, max) : g_.choice({});
  }

  ExprId integer(const Json& flat) {
    std::int64_t low = -kLargestInteger, high = kLargestInteger;
    bool bounded = false;
    const auto limit = [&](const char* keyword, bool lower, bool open) {
      if (!flat.contains(keyword)) return;
      bounded = true;
      const std::int64_t bound = whole(flat[keyword], lower, open);
      lower ? low = std::max(low, bound) : high = std::min(high, bound);
    };
    limit("minimum", true, false);
    limit("exclusiveMinimum", true, true);
    limit("maximum", false, false);
    limit("exclusiveMaximum", false, true);
    return bounded ? integer_between(g_, low, high) : json_.integer();
  }

  // The first integer that a bound allows, kept within twice the largest one written.
  static std::int64_t whole(const Json& bound, bool lower, bool open) {
    constexpr double kFar = 2e18;
    const double value = bound.get<double>();
    if (value > kFar || value < -kFar)
      return value > 0 ? 2 * kLargestInteger : -2 * kLargestInteger;
    const std::int64_t step = lower ? 1 : -1;
    if (bound.is_number_integer()) return bound.get<std::int64_t>() + (open ? step : 0);
    const double rounded = lower ? std::ceil(value) : std::floor(value);
    return static_cast<std::int64_t>(rounded) + (open && rounded == value ? step : 0);
  }

  ExprId number(const Json& flat, const std::string& pointer) {
    NumberBounds bounds;
    const auto limit = [&](const char* keyword, bool lower, bool open) {
      if (!flat.contains(keyword)) return;
      const double value = flat[keyword].get<double>();
      const auto decimal = Decimal::of(value);
      if (!decimal) {
        refuse(pointer_to(pointer, keyword), "a bound of at most 15 digits", flat[keyword].dump());
      }
      auto& bound = lower ? bounds.low : bounds.high;
      bool& excluded = lower ? bounds.low_open : bounds.high_open;
      // minimum comes before exclusiveMinimum: the stricter of both holds.
      if (bound && (lower ? value < last_ : value > last_)) return;
      bound = decimal;
      excluded = open;
      last_ = value;
    };
    limit("minimum", true, false);
    limit("exclusiveMinimum", true, true);
    limit("maximum", false, false);
    limit("exclusiveMaximum", false, true);
    if (!bounds.low && !bounds.high) return json_.number();
    const auto range = number_between(g_, bounds);
    if (!range) refuse(pointer, "bounds that come to at most 15 digits", "longer ones");
    return *range;
  }

  ExprId object(const Json& flat, const std::string& pointer) {
    static const Json kNone = Json::object();
    const Json& properties = flat.contains("properties") ? flat["properties"] : kNone;
    // Where members are declared, others come only if the schema says so.
    const bool open = flat.contains("additionalProperties") || properties.empty();
    const Json additional = flat.value("additionalProperties", Json(open));

    struct Member {
      std::string name;
      ExprId value;
      bool required;
    };
    const Json required = flat.value("required", Json::array());
    const auto is_required = [&](const std::string& name) {
      return std::find(required.begin(), required.end(), Json(name)) != required.end();
    };
    std::vector<Member> members;
    std::vector<std::string> names;
    for (const auto& [name, schema] : properties.items()) {
      members.push_back({name, compile(schema, pointer_to(pointer_to(pointer, "properties"), name)),
                         is_required(name)});
      names.push_back(name);
    }
    for (const Json& entry : required) {
      const auto& name = entry.get_ref<const std::string&>();
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const Json schema = flat.value("additionalProperties", Json(true));
      members.push_back({name, compile(schema, pointer_to(pointer, "additionalProperties")), true});
      names.push_back(name);
    }

    // What follows when the members up to i are behind us; `first`: none of them was there.
    ExprId rest = g_.literal(""), rest_if_first = rest;
    if (additional != Json(false)) {
      const ExprId name = names.empty() ? json_.string(0, kUnbounded) : json_.string_but(names);
      const ExprId value = compile(additional, pointer_to(pointer, "additionalProperties"));
      const ExprId member = g_.sequence({name, json_.colon(), value});
      rest = g_.repeat(g_.sequence({json_.comma(), member}), 0, kUnbounded);
      rest_if_first = g_.optional(g_.sequence({member, rest}));
    }
    for (auto m = members.rbegin(); m != members.rend(); ++m) {
      const ExprId member =
          g_.sequence({g_.literal(Json(m->name).dump()), json_.colon(), m->value});
      const ExprId with = g_.sequence({json_.comma(), member, rest});
      const ExprId with_if_first = g_.sequence({member, rest});
      if (m->required) {
        rest = with;
        rest_if_first = with_if_first;
      } else {
        rest_if_first = g_.choice({with_if_first, rest_if_first});
        rest = g_.choice({with, rest});
      }
    }
    return g_.sequence({g_.literal("{"), rest_if_first, g_.literal("}")});
  }

  ExprId array(const Json& flat, const std::string& pointer) {
    const std::uint32_t min = count_of(flat, "minItems", 0);
    const std::uint32_t max = count_of(flat, "maxItems", kUnbounded);
    if (min > max) return g_.choice({});
    // As with members: after declared items others come only if the schema says so.
    const bool tuple = flat.contains("prefixItems");
    const Json items = flat.value("items", Json(!tuple));
    if (!tuple) {
      return json_.array(compile(items, pointer_to(pointer, "items")), min, max);
    }
    const Json& prefix = flat["prefixItems"];
    const auto length = static_cast<std::uint32_t>(prefix.size());
    ExprId rest = g_.choice({});
    if (items != Json(false) && max > length) {
      const ExprId item =
          g_.sequence({json_.comma(), compile(items, pointer_to(pointer, "items"))});
      rest = g_.repeat(item, std::max(min, length) - length,
                       max == kUnbounded ? kUnbounded : max - length);
    } else if (min <= length) {
      rest = g_.literal("");
    }
    for (std::uint32_t i = length; i-- > 0;) {
      std::vector<ExprId> alternatives;
      if (min <= i) alternatives.push_back(g_.literal(""));
      if (max > i) {
        const ExprId item = compile(prefix[i], fmt::format("{}/prefixItems/{}", pointer, i));
        alternatives.push_back(i == 0 ? g_.sequence({item, rest})
                                      : g_.sequence({json_.comma(), item, rest}));
      }
      rest = g_.choice(alternatives);
    }
    return g_.sequence({g_.literal("["), rest, g_.literal("]")});
  }

  Grammar& g_;
  JsonText json_;
  const SchemaDocument& document_;
  JsonStyle style_;
  std::map<std::string, ExprId> rules_;  // by the text of a schema
  int nesting_ = 0;
  double last_ = 0;  // the bound of number() last set
};

}  // namespace

ExprId add_json_schema(Grammar& grammar, const Json& schema, std::string_view where,
                       const JsonStyle& style) {
  check_json_schema(schema, where);
  const SchemaDocument document(schema, where);
  const ExprId value = SchemaCompiler(grammar, document, style).compile(schema, "");
  if (grammar.least_lengths()[value] == Grammar::kNever) {
    throw InputError(where, "a schema that some value satisfies", "one that none does");
  }
  return value;
}

ExprId add_json_object(Grammar& grammar, const JsonStyle& style) {
  return JsonText(grammar, style).free_object(kFreeDepth);
}

}  // namespace cupel
