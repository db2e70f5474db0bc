// The report as JSON: docs/assay-report.schema.json describes it.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

struct AssayReport;

inline constexpr std::string_view kReportSchemaName = "cupel-assay-report/";
// The member "schema" of every report; the number grows when a member changes its meaning.
inline constexpr std::string_view kReportSchema = "cupel-assay-report/1";

// One JSON object, indented, ending in a newline. Texts are valid UTF-8 (others become U+FFFD);
// accuracies are shares in [0, 1], losses and margins percentage points. History is left out: the
// reports themselves are it.
std::string render_json(const AssayReport& report);

}  // namespace cupel
