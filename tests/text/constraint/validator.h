// valijson as the judge of outputs.
#pragma once

// A header of valijson 1.0 uses what it does not include.
#include <limits>
#include <string>

#include "text/constraint/random_schema.h"
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace cupel::test {

class Validator {
 public:
  explicit Validator(const Json& schema) : document_(nlohmann::json::parse(draft7(schema).dump())) {
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(document_), schema_);
  }

  // Why the text is no JSON text of the schema; empty if it is one.
  std::string errors(const std::string& text) const {
    const auto value = nlohmann::json::parse(text, nullptr, false);
    if (value.is_discarded()) return "not JSON";
    valijson::ValidationResults results;
    valijson::Validator validator;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(value), &results)) {
      return "";
    }
    std::string all;
    for (const auto& error : results) all += error.description + '\n';
    return all.empty() ? "invalid" : all;
  }

 private:
  nlohmann::json document_;
  valijson::Schema schema_;
};

}  // namespace cupel::test
