// Schemas brought to a form without $ref, allOf, anyOf and oneOf, and what that form says.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cupel {

// A document whose schemas are checked (check_json_schema).
class SchemaDocument {
 public:
  using Json = nlohmann::ordered_json;

  SchemaDocument(const Json& document, std::string_view where)
      : document_(document), where_(where) {}

  const std::string& where() const { return where_; }
  const Json& resolve(const Json& reference) const;

  // Alternatives that together accept what the schema accepts: objects whose keywords are all
  // about values themselves. Their own subschemas may hold anything. Empty: nothing is accepted.
  // Throws InputError at `pointer` for too many alternatives, references that lead back to
  // themselves, and keywords that cannot be merged.
  std::vector<Json> flatten(const Json& schema, const std::string& pointer) const {
    return flatten(schema, pointer, 0);
  }

  // Throws InputError if no proof is found that the schemas of a oneOf exclude each other.
  void require_exclusive(const Json& one_of, const std::string& pointer) const;

 private:
  std::vector<Json> flatten(const Json& schema, const std::string& pointer, int depth) const;
  // Whether it is proven that no value meets both.
  bool disjoint(const Json& a, const Json& b, const std::string& pointer, int depth) const;
  bool disjoint_flat(const Json& a, const Json& b, const std::string& pointer, int depth) const;

  const Json& document_;
  std::string where_;
  mutable std::size_t work_ = 0;  // so far: it is bounded
};

// The types a flat schema accepts: those of "type"; without it, those that its keywords are about;
// without such, all. An integer is a number.
std::set<std::string> schema_types(const nlohmann::ordered_json& flat);
// Whether a value is of one of the types.
bool has_type(const nlohmann::ordered_json& value, const std::set<std::string>& types);
// The values of enum and const; null without either.
nlohmann::ordered_json enumerated(const nlohmann::ordered_json& flat);

}  // namespace cupel
