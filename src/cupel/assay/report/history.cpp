#include "cupel/assay/report/history.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/assay/report.h"
#include "cupel/assay/report/json.h"
#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/eval/jsonl.h"

namespace cupel {
namespace {

using nlohmann::json;

bool is_report(const json& object) {
  return object.is_object() && object.contains("schema") && object["schema"].is_string() &&
         object["schema"].get<std::string>().starts_with(kReportSchemaName);
}

double number(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  if (!value.is_number()) {
    throw InputError(fmt::format("{}, \"{}\"", where, key), "a number", value.type_name());
  }
  return value.get<double>();
}

Interval interval(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  return {number(value, "low", where), number(value, "high", where)};
}

const json& list(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  if (!value.is_array()) {
    throw InputError(fmt::format("{}, \"{}\"", where, key), "a list", value.type_name());
  }
  return value;
}

PastReport report_from(const json& object, const std::string& where) {
  PastReport report;
  report.source = std::filesystem::path(where).filename().string();
  report.created_at = jsonl::text_member(object, "created_at", where);
  report.task = jsonl::text_member(object, "task", where);
  report.item_set = jsonl::text_member(object, "item_set", where);
  report.reference = jsonl::text_member(object, "reference", where);
  report.margin = number(object, "margin", where);
  for (const json& cell : list(object, "cells", where)) {
    PastReport::Cell c;
    c.name = jsonl::text_member(cell, "name", where);
    c.repeats = static_cast<int>(jsonl::integer_member(cell, "repeats", where, 1, 1 << 30));
    c.accuracy = number(cell, "accuracy", where);
    c.accuracy95 = interval(cell, "accuracy95", where);
    report.cells.push_back(std::move(c));
  }
  for (const json& comparison : list(object, "comparisons", where)) {
    const std::string candidate = jsonl::text_member(comparison, "candidate", where);
    for (PastReport::Cell& cell : report.cells) {
      if (cell.name != candidate) continue;
      cell.verdict = jsonl::text_member(comparison, "verdict", where);
      cell.loss = number(comparison, "loss", where);
    }
  }
  return report;
}

json parse(std::string_view text, const std::string& where) {
  json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) throw InputError(where, "JSON", "something else");
  return object;
}

PastReport checked(const json& object, const std::string& where) {
  if (!is_report(object)) {
    throw InputError(where, fmt::format("a JSON report (\"schema\": \"{}\")", kReportSchema),
                     "another JSON file");
  }
  if (object["schema"] != kReportSchema) {
    throw InputError(where, fmt::format("a report of schema {}", kReportSchema),
                     object["schema"].get<std::string>());
  }
  return report_from(object, where);
}

void add_folder(const std::filesystem::path& folder, std::vector<PastReport>& reports) {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  if (failed) throw InputError(folder.string(), "a readable folder", failed.message());
  std::ranges::sort(files);
  for (const auto& file : files) {
    const json object = parse(read_file(file), file.string());
    if (is_report(object)) reports.push_back(checked(object, file.string()));
  }
}

}  // namespace

PastReport parse_past_report(std::string_view text, const std::string& where) {
  return checked(parse(text, where), where);
}

std::vector<PastReport> load_history(std::span<const std::string> paths) {
  std::vector<PastReport> reports;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      add_folder(path, reports);
    } else {
      reports.push_back(parse_past_report(read_file(path), path));
    }
  }
  std::ranges::stable_sort(reports, {}, &PastReport::created_at);
  // The same report under two names, or a file that is also in a folder given.
  std::set<std::string> seen;
  std::erase_if(reports, [&](const PastReport& r) {
    std::string key = r.created_at + '\n' + r.item_set;
    for (const PastReport::Cell& c : r.cells) key += fmt::format("\n{} {}", c.name, c.accuracy);
    return !seen.insert(std::move(key)).second;
  });
  return reports;
}

History history_of(const AssayReport& report, std::span<const PastReport> past) {
  History history;
  const auto comparable = [&](const PastReport& p) {
    return p.task == report.task && p.item_set == report.item_set;
  };
  history.other_items =
      static_cast<int>(std::ranges::count_if(past, [&](const auto& p) { return !comparable(p); }));
  for (const CellRow& row : report.cells) {
    CellHistory cell{row.name, {}};
    for (const PastReport& p : past) {
      if (!comparable(p)) continue;
      for (const PastReport::Cell& c : p.cells) {
        if (c.name != row.name) continue;
        cell.past.push_back({p.created_at, p.source, c.repeats, c.accuracy, c.accuracy95,
                             p.reference, p.margin, c.verdict});
      }
    }
    if (!cell.past.empty()) history.cells.push_back(std::move(cell));
  }
  return history;
}

}  // namespace cupel
