// Which file of a checkpoint folder holds which tensor: model.safetensors.index.json, or a single
// model.safetensors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// A checkpoint's tensors by name; the views point into the tensors.
using TensorTable = std::unordered_map<std::string_view, const Tensor*>;

struct ShardIndex {
  std::filesystem::path source;    // the index, or the single file
  std::vector<std::string> files;  // ascending, file names within the folder
  bool sharded = false;            // there is an index
  std::unordered_map<std::string, std::string> weight_map;  // tensor -> file; empty without index
  std::optional<std::uint64_t> total_size;                  // metadata.total_size, bytes of tensors
};

// Throws InputError: neither file is there, the index is broken, it names a file outside the
// folder, or the folder holds a *.safetensors file that it does not name.
ShardIndex read_shard_index(const std::filesystem::path& folder);

// Index and opened shards agree in both directions, and no name is stored twice. Throws InputError
// naming file and tensor.
TensorTable index_tensors(const ShardIndex& index, const std::vector<SafetensorsFile>& shards);

}  // namespace cupel
