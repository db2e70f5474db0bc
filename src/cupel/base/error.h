// Typed errors. User input never aborts the process: it ends in an Error that says where, what was
// expected and what was found, and in a distinct exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace cupel {

// Exit codes of every command (DESIGN section 7).
enum class ExitCode : int {
  kPass = 0,
  kRegression = 1,
  kInconclusive = 2,
  kInfrastructure = 3,  // the machine or a peer failed: full disk, lost server, out of memory
  kUsage = 4,           // configuration, input file or command line is wrong
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Wrong input. `where` names the file and, as far as they apply, tensor, field, line or byte
// offset.
class InputError : public Error {
 public:
  InputError(std::string_view where, std::string_view expected, std::string_view found);
};

// The machine or a peer failed; the same call may succeed later.
class InfrastructureError : public Error {
 public:
  InfrastructureError(std::string_view where, std::string_view what);
};

}  // namespace cupel
