// Progress of a run on standard error: one line that renews itself on a terminal, a line now and
// then elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cupel/eval/runner.h"

namespace cupel {

std::function<void(const Progress&)> progress_printer(const std::string& label);

}  // namespace cupel
