#include "cupel/preflight/calibration.h"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"

namespace cupel {

std::vector<std::string> load_calibration_prompts(const std::filesystem::path& file) {
  std::ifstream lines(file);
  if (!lines) throw InputError(file.string(), "a readable file of JSON lines", "none");
  std::vector<std::string> prompts;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("prompt") || !object["prompt"].is_string() ||
        object["prompt"].get<std::string>().empty()) {
      throw InputError(fmt::format("{}:{}", file.string(), number),
                       R"(an object {"prompt": "..."} with a text)", line.substr(0, 80));
    }
    prompts.push_back(object["prompt"].get<std::string>());
  }
  if (prompts.empty()) throw InputError(file.string(), "at least one line", "an empty file");
  return prompts;
}

}  // namespace cupel
