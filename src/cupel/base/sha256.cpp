#include "cupel/base/sha256.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "cupel/base/error.h"

namespace cupel {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw InfrastructureError("SHA-256", "not offered by this OpenSSL");
  }
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

}  // namespace cupel
