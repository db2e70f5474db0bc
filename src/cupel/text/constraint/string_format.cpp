#include "cupel/text/constraint/string_format.h"

#include <map>

#include <fmt/format.h>

namespace cupel {
namespace {

// RFC 3339. The 29th of February is left out.
const std::string kDate =
    "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"
    "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))";
const std::string kTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
const std::string kByte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const std::string kLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

const std::map<std::string, std::string, std::less<>>& patterns() {
  static const std::map<std::string, std::string, std::less<>> all = {
      {"date", kDate},
      {"time", kTime},
      {"date-time", kDate + "T" + kTime},
      {"uuid", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"},
      {"ipv4", kByte + "(\\." + kByte + "){3}"},
      {"hostname", kLabel + "(\\." + kLabel + "){0,3}"},
      {"email",
       "[A-Za-z0-9_+-]{1,16}(\\.[A-Za-z0-9_+-]{1,16}){0,2}@" + kLabel + "(\\." + kLabel + "){1,3}"},
      {"uri",
       "[a-z][a-z0-9+-]{0,15}://[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63}){0,3}(:[0-9]{1,4})?"
       "(/[A-Za-z0-9._~-]{0,255}){0,8}"},
  };
  return all;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  const auto found = patterns().find(format);
  if (found == patterns().end()) return std::nullopt;
  return fmt::format("^({})$", found->second);
}

std::string supported_formats() {
  std::string names;
  for (const auto& [name, pattern] : patterns()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace cupel
