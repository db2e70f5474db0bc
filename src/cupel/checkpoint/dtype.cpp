#include <array>

#include "cupel/checkpoint/safetensors.h"

namespace cupel {
namespace {

struct DtypeFacts {
  std::string_view name;
  std::size_t size;
};

// In the order of Dtype.
constexpr std::array<DtypeFacts, kDtypeCount> kFacts = {{{"F64", 8},
                                                         {"F32", 4},
                                                         {"F16", 2},
                                                         {"BF16", 2},
                                                         {"F8_E4M3", 1},
                                                         {"F8_E5M2", 1},
                                                         {"F8_E8M0", 1},
                                                         {"I64", 8},
                                                         {"I32", 4},
                                                         {"I16", 2},
                                                         {"I8", 1},
                                                         {"U8", 1},
                                                         {"BOOL", 1}}};

}  // namespace

std::size_t dtype_size(Dtype dtype) {
  return kFacts.at(static_cast<std::size_t>(dtype)).size;
}

std::string_view dtype_name(Dtype dtype) {
  return kFacts.at(static_cast<std::size_t>(dtype)).name;
}

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

}  // namespace cupel
