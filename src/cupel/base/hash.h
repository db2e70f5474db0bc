// XXH3-128, for fingerprints: fast, stable over machines, not cryptographic.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cupel {

// Streams bytes into one 128-bit hash.
class Hasher {
 public:
  Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  ~Hasher();

  Hasher& add(std::span<const std::byte> bytes);
  Hasher& add(std::string_view text);
  // 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view text);
std::string hash_hex(std::span<const std::byte> bytes);

}  // namespace cupel
