#include "cupel/kernels/numerics.h"

#include "cupel/base/error.h"

namespace cupel {

Numerics parse_numerics(std::string_view name) {
  if (name == "reference") return Numerics::kReference;
  if (name == "float32") return Numerics::kFloat32;
  throw InputError("--numerics", "reference or float32", std::string(name));
}

std::string_view numerics_name(Numerics numerics) {
  return numerics == Numerics::kReference ? "reference" : "float32";
}

}  // namespace cupel
