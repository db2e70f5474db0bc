#include "cupel/base/hash.h"

#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace cupel {

struct Hasher::State {
  XXH3_state_t* xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  state_->xxh = XXH3_createState();
  if (state_->xxh == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
}

Hasher::~Hasher() {
  XXH3_freeState(state_->xxh);
}

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  return add(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Hasher::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_hex(std::string_view text) {
  return Hasher().add(text).hex();
}
std::string hash_hex(std::span<const std::byte> bytes) {
  return Hasher().add(bytes).hex();
}

}  // namespace cupel
