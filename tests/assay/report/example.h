// A small report with everything in it, made from records.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "cupel/assay/report.h"

namespace cupel::test {

struct Answers {
  std::string cell;
  std::vector<std::vector<int>> correct;  // [items][repeats]
  std::string extra = {};                 // ends every text
};

// Texts part where right and wrong answers do: "12 + 3 = 15" against "12 + 3 = 99".
inline std::vector<Record> answers_as_records(const Answers& answers) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < answers.correct.size(); ++i) {
    for (std::size_t r = 0; r < answers.correct[i].size(); ++r) {
      Record record;
      record.task = "wordmath";
      record.item = static_cast<int>(i);
      record.repeat = static_cast<int>(r);
      record.prompt_hash = fmt::format("h{}", i);
      record.gold = static_cast<std::int64_t>(i) + 3;
      record.correct = record.correct_strict = answers.correct[i][r] != 0;
      record.extracted = record.correct ? record.gold : 99;
      record.output = fmt::format("{} + 3 = {}{}", i, *record.extracted, answers.extra);
      record.output_ids = {static_cast<int>(i), 1, 3, static_cast<int>(*record.extracted)};
      record.stop_reason = StopReason::kStopString;
      record.min_margin = record.correct ? 3.5F : 0.0625F;
      record.min_margin_step = 3;
      record.identity = {answers.cell, "packed", "shots=8", "cupel test", "model"};
      record.launch = "launch";
      records.push_back(record);
    }
  }
  return records;
}

// `items` items right everywhere, but for the first `lost`, wrong in the candidate, and the next
// `gained`, wrong in the reference.
inline std::vector<Answers> changed(int items, int lost, int gained, int repeats = 1) {
  Answers ref{"model/packed", {}, {}};
  Answers cand{"model/unified", {}, {}};
  for (int i = 0; i < items; ++i) {
    const std::vector<int> right(static_cast<std::size_t>(repeats), 1);
    const std::vector<int> wrong(static_cast<std::size_t>(repeats), 0);
    ref.correct.push_back(i >= lost && i < lost + gained ? wrong : right);
    cand.correct.push_back(i < lost ? wrong : right);
  }
  return {ref, cand};
}

// The first cell is the reference.
// A probe with the verdict that a margin led to, or without one.
inline ProbeComparison probe_of(ProbeKind kind, std::optional<Verdict> verdict) {
  ProbeComparison p;
  p.kind = kind;
  p.reference = "model/packed";
  p.candidate = "model/unified";
  p.items = 40;
  p.loss = 5;
  p.standard_error = 1;
  p.bounds = {3, 7};
  p.interval95 = {2.5, 7.5};
  p.p = 0.002;
  if (verdict) p.margin = 1;
  p.verdict = verdict;
  p.p_holm = 0.004;
  if (verdict == Verdict::kInconclusive) p.remedy = "about 90 prompts";
  return p;
}

inline AssayReport report_on(const std::vector<Answers>& cells, double margin = 1) {
  std::vector<std::vector<Record>> records;
  std::vector<std::span<const Record>> spans;
  std::vector<CellOutcomes> outcomes;
  AssayReport report;
  report.title = "wordmath, an example";
  report.margin = margin;
  report.created_at = "2026-09-01T04:00:00Z";
  for (const Answers& cell : cells) records.push_back(answers_as_records(cell));
  for (const auto& r : records) {
    spans.emplace_back(r);
    outcomes.push_back(outcomes_from_records(r, "cell"));
    report.cells.push_back(cell_row(outcomes.back(), r));
    report.records.emplace_back(outcomes.back().name, outcomes.back().name + ".jsonl");
  }
  report.reference = outcomes.front().name;
  std::vector<Comparison> comparisons;
  for (std::size_t i = 1; i < outcomes.size(); ++i) {
    comparisons.push_back(compare(outcomes.front(), outcomes[i]));
  }
  const std::vector<Decision> decisions = decide_family(comparisons, {.margin = margin});
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report.comparisons.push_back({.comparison = comparisons[i], .decision = decisions[i]});
  }
  describe_records(report, spans);
  return report;
}

// What a model or a server may be called, or write.
inline const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts = {
      "</script><script>alert(1)</script>",
      "\"><img src=x onerror=alert(1)>",
      std::string("\0\x01\x1b[31m\x7f", 8),
      "\xff\xfe\xc3(\xe2\x82",
      "\xe2\x80\xaeright to left",
      "]]>&amp;&#0;",
      "```\n| a | b |\n</details>\n# heading",
      "\xef\xbf\xbe\xef\xbf\xbf",
  };
  return texts;
}

}  // namespace cupel::test
