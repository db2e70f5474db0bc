// What an evaluation keeps: one JSON line for each item and repeat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/eval/target.h"

namespace cupel {

// Names the cell of the matrix that an answer came from. Records of one file share one identity.
struct CellIdentity {
  std::string cell;      // label in reports, for example "tiny-v4-0731/packed"
  std::string backend;   // attention backend; empty where it is not known
  std::string settings;  // all else that changes an answer, as text
  std::string build;     // build_fingerprint()
  std::string model;     // Target::model_fingerprint()

  bool operator==(const CellIdentity&) const = default;
};

// Members in the order of the keys of the line. Unknown keys are ignored when reading, so that a
// later version may add some.
struct Record {
  std::string task;
  int item = 0;             // from 0
  int repeat = 0;           // from 0
  std::string prompt_hash;  // hash_hex(prompt text)
  std::string output;       // invalid UTF-8 is written as U+FFFD
  std::vector<std::int32_t> output_ids;
  std::optional<std::int64_t> extracted;  // lenient rule; null in JSON if there is no digit
  std::int64_t gold = 0;
  bool correct = false;
  bool correct_strict = false;
  bool invalid = false;
  StopReason stop_reason = StopReason::kEos;  // "eos", "stop" or "length"; never kError
  int prompt_tokens = 0;
  int completion_tokens = 0;
  float min_margin = std::numeric_limits<float>::quiet_NaN();  // null in JSON if not finite
  int min_margin_step = -1;
  double queue_seconds = 0;  // null in JSON if not finite, as are the next two
  double first_token_seconds = 0;
  double total_seconds = 0;
  CellIdentity identity;  // the keys cell, backend, settings, build, model
  // Of which launch of the target the answer is; empty where that makes no difference. Records of
  // one file may differ in it. Missing in records of early versions, as is `retries`.
  std::string launch;
  int retries = 0;  // Completion::retries

  // Equal members; a margin or time that is not finite equals another.
  bool operator==(const Record& other) const;
};

std::string_view stop_reason_name(StopReason reason);

// One line of JSON without the newline.
std::string to_json_line(const Record& record);

// `where` names file and line in errors. Throws InputError for broken JSON, a missing key, a wrong
// type or a value out of range.
Record parse_record(std::string_view line, const std::string& where);

enum class UnfinishedLine {
  kRefuse,
  kDrop,  // a killed run's last line without its newline is left out
};

// All records of a file in its order. Throws InputError with the line number, also for a second
// record of the same item and repeat.
std::vector<Record> read_records(const std::filesystem::path& path,
                                 UnfinishedLine unfinished = UnfinishedLine::kRefuse);

}  // namespace cupel
