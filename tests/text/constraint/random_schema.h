// Random JSON schemas of the supported subset, and random values of them, from a fixed seed. The
// values are made from the schema alone: they check that masks forbid nothing that is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/random.h"
#include <nlohmann/json.hpp>

namespace cupel::test {

using Json = nlohmann::ordered_json;

class RandomSchema {
 public:
  explicit RandomSchema(std::uint64_t seed) : random_(seed), values_(seed ^ 0x5eed) {}

  // A document with $defs.
  Json schema();
  // A value of a document that schema() gave, members in the order declared.
  Json value(const Json& document);
  // Its text: compact or with a space after separators; escapes as the schema allows.
  std::string text(const Json& value, const Json& document);

 private:
  Json any(int depth);
  Json scalar();
  Json object(int depth);
  Json array(int depth);
  Json discriminated(int depth);
  Json merged();
  std::string name(std::size_t i) const;
  std::string random_text(std::size_t least, std::size_t most);
  Json free_value(int depth);
  Json value_of(const Json& schema, const Json& document, int depth);
  Json object_of(const Json& schema, const Json& document, int depth);
  Json array_of(const Json& schema, const Json& document, int depth);
  Json typed(const std::string& type, const Json& schema, const Json& document, int depth);
  bool flip() { return random_.below(2) == 0; }

  Random random_;  // of schemas
  Random values_;  // of values
};

// A schema in the words of draft 7, which valijson knows: prefixItems is items there.
Json draft7(const Json& schema);

}  // namespace cupel::test
