#include "cupel/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/checkpoint/catalogue_check.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/shard_index.h"

namespace cupel {
namespace {

constexpr const char* kPathVariable = "DEEPSEEK_V4_FP4_MODEL_PATH";

// The part of a tensor's data that the fingerprint sees.
std::span<const std::byte> sample(const Tensor& tensor) {
  constexpr std::size_t kLongest = 4096;
  return tensor.data.first(std::min(kLongest, tensor.data.size()));
}

std::string compute_fingerprint(const std::filesystem::path& config_file,
                                const std::vector<SafetensorsFile>& shards) {
  std::vector<const Tensor*> tensors;
  for (const SafetensorsFile& shard : shards) {
    for (const Tensor& tensor : shard.tensors()) {
      tensors.push_back(&tensor);
      prefetch(sample(tensor));  // all of them at once: the disk sees a deep queue
    }
  }
  std::ranges::sort(tensors, {}, &Tensor::name);
  Hasher hasher;
  const std::string config = read_file(config_file);
  // Lengths go in first: no two contents can read as the same stream.
  hasher.add(fmt::format("config {}\n", config.size())).add(config);
  for (const Tensor* tensor : tensors) {
    hasher.add(fmt::format("{} {} {} {}\n", tensor->name.size(), tensor->name,
                           dtype_name(tensor->dtype), tensor->shape_text()));
    hasher.add(sample(*tensor));
  }
  return hasher.hex();
}

}  // namespace

Checkpoint::Checkpoint(const std::filesystem::path& folder, SafetensorsFile::Data data)
    : folder_(folder), shards_(std::make_shared<std::vector<SafetensorsFile>>()) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw InputError(folder.string(), "a checkpoint folder", "no such folder");
  }
  const std::filesystem::path config_file = folder / "config.json";
  config_ = load_config(config_file);
  const ShardIndex index = read_shard_index(folder);
  shards_->reserve(index.files.size());
  for (const std::string& file : index.files) shards_->emplace_back(folder / file, data);
  by_name_ = index_tensors(index, *shards_);
  catalogue_ = check_catalogue(config_, by_name_, *shards_, index.source, drafter_stages_);
  fingerprint_ = compute_fingerprint(config_file, *shards_);
  // What the checks touched would else count as this process's memory until a load ends.
  for (const SafetensorsFile& shard : *shards_) {
    for (const Tensor& tensor : shard.tensors()) release_pages(tensor.data);
  }
}

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Tensor& Checkpoint::tensor(std::string_view name) const {
  const Tensor* found = find(name);
  if (found == nullptr) {
    throw InputError(tensor_where(folder_.string(), name), "such a tensor", "none");
  }
  return *found;
}

LentBytes Checkpoint::read(const Tensor& tensor, std::size_t begin, std::size_t count) const {
  return LentBytes::of_map(tensor.data.subspan(begin, count));
}

std::filesystem::path resolve_model_path(const std::optional<std::string>& flag) {
  const char* variable = std::getenv(kPathVariable);
  const bool set = variable != nullptr && *variable != '\0';
  if (!flag && !set) {
    throw InputError("--model", fmt::format("a checkpoint folder, here or in {}", kPathVariable),
                     "neither");
  }
  const std::string path = flag ? *flag : variable;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    throw InputError(flag ? "--model" : kPathVariable, "an existing folder", quote(path));
  }
  return path;
}

}  // namespace cupel
