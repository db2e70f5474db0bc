// SHA-256, for files that came over a network.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace cupel
