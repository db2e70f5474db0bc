// A checkpoint folder: config.json, the sharded index, the shards, and what each tensor is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/safetensors.h"
#include "cupel/checkpoint/weight_source.h"

namespace cupel {

// What the catalogue says of one tensor.
struct CatalogueEntry {
  const Tensor* tensor = nullptr;
  bool used = false;
  std::string reason;  // why it is skipped; empty when used
  std::string role;    // for example "routed expert w1", "compressor ape", "drafter"
};

// Opening checks all of it: every tensor that the configuration calls for is present with its shape
// and one of its legal dtypes (FP4, FP8 or BF16 experts, all alike; E8M0 or F32 scales; wo_a as FP8
// with scale or as BF16), index and shards agree in both directions, no used E8M0 byte is 255,
// token routes name existing experts, and every tensor is used, skipped for a stated reason (mtp.*
// while no drafter runs), or an error. The scales are read in full; nothing else is. Throws
// InputError.
class Checkpoint final : public WeightSource {
 public:
  // `data` kHeaderOnly: shards may end after their headers; such tensors have no values, and none
  // of theirs is checked.
  explicit Checkpoint(const std::filesystem::path& folder,
                      SafetensorsFile::Data data = SafetensorsFile::Data::kRequired);

  const std::filesystem::path& folder() const { return folder_; }
  const ModelConfig& config() const override { return config_; }
  const std::vector<SafetensorsFile>& shards() const { return *shards_; }
  const std::vector<CatalogueEntry>& catalogue() const { return catalogue_; }

  // Stages of the drafter in the folder, counted from the mtp.N. names; 0 without a drafter.
  int drafter_stages() const { return drafter_stages_; }

  // Throws InputError if there is no such tensor.
  const Tensor& tensor(std::string_view name) const override;
  // nullptr if there is no such tensor.
  const Tensor* find(std::string_view name) const;

  // Hash over config.json and every tensor's name, dtype, shape and first 4 KiB, by ascending name
  // (so it does not depend on the split into shards): tells checkpoints apart in seconds at any
  // size. 32 hexadecimal digits.
  const std::string& fingerprint() const override { return fingerprint_; }

  LentBytes read(const Tensor& tensor, std::size_t begin, std::size_t count) const override;
  std::shared_ptr<const void> map() const override { return shards_; }

 private:
  std::filesystem::path folder_;
  ModelConfig config_;
  std::shared_ptr<std::vector<SafetensorsFile>> shards_;
  std::unordered_map<std::string_view, const Tensor*> by_name_;
  std::vector<CatalogueEntry> catalogue_;
  int drafter_stages_ = 0;
  std::string fingerprint_;
};

// The folder named by --model, or by DEEPSEEK_V4_FP4_MODEL_PATH when --model is absent. Throws
// InputError if neither names an existing folder.
std::filesystem::path resolve_model_path(const std::optional<std::string>& flag);

}  // namespace cupel
