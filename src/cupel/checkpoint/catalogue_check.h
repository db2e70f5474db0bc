// Compares the tensors of a folder with the catalogue.
#pragma once

#include <filesystem>
#include <vector>

#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/shard_index.h"

namespace cupel {

// One entry for each tensor of `shards`, in their order. `table` holds the same tensors, `source`
// is named in errors about tensors that no file has. Sets config.expert_dtype if the configuration
// does not state it, and `drafter_stages`. Throws InputError as class Checkpoint says.
std::vector<CatalogueEntry> check_catalogue(ModelConfig& config, const TensorTable& table,
                                            const std::vector<SafetensorsFile>& shards,
                                            const std::filesystem::path& source,
                                            int& drafter_stages);

}  // namespace cupel
