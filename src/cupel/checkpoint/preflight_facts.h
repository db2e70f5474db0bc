// What text and JSON of a preflight share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/preflight.h"

namespace cupel {

std::string_view kind_name(CheckpointView::Kind kind);

// One row of the table of facts.
struct FactRow {
  std::string name;
  std::string before;
  std::string after;
};
std::vector<FactRow> fact_rows(const PreflightReport& report,
                               const PreflightReportOptions& options);

}  // namespace cupel
