#include "cupel/checkpoint/weight_source.h"

#include <utility>

#include "cupel/checkpoint/prefetch.h"

namespace cupel {

LentBytes LentBytes::of_map(std::span<const std::byte> bytes) {
  prefetch(bytes);
  LentBytes lent;
  lent.bytes_ = bytes;
  lent.mapped_ = true;
  return lent;
}

LentBytes LentBytes::of_buffer(std::vector<std::byte> buffer) {
  LentBytes lent;
  lent.buffer_ = std::move(buffer);
  lent.bytes_ = lent.buffer_;
  return lent;
}

LentBytes::LentBytes(LentBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      buffer_(std::move(other.buffer_)),
      mapped_(std::exchange(other.mapped_, false)) {}

LentBytes::~LentBytes() {
  if (mapped_) release_pages(bytes_);
}

}  // namespace cupel
