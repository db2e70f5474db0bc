// Fetching a data file over HTTP.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cupel {

struct KnownFile {
  std::string_view name;  // as commands call it
  std::string_view url;
  std::string_view sha256;
};

// The 1,319 questions of GSM8K's test split, as SGLang's test fetches them.
inline constexpr KnownFile kGsm8kTest = {
    "gsm8k",
    "https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/"
    "test.jsonl",
    "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"};

// Gets `url` (one try, no redirection) and writes it to `path` at once and whole; returns the
// number of bytes. Throws InputError for a URL that cannot be asked (https too, where the HTTP
// library was built without it), a status other than 200 or another SHA-256, InfrastructureError
// where no whole reply came or the server failed. Nothing is written then.
std::size_t fetch_file(const std::string& url, std::string_view sha256,
                       const std::filesystem::path& path);

}  // namespace cupel
