// Per-sample results of other tools as records (docs/assay.md says which fields are read).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/eval/record.h"

namespace cupel {

enum class ResultFormat {
  kCupel,     // our own records: item, repeat, output, correct
  kLmEval,    // lm-eval samples_*.jsonl: doc_id, filter, filtered_resps, exact_match or acc
  kSglEval,   // sgl-eval output-rs*.jsonl: id, generation, symbolic_correct or is_correct
  kBenchRaw,  // SGLang's --raw-result-file: prompt_id, prompt, output, correct
};

std::string_view format_name(ResultFormat format);

struct ImportOptions {
  // lm-eval repeats each sample for every filter; must be named where a file has several.
  std::string filter = {};
  std::string metric = {};  // lm-eval: empty = exact_match, else acc
};

// The records of one cell from one or more files of JSON lines, each recognised by the fields of
// its first line. Repeats are counted on: a file's first pass follows the last of the file before.
// Records of other tools get the cell's name as identity, their tool's name as task, and a prompt
// hash from the prompt or question where the file has it; output is the text judged. Throws
// InputError with file and line for an unknown format, a broken line, a score that is neither 0
// nor 1, a sample that ended in an error (no wrong answer), or files of different formats or cells.
std::vector<Record> import_results(std::span<const std::filesystem::path> files,
                                   const std::string& cell, const ImportOptions& options = {});

}  // namespace cupel
