// Flags that say how tokens are chosen.
#pragma once

#include "cupel/engine/request.h"

namespace CLI {
class App;
}

namespace cupel {

void add_sampling_flags(CLI::App& app, SamplingParams& params);

}  // namespace cupel
