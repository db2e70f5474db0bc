#include "support/golden.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace cupel::test {
namespace {

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) throw std::runtime_error("golden: infinity or NaN");
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

}  // namespace

Golden::Golden(const std::string& name)
    : file_(std::string(CUPEL_SOURCE_DIR "/tests/golden/") + name) {}

bool Golden::has(const std::string& key) const {
  for (const Tensor& tensor : file_.tensors()) {
    if (tensor.name == key) return true;
  }
  return false;
}

GoldenTensor Golden::get(const std::string& key) const {
  for (const Tensor& tensor : file_.tensors()) {
    if (tensor.name != key) continue;
    GoldenTensor out{.shape = tensor.shape, .floats = {}, .ints = {}};
    switch (tensor.dtype) {
      case Dtype::kF32:
        out.floats = elements<float>(tensor);
        break;
      case Dtype::kF16:
        for (const std::uint16_t h : elements<std::uint16_t>(tensor)) {
          out.floats.push_back(half_to_float(h));
        }
        break;
      case Dtype::kI32:
        out.ints = elements<std::int32_t>(tensor);
        break;
      case Dtype::kI64:
        for (const std::int64_t i : elements<std::int64_t>(tensor)) {
          out.ints.push_back(static_cast<std::int32_t>(i));
        }
        break;
      default:
        throw std::runtime_error("golden: dtype of " + key);
    }
    return out;
  }
  throw std::runtime_error("golden: no tensor " + key);
}

std::vector<std::string> Golden::cases() const {
  std::vector<std::string> names;
  for (const Tensor& tensor : file_.tensors()) {
    const std::size_t slash = tensor.name.find("/prompt_len");
    if (slash != std::string::npos && tensor.name.find('/') == slash) {
      names.push_back(tensor.name.substr(0, slash));
    }
  }
  return names;
}

std::vector<std::int32_t> Golden::prompt(const std::string& name) const {
  auto ids = get(name == "fewshot" ? "fewshot_ids" : "text_ids").ints;
  ids.resize(static_cast<std::size_t>(get(name + "/prompt_len").ints[0]));
  return ids;
}

}  // namespace cupel::test
