// A lenient look at a checkpoint, for comparison: what class Checkpoint refuses is a fault on a
// list here, and the shards may end after their headers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// Something that a load would refuse.
struct Fault {
  std::string where;   // file, tensor or field
  std::string what;    // what was expected and what is there
  bool target = true;  // false: only a drafter is hurt
};

// A tensor that carries values, with its scale: one weight as the network sees it.
struct ViewedWeight {
  const Tensor* tensor = nullptr;
  const Tensor* scale = nullptr;  // nullptr: none stored
  std::string role;               // as in the catalogue; "unknown" for tensors outside it
  bool target = true;             // false: of a drafter

  const std::string& name() const { return tensor->name; }
  std::uint64_t bytes() const { return tensor->bytes() + (scale ? scale->bytes() : 0); }
  // False when only the header is there.
  bool has_data() const;
};

// Any other file of the folder: tokenizer, generation settings, prompt encoder.
struct SideFile {
  std::string name;  // path within the folder
  std::string hash;
};

class CheckpointView {
 public:
  enum class Kind { kConfigOnly, kHeadersOnly, kFull };

  // `path`: a checkpoint folder, a folder whose shards end after their headers, or a config.json.
  // `headers_only`: take no values even if they are there. Throws InputError if there is neither a
  // configuration nor a shard to look at.
  CheckpointView(const std::filesystem::path& path, bool headers_only);

  const std::filesystem::path& path() const { return path_; }
  Kind kind() const { return kind_; }
  // Empty if there is no config.json that holds a JSON object.
  const std::string& config_text() const { return config_text_; }
  const std::filesystem::path& config_path() const { return config_path_; }
  // Nothing if class Checkpoint would refuse config.json; expert_dtype as the tensors say where the
  // file does not.
  const std::optional<ModelConfig>& config() const { return config_; }
  const std::vector<SafetensorsFile>& shards() const { return shards_; }
  const std::vector<ViewedWeight>& weights() const { return weights_; }  // by ascending name
  const ViewedWeight* find(std::string_view name) const;
  // Names that the index maps to a shard which could not be read: neither there nor missing.
  bool unreadable(std::string_view name) const { return unreadable_.contains(std::string(name)); }
  const std::vector<Fault>& faults() const { return faults_; }
  const std::vector<SideFile>& side_files() const { return side_files_; }
  // From the mtp.N. names; nothing for a config.json alone.
  std::optional<int> drafter_stages() const { return drafter_stages_; }

  std::int64_t tensors() const;  // scales counted
  std::uint64_t bytes() const;   // of all tensors, as the headers say

 private:
  void read_config();
  void read_shards(bool headers_only);
  void open_shard(const std::filesystem::path& file, bool headers_only);
  void pair_scales();
  void check_structure();
  void hash_side_files();
  void fault(std::string where, std::string what, bool target = true);

  std::filesystem::path path_;
  std::filesystem::path config_path_;
  Kind kind_ = Kind::kFull;
  std::string config_text_;
  std::optional<ModelConfig> config_;
  std::vector<SafetensorsFile> shards_;
  std::vector<ViewedWeight> weights_;
  std::unordered_set<std::string> unreadable_;
  std::vector<Fault> faults_;
  std::vector<SideFile> side_files_;
  std::optional<int> drafter_stages_;
};

}  // namespace cupel
