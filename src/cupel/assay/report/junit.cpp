#include "cupel/assay/report/junit.h"

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/report/xml_text.h"

namespace cupel {
namespace {

std::string summary(const ComparisonRow& row, double margin) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  return fmt::format(
      "{}: loss {} points (bounds {} at {:.3g} % each side, margin {:g}), {} lost, {} gained, "
      "{}",
      verdict_name(d.verdict), points(c.loss), range(d.interval90, 1), 100 * row.level, margin,
      c.lost, c.gained, p_is(d.p_regression));
}

double seconds_of(const AssayReport& report, const std::string& cell) {
  for (const CellRow& c : report.cells) {
    if (c.name == cell) return c.seconds;
  }
  return 0;
}

void add_case(pugi::xml_node suite, const AssayReport& report, const ComparisonRow& row) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  pugi::xml_node test = add(suite, "testcase",
                            {{"classname", "cupel.assay." + report.task},
                             {"name", fmt::format("{} against {}", c.candidate, c.reference)},
                             {"time", fmt::format("{:.3f}", seconds_of(report, c.candidate))}});
  std::string text = summary(row, report.margin);
  std::string all = text + '\n';
  for (const std::string& note : row.notes) all += note + '\n';
  for (const std::string& note : notes(c, d)) all += note + '\n';
  if (d.verdict == Verdict::kRegression) {
    add(test, "failure", {{"type", "REGRESSION"}, {"message", text}}, all);
  } else if (d.verdict == Verdict::kInconclusive) {
    add(test, "skipped",
        {{"message", fmt::format("INCONCLUSIVE. What would decide: {}.", d.remedy.text)}});
  }
  add(test, "system-out", {}, all);
}

void add_probe_case(pugi::xml_node suite, const AssayReport& report, const ProbeComparison& p) {
  pugi::xml_node test =
      add(suite, "testcase",
          {{"classname", "cupel.assay." + report.task + ".probe"},
           {"name", fmt::format("{}: {} against {}", probe_name(p.kind), p.candidate, p.reference)},
           {"time", "0.000"}});
  const std::string text = probe_sentence(p);
  if (p.verdict == Verdict::kRegression) {
    add(test, "failure", {{"type", "REGRESSION"}, {"message", text}}, text + '\n');
  } else if (p.verdict == Verdict::kInconclusive) {
    add(test, "skipped",
        {{"message", fmt::format("INCONCLUSIVE. What would decide: {}.", p.remedy)}});
  }
  add(test, "system-out", {}, text + '\n');
}

}  // namespace

std::string render_junit(const AssayReport& report) {
  std::size_t failures = 0;
  std::size_t skipped = 0;
  double seconds = 0;
  const std::vector<Verdict> all = verdicts(report);
  for (const Verdict verdict : all) {
    failures += verdict == Verdict::kRegression ? 1 : 0;
    skipped += verdict == Verdict::kInconclusive ? 1 : 0;
  }
  for (const CellRow& c : report.cells) seconds += c.seconds;
  const std::string tests = std::to_string(all.size());
  pugi::xml_document document;
  pugi::xml_node root = add(document, "testsuites",
                            {{"name", "cupel assay"},
                             {"tests", tests},
                             {"failures", std::to_string(failures)},
                             {"errors", "0"},
                             {"skipped", std::to_string(skipped)}});
  pugi::xml_node suite = add(root, "testsuite",
                             {{"name", report.title},
                              {"tests", tests},
                              {"failures", std::to_string(failures)},
                              {"errors", "0"},
                              {"skipped", std::to_string(skipped)},
                              {"time", fmt::format("{:.3f}", seconds)}});
  if (!report.created_at.empty()) {
    // JUnit's form has no time zone.
    suite.append_attribute("timestamp")
        .set_value(report.created_at.substr(0, report.created_at.find('Z')).c_str());
  }
  for (const ComparisonRow& row : report.comparisons) add_case(suite, report, row);
  // Those without a margin are figures, not tests.
  for (const ProbeComparison& p : report.probes) {
    if (p.verdict) add_probe_case(suite, report, p);
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + serialise(document) + '\n';
}

}  // namespace cupel
