// Typed access to the fields of one JSON object of config.json; every failure names the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cupel {

class ConfigFields {
 public:
  // `file` is named in errors; `prefix` stands before field names ("rope_scaling.", or empty).
  // `object` must outlive this.
  ConfigFields(const nlohmann::json& object, std::string file, std::string prefix);

  // Present and not null.
  bool has(std::string_view name) const;

  // Each throws InputError if the field is missing, has another type or is out of range (both ends
  // are allowed values).
  std::int64_t integer64(std::string_view name, std::int64_t lowest, std::int64_t highest) const;
  int integer(std::string_view name, int lowest, int highest) const;
  std::vector<int> integers(std::string_view name, int lowest, int highest) const;
  // Greater than zero and finite, also as a float.
  double positive(std::string_view name) const;
  std::string text(std::string_view name) const;
  ConfigFields object(std::string_view name) const;

  // The only supported values, for fields that choose a variant of the network.
  void require_text(std::string_view name, std::string_view only) const;
  void require_integer(std::string_view name, int only, std::string_view why) const;
  // Absent is as good as `only`.
  void require_bool_if_present(std::string_view name, bool only) const;

  [[noreturn]] void fail(std::string_view name, std::string_view expected,
                         std::string_view found) const;
  // With the field's value as what was found.
  [[noreturn]] void fail(std::string_view name, std::string_view expected) const;

 private:
  const nlohmann::json& value(std::string_view name, std::string_view expected) const;

  const nlohmann::json* object_;
  std::string file_;
  std::string prefix_;
};

}  // namespace cupel
