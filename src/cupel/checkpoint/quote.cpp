#include "cupel/checkpoint/quote.h"

#include <fmt/format.h>

namespace cupel {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  if (text.size() > kLongest) out += "...";
  return out + '"';
}

std::string tensor_where(std::string_view file, std::string_view tensor, std::string_view field) {
  std::string where = fmt::format("{}: tensor {}", file, quote(tensor));
  if (!field.empty()) where += fmt::format(": {}", field);
  return where;
}

}  // namespace cupel
