// The golden values of tests/golden (its README says who made them and what they mean).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cupel/checkpoint/safetensors.h"

namespace cupel::test {

struct GoldenTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> floats;       // F32 and F16 tensors
  std::vector<std::int32_t> ints;  // I64 and I32 tensors

  std::size_t rows() const { return static_cast<std::size_t>(shape[0]); }
  std::size_t width() const { return rows() == 0 ? 0 : floats.size() / rows(); }
};

class Golden {
 public:
  // `name` is a file of tests/golden.
  explicit Golden(const std::string& name);

  GoldenTensor get(const std::string& key) const;
  bool has(const std::string& key) const;
  // The cases of the file, for example "len0513", without transformers_fp32/.
  std::vector<std::string> cases() const;
  // The prompt of a case.
  std::vector<std::int32_t> prompt(const std::string& name) const;

 private:
  SafetensorsFile file_;
};

}  // namespace cupel::test
