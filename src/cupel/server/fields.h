// The parameters of a request's JSON object, read with their types and ranges checked.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/server/options.h"

namespace cupel {

// Parses a request's body: a JSON object in UTF-8, nested no deeper than `depth`. Throws HttpError.
nlohmann::json parse_body(std::string_view body, int depth);

// Reads the members of an object. A member that is null counts as not there. Everything throws
// HttpError 400, naming the member with `path` before it.
class Fields {
 public:
  using Json = nlohmann::json;

  // `object` outlives this. Throws unless it is an object.
  explicit Fields(const Json& object, std::string path = {});

  const Json* find(const char* key);
  std::optional<bool> boolean(const char* key);
  std::optional<std::int64_t> integer(const char* key,
                                      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  // Within int.
  std::optional<int> count(const char* key, int least, int most = std::numeric_limits<int>::max());
  std::optional<float> number(const char* key);
  std::optional<std::string> text(const char* key);
  // A string or a list of strings; empty if not there.
  std::vector<std::string> texts(const char* key);
  // A list of token ids; empty if not there.
  std::vector<std::int32_t> ids(const char* key);

  // Members that change no answer.
  void ignore(std::initializer_list<const char*> keys);
  // A member whose effect this server does not have: refused unless it has the value that asks for
  // nothing (false, an empty string or list, or `harmless`).
  void refuse(const char* key, const char* why, const Json& harmless = nullptr);
  // Refuses members that nothing above was called for, unless `allow`.
  void end(bool allow);

  // The member's name in errors.
  std::string name(std::string_view key) const;

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

// The value as errors show it: short, in one line.
std::string shown(const nlohmann::json& value);

// A list of token ids. Throws HttpError naming `where`.
std::vector<std::int32_t> read_token_ids(const nlohmann::json& list, const std::string& where);

}  // namespace cupel
