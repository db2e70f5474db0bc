#include "cupel/server/bearer_key.h"

#include <algorithm>
#include <cstdlib>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/sha256.h"

namespace cupel {
namespace {

constexpr const char* kVariable = "CUPEL_API_KEY";

}  // namespace

bool bearer_key_matches(std::string_view header, std::string_view key) {
  constexpr std::string_view kScheme = "Bearer ";
  const bool scheme = header.starts_with(kScheme);
  // Of hashes: of equal length, and nothing about the key can be learnt from where they differ.
  const std::string given = sha256_hex(scheme ? header.substr(kScheme.size()) : header);
  const std::string wanted = sha256_hex(key);
  unsigned difference = scheme ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(wanted[i]);
  }
  return difference == 0;
}

std::string load_api_key(const std::string& file) {
  const char* variable = std::getenv(kVariable);
  if (file.empty() && variable == nullptr) return {};
  std::string key = variable != nullptr && file.empty() ? std::string(variable) : read_file(file);
  const auto line_end = [](char c) { return c == '\n' || c == '\r'; };
  while (!key.empty() && line_end(key.back())) key.pop_back();
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (key.empty() || !printable) {
    // Never the key itself.
    throw InputError(file.empty() ? kVariable : file,
                     "a key of printable ASCII characters without spaces",
                     key.empty() ? "none" : "other characters");
  }
  return key;
}

}  // namespace cupel
