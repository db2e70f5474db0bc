// Random requests from several threads: lengths, cancels, bad parameters, a cache too small for
// them all.
#pragma once

#include <cstdint>

#include "cupel/engine/engine.h"

namespace cupel::test {

// Every request must end exactly once, an ended one with what it would give alone (spot checks),
// and nothing may be held at the end.
void soak(const EngineOptions& options, int requests, int threads, std::uint32_t seed);

}  // namespace cupel::test
