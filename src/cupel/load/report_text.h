// What the reports of benchmarks share.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cupel/load/bench_target.h"

namespace cupel {

using TableRow = std::vector<std::string>;

// Columns aligned to the right, two blanks apart, each row a line. Rows are of equal length.
std::string text_table(const std::vector<TableRow>& rows);
// GitHub's Markdown; the first row is the head.
std::string markdown_table(const std::vector<TableRow>& rows);

// "http://127.0.0.1:30000 (generate): tiny, version=...".
std::string describe(const BenchConditions& conditions);

// The members "url", "api", "model", "server", "build" and "seed".
nlohmann::ordered_json to_json(const BenchConditions& conditions);

// A record without the newline; ill-formed UTF-8 of servers becomes U+FFFD.
std::string json_line(const nlohmann::ordered_json& record);

}  // namespace cupel
