// The time of day in records and reports.
#pragma once

#include <string>

namespace cupel {

// Now, ISO 8601 in whole seconds: "2026-12-01T04:14:14Z".
std::string utc_now();

}  // namespace cupel
