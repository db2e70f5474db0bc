// Which rounding points a forward pass has (DESIGN section 6).
#pragma once

#include <string>
#include <string_view>

namespace cupel {

enum class Numerics {
  kReference,  // the rounding points of spec section 3.14
  kFloat32,    // no bf16 rounding, no quantisation of activations or of the indexer
};

// "reference" or "float32"; throws InputError otherwise.
Numerics parse_numerics(std::string_view name);
std::string_view numerics_name(Numerics numerics);

}  // namespace cupel
