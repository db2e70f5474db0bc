// What `cupel inspect DIR` shows: the facts of a checkpoint, as text and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cupel/checkpoint/checkpoint.h"

namespace cupel {

// Tensors and their bytes.
struct TensorSum {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct InspectFacts {
  std::string folder;
  std::string fingerprint;
  int shards = 0;
  ModelConfig config;
  int drafter_stages = 0;

  std::vector<int> sliding_only_layers;   // ratio 0
  std::vector<int> sparse_layers;         // ratio 4
  std::vector<int> dense_entries_layers;  // ratio 128

  TensorSum used;
  std::map<std::string, TensorSum> skipped;  // by reason
  struct DtypeSum {
    TensorSum used;
    TensorSum skipped;
  };
  std::map<std::string, DtypeSum> by_dtype;  // by dtype_name
  std::map<std::string, TensorSum> by_role;  // used tensors
};

InspectFacts inspect_checkpoint(const Checkpoint& checkpoint);

std::string inspect_text(const InspectFacts& facts);
std::string inspect_json(const InspectFacts& facts);

// Prints the facts of `folder` on standard output and returns the exit code. `headers_only`: its
// shards may end after their headers. Throws InputError.
int run_inspect(const std::filesystem::path& folder, bool json, bool headers_only = false);

}  // namespace cupel
