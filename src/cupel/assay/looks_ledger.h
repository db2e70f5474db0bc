// The looks that were taken at a study, kept in a small JSON file beside its records, so that
// records extended by hand are charged for every look (assay.md, "Looking more than once").
//
//   {"format": "cupel looks 1", "studies": [{"reference": NAME, "candidate": NAME, "study": HASH,
//    "margin": 1, "alpha": 0.05, "looks": [1, 2, 4, 8],
//    "taken": [{"reference": 1, "candidate": 1, "alpha": 0.0125}]}]}
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cupel/assay/sequential.h"
#include "cupel/eval/record.h"

namespace cupel {

// Identifies a study by the answers of its first passes: fresh records are a new study, extended
// ones the same.
std::string study_hash(std::span<const Record> reference, std::span<const Record> candidate);

struct StudyLooks {
  std::string reference;
  std::string candidate;
  std::string study;  // study_hash()
  double margin = 0;  // points
  LookPlan plan;
  std::vector<TakenLook> taken;
};

class LooksLedger {
 public:
  // An absent file is an empty ledger. Throws InputError for a file that is none.
  explicit LooksLedger(std::filesystem::path path);

  // What is known of this study, or a fresh entry. Throws InputError if the study was begun with
  // another margin or level: they are declared before the first look. The plan of the study stays
  // that of its first look.
  StudyLooks find(const std::string& reference, const std::string& candidate,
                  const std::string& study, double margin, const LookPlan& plan) const;

  // Puts the study's looks into the file, which is replaced whole. Older studies of the same pair
  // of cells are dropped. Throws InputError or InfrastructureError if it cannot be written.
  void keep(const StudyLooks& looks);

 private:
  std::filesystem::path path_;
  std::vector<StudyLooks> studies_;
};

}  // namespace cupel
