// The probe stray: answers with characters of scripts that nobody asked for, loops, or no end.
#pragma once

#include <memory>

#include "cupel/eval/probe/probe.h"
#include "cupel/eval/record.h"

namespace cupel {

struct StrayOptions {
  // Unicode scripts that an answer may hold, by their names in PCRE2 (Latin, Greek, Han, ...).
  // Characters that no script owns (digits, punctuation, symbols) are always expected; U+FFFD, the
  // mark of broken text, never is.
  std::vector<std::string> scripts = {"Latin", "Greek"};
  int ngram = 8;    // words of a sequence that repeats
  int repeats = 4;  // from as many on it is a loop
};

struct StrayFindings {
  std::string characters;  // the unexpected ones, each once, as U+0416
  std::string loop;        // the repeated words; empty: none
  bool truncated = false;
};

class StrayDetector {
 public:
  // Throws InputError for a script that does not exist.
  explicit StrayDetector(const StrayOptions& options);
  StrayDetector(const StrayDetector&) = delete;
  StrayDetector& operator=(const StrayDetector&) = delete;
  ~StrayDetector();

  StrayFindings look_at(const std::string& text, bool truncated) const;

 private:
  struct Pattern;
  StrayOptions options_;
  std::unique_ptr<Pattern> pattern_;
};

struct StrayAnswer {
  int item = 0;
  std::string prompt_hash;
  std::string text;
  bool truncated = false;
};

std::vector<StrayAnswer> stray_answers(std::span<const Record> records);

// Fault: share of an item's answers with any of the three. Throws InputError without answers.
ProbeResult probe_stray(std::span<const StrayAnswer> answers, const StrayOptions& options);

}  // namespace cupel
