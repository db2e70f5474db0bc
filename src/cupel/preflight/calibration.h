// The prompts that preflight runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cupel {

// Each becomes one sequence, as text: a begin-of-sentence token has to be in it.
// The file: JSON lines, each an object with "prompt", a text. Throws InputError naming the line.
std::vector<std::string> load_calibration_prompts(const std::filesystem::path& file);

}  // namespace cupel
