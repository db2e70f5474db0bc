// Where the bundled tasks are.
#pragma once

#include <filesystem>
#include <string>

namespace cupel {

// `flag` if not empty; else the folder data/ of the working directory, of the installation
// (../share/cupel/data from the program) or of the source tree that the program was built in.
// Throws InputError if there is none.
std::filesystem::path find_data_folder(const std::string& flag);

// `name` if it is a file; else the file of that name in `section` of the data folder. Throws
// InputError if there is neither.
std::filesystem::path find_bundled_file(const std::string& name, const std::string& section);

}  // namespace cupel
