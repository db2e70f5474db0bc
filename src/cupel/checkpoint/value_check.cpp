#include "cupel/checkpoint/value_check.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/quote.h"

namespace cupel {
namespace {

// Elements lie at any alignment.
template <typename T>
T load(const Tensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::string byte_where(const Tensor& tensor, std::uint64_t offset) {
  return tensor_where(tensor.file, tensor.name,
                      fmt::format("byte offset {}", tensor.begin + offset));
}

}  // namespace

void check_scale_values(const Tensor& scale) {
  const auto bytes = scale.data;
  if (bytes.empty()) return;
  prefetch(bytes);
  if (scale.dtype == Dtype::kF8E8M0) {
    const void* nan = std::memchr(bytes.data(), 255, bytes.size());
    if (nan == nullptr) return;
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(nan) - bytes.data());
    throw InputError(byte_where(scale, offset), "an E8M0 scale from 0 to 254", "255 (NaN)");
  }
  const std::size_t count = bytes.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = load<float>(scale, i);
    if (!std::isfinite(value) || value < 0) {
      throw InputError(byte_where(scale, i * sizeof(float)), "a finite scale, not negative",
                       fmt::format("{}", value));
    }
  }
}

void check_expert_ids(const Tensor& table, int experts) {
  prefetch(table.data);
  const std::size_t count = table.data.size() / sizeof(std::int64_t);
  const auto columns = static_cast<std::size_t>(table.shape.back());
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = load<std::int64_t>(table, i);
    if (id < 0 || id >= experts) {
      throw InputError(byte_where(table, i * sizeof(std::int64_t)),
                       fmt::format("an expert from 0 to {} for token {}", experts - 1, i / columns),
                       fmt::format("{}", id));
    }
  }
}

}  // namespace cupel
