#include "cupel/cli/report_flags.h"

#include <cstdio>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/report/html.h"
#include "cupel/assay/report/json.h"
#include "cupel/assay/report/junit.h"
#include "cupel/assay/report/markdown.h"
#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/utc_time.h"

namespace cupel {
namespace {

void check_writable(const std::string& flag, const std::string& path) {
  if (std::filesystem::is_directory(path)) throw InputError(flag, "a file", path + ", a folder");
  // Removed again: nothing is left behind by a run that is killed.
  const AtomicFile probe(path);
}

}  // namespace

void ReportFlags::add(CLI::App& app) {
  const auto file = [&](const char* flag, std::string& path, const char* what) {
    app.add_option(flag, path, fmt::format("Write the report as {} to FILE (default: not)", what))
        ->type_name("FILE");
  };
  file("--report-markdown", markdown, "Markdown of at most 1 MiB, for the summary of a CI job,");
  file("--report-json", json, "JSON (docs/assay-report.schema.json)");
  file("--report-junit", junit, "JUnit XML: REGRESSION fails, INCONCLUSIVE is skipped,");
  file("--report-html", html, "one HTML page that needs nothing else");
  app.add_option("--history", history,
                 "Earlier JSON reports, or folders of them, for the HTML page's history of each "
                 "cell (default: none)")
      ->type_name("PATH");
}

ReportFiles::ReportFiles(const ReportFlags& flags) : flags_(flags) {
  std::set<std::filesystem::path> seen;
  const std::pair<const char*, const std::string*> all[] = {{"--report-markdown", &flags_.markdown},
                                                            {"--report-json", &flags_.json},
                                                            {"--report-junit", &flags_.junit},
                                                            {"--report-html", &flags_.html}};
  for (const auto& [flag, path] : all) {
    if (path->empty()) continue;
    check_writable(flag, *path);
    if (!seen.insert(std::filesystem::weakly_canonical(*path)).second) {
      throw InputError(flag, "a file of its own", *path + " again");
    }
  }
  history_ = load_history(flags_.history);
}

bool ReportFiles::wanted() const {
  return !flags_.markdown.empty() || !flags_.json.empty() || !flags_.junit.empty() ||
         !flags_.html.empty();
}

void ReportFiles::write(AssayReport report,
                        std::span<const std::span<const Record>> records) const {
  if (!wanted()) return;
  describe_records(report, records);
  write(std::move(report));
}

void ReportFiles::write(AssayReport report) const {
  using Render = std::string (*)(const AssayReport&);
  const std::pair<const std::string*, Render> all[] = {
      {&flags_.markdown, [](const AssayReport& r) { return render_markdown(r); }},
      {&flags_.json, render_json},
      {&flags_.junit, render_junit},
      {&flags_.html, render_html}};
  std::fflush(stdout);
  report.created_at = utc_now();
  report.history = history_of(report, history_);
  std::string failures;
  for (const auto& [path, render] : all) {
    if (path->empty()) continue;
    try {
      AtomicFile file(*path);
      file.write(render(report));
      file.commit();
    } catch (const Error& error) {
      // That the path was writable before is known: it is the machine now.
      failures += fmt::format("{}{}", failures.empty() ? "" : "; ", error.what());
    }
  }
  if (!failures.empty()) throw InfrastructureError("report", failures);
}

}  // namespace cupel
