// The JSON header of a safetensors file: any bytes parse or give an InputError, and what parses
// lies within the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cupel/base/error.h"
#include "cupel/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::uint64_t kData = 4096;  // room after the header
  const std::string_view json(reinterpret_cast<const char*>(bytes), size);
  for (const auto data :
       {cupel::SafetensorsFile::Data::kRequired, cupel::SafetensorsFile::Data::kHeaderOnly}) {
    try {
      const auto tensors =
          cupel::parse_safetensors_header(json, 8 + size, 8 + size + kData, "fuzz", data);
      for (const cupel::Tensor& tensor : tensors) {
        const bool inside = tensor.begin >= 8 + size && tensor.bytes() <= 8 + size + kData &&
                            tensor.begin <= 8 + size + kData - tensor.bytes();
        if (data == cupel::SafetensorsFile::Data::kRequired && !inside) std::abort();
      }
    } catch (const cupel::InputError&) {
      // The only way out for a bad header.
    }
  }
  return 0;
}
