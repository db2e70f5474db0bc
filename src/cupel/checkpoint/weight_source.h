// Where a network's weights come from: the map of a checkpoint, or a generator.
//
// Bytes are lent piece by piece, so that a loader need not hold a tensor twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// Bytes that are valid as long as this object lives. Bytes of a map give their pages back with it.
class LentBytes {
 public:
  // Of a map, at any alignment.
  static LentBytes of_map(std::span<const std::byte> bytes);
  static LentBytes of_buffer(std::vector<std::byte> buffer);
  LentBytes(LentBytes&& other) noexcept;
  LentBytes& operator=(LentBytes&&) = delete;
  LentBytes(const LentBytes&) = delete;
  LentBytes& operator=(const LentBytes&) = delete;
  ~LentBytes();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  LentBytes() = default;

  std::span<const std::byte> bytes_;
  std::vector<std::byte> buffer_;
  bool mapped_ = false;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual const ModelConfig& config() const = 0;
  // Tells two sources with different weights apart.
  virtual const std::string& fingerprint() const = 0;
  // Name, dtype and shape; `data` may be empty. Throws InputError if there is no such tensor.
  virtual const Tensor& tensor(std::string_view name) const = 0;
  // Bytes [begin, begin + count) of a tensor's data. From any thread.
  virtual LentBytes read(const Tensor& tensor, std::size_t begin, std::size_t count) const = 0;
  // What keeps the `data` of the tensors valid, for weights used in place; nullptr where there is
  // nothing to use in place.
  virtual std::shared_ptr<const void> map() const = 0;
};

}  // namespace cupel
