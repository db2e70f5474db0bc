// What this program is: written into every result file, so that two results can be told apart.
#pragma once

#include <string>

namespace cupel {

// For example "cupel 0.1.0 1a2b3c4d5e6f g++ 12.2.0 x86-64-v3".
std::string build_fingerprint();

}  // namespace cupel
