// Runs a program as a user would.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cupel::test {

struct CommandResult {
  int exit_code = 0;  // minus the signal's number if one ended the program
  std::string out;    // standard output; empty if it went to a file of the caller's
  std::string err;
};

struct CommandOptions {
  std::filesystem::path folder = {};  // to run in; empty: this one
  // Variables to set, or to take away (nullopt), beside those of this process.
  std::map<std::string, std::optional<std::string>> environment = {};
  std::filesystem::path out = {};           // an existing file for standard output
  std::function<void(pid_t)> started = {};  // called once the program runs
};

// words[0] is the program's path. Standard input is empty. Throws std::runtime_error if the program
// cannot be started.
CommandResult run_command(const std::vector<std::string>& words,
                          const CommandOptions& options = {});

}  // namespace cupel::test
