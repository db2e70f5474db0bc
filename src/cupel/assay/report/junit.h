// The report as JUnit XML, for the test views of CI systems.
#pragma once

#include <string>

namespace cupel {

struct AssayReport;

// One test case for each comparison: REGRESSION is a failure, INCONCLUSIVE skipped with what would
// decide it, so that neither counts as passed. Well-formed XML 1.0 in UTF-8 whatever the names
// hold.
std::string render_junit(const AssayReport& report);

}  // namespace cupel
