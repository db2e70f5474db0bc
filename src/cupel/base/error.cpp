#include "cupel/base/error.h"

#include <fmt/format.h>

namespace cupel {

InputError::InputError(std::string_view where, std::string_view expected, std::string_view found)
    : Error(ExitCode::kUsage, fmt::format("{}: expected {}, found {}", where, expected, found)) {}

InfrastructureError::InfrastructureError(std::string_view where, std::string_view what)
    : Error(ExitCode::kInfrastructure, fmt::format("{}: {}", where, what)) {}

}  // namespace cupel
