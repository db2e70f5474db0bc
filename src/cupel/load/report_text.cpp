#include "cupel/load/report_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cupel/assay/report/printable.h"

namespace cupel {

std::string text_table(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text.append(widths[i] - row[i].size() + (i == 0 ? 0 : 2), ' ');
      text += row[i];
    }
    text += '\n';
  }
  return text;
}

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += '|';
    for (const std::string& cell : rows[i]) text += " " + cell + " |";
    text += '\n';
    if (i > 0) continue;
    text += '|';
    for (std::size_t column = 0; column < rows[i].size(); ++column) text += "---:|";
    text += '\n';
  }
  return text;
}

std::string describe(const BenchConditions& c) {
  std::string text = c.url + " (" + c.api + "): " + c.model;
  if (!c.server.empty()) text += ", " + c.server;
  return printable(text);
}

nlohmann::ordered_json to_json(const BenchConditions& c) {
  return {{"url", c.url},       {"api", c.api},     {"model", c.model},
          {"server", c.server}, {"build", c.build}, {"seed", c.seed}};
}

std::string json_line(const nlohmann::ordered_json& record) {
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cupel
