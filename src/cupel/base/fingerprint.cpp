#include "cupel/base/fingerprint.h"

namespace cupel {

std::string build_fingerprint() {
#if defined(__clang__)
  const char* compiler = "clang++ " __clang_version__;
#else
  const char* compiler = "g++ " __VERSION__;
#endif
  return std::string("cupel " CUPEL_VERSION " " CUPEL_REVISION " ") + compiler + " " CUPEL_MARCH;
}

}  // namespace cupel
