// Flags of the commands that write reports, and the files they ask for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cupel/assay/report.h"

namespace CLI {
class App;
}

namespace cupel {

struct ReportFlags {
  std::string markdown;
  std::string json;
  std::string junit;
  std::string html;
  std::vector<std::string> history;

  void add(CLI::App& app);
};

// The files of one report. Made before any work is done, so that a mistake costs nothing.
class ReportFiles {
 public:
  // Throws InputError for a path that cannot be written, one named twice, or a history that cannot
  // be read.
  explicit ReportFiles(const ReportFlags& flags);

  bool wanted() const;

  // Writes the files asked for, each whole or not at all. The report is as describe_records()
  // leaves it; time and history are added here. What was printed goes out first. A file that fails
  // does not keep the others from being written: then throws InfrastructureError.
  void write(AssayReport report) const;
  // Likewise; calls describe_records() first, which only a report that is wanted needs.
  void write(AssayReport report, std::span<const std::span<const Record>> records) const;

 private:
  ReportFlags flags_;
  std::vector<PastReport> history_;
};

}  // namespace cupel
