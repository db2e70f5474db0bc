#include "cupel/cli/data_folder.h"

#include <vector>

#include "cupel/base/error.h"

namespace cupel {

std::filesystem::path find_data_folder(const std::string& flag) {
  namespace fs = std::filesystem;
  if (!flag.empty()) {
    if (!fs::is_directory(flag)) throw InputError("--data", "an existing folder", flag);
    return flag;
  }
  std::vector<fs::path> places = {"data"};
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!program.empty()) {
    places.push_back(program / "../share/cupel/data");
    places.push_back(program / "../../../data");  // build/PRESET/bin/cupel
  }
  for (const fs::path& place : places) {
    if (fs::is_directory(place / "wordmath")) return place.lexically_normal();
  }
  throw InputError("data folder", "data/ in the working directory, or --data DIR", "none");
}

std::filesystem::path find_bundled_file(const std::string& name, const std::string& section) {
  namespace fs = std::filesystem;
  if (fs::is_regular_file(name)) return name;
  if (name.find('/') == std::string::npos) {
    fs::path bundled = find_data_folder("") / section / name;
    if (fs::is_regular_file(bundled)) return bundled;
  }
  throw InputError(name, "a file, or the name of one in data/" + section, "neither");
}

}  // namespace cupel
