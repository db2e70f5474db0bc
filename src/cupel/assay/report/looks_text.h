// The report of results that were there, at one look or several, as plain text for a terminal:
// noise beside accuracy, and each comparison with what it was charged.
#pragma once

#include <string>

namespace cupel {

struct AssayReport;

// UTF-8, ending in a newline. The report is as describe_records() leaves it.
std::string render_looks(const AssayReport& report);

}  // namespace cupel
