// CUPEL_SOAK_REQUESTS says how many: few in every check, 20,000 in the long one.
#include "engine/soak.h"

#include "engine/engine_support.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(Soak, NothingLeaksHangsOrIsOwnedTwice) {
  for (const BackendKind backend : {BackendKind::kPacked, BackendKind::kUnified}) {
    SCOPED_TRACE(backend_name(backend));
    EngineOptions options = test::engine_options(backend);
    options.max_running = 12;
    options.max_waiting = 40;
    options.prefill_chunk = 64;
    // A few sequences' worth.
    options.max_cache_bytes = 14U << 20;
    test::soak(options, CUPEL_SOAK_REQUESTS / 2, 4, 71);
  }
}

}  // namespace
}  // namespace cupel
