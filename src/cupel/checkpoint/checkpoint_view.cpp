#include "cupel/checkpoint/checkpoint_view.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"
#include "cupel/checkpoint/catalogue.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/shard_index.h"

namespace cupel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexFile = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// N of "mtp.N.…", or -1.
int stage_of(std::string_view name) {
  if (!name.starts_with("mtp.")) return -1;
  int stage = -1;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + 4, last, stage);
  return error == std::errc() && end != last && *end == '.' ? stage : -1;
}

bool ends_after_header(const SafetensorsFile& file) {
  return std::ranges::all_of(file.tensors(), [](const Tensor& tensor) {
    return tensor.data.empty() && tensor.bytes() > 0;
  });
}

}  // namespace

bool ViewedWeight::has_data() const {
  const auto whole = [](const Tensor* t) { return t == nullptr || t->data.size() == t->bytes(); };
  return whole(tensor) && whole(scale);
}

CheckpointView::CheckpointView(const fs::path& path, bool headers_only) : path_(path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw InputError(path.string(), "a checkpoint folder or a config.json", "no such path");
  }
  if (!fs::is_directory(path, ignored)) {
    if (path.extension() != ".json") {
      throw InputError(path.string(), "a checkpoint folder or a config.json", "another file");
    }
    config_path_ = path;
    kind_ = Kind::kConfigOnly;
    read_config();
    if (config_text_.empty()) throw InputError(path.string(), "a JSON object", "something else");
    return;
  }
  config_path_ = path / "config.json";
  read_config();
  read_shards(headers_only);
  if (shards_.empty()) {
    if (config_text_.empty()) {
      throw InputError(path.string(), "config.json or *.safetensors files", "neither");
    }
    kind_ = Kind::kConfigOnly;
  }
  pair_scales();
  check_structure();
  hash_side_files();
}

void CheckpointView::fault(std::string where, std::string what, bool target) {
  faults_.push_back({std::move(where), std::move(what), target});
}

void CheckpointView::read_config() {
  if (!is_file(config_path_)) {
    fault(config_path_.string(), "expected a configuration, found no such file");
    return;
  }
  std::string text = read_file(config_path_);
  try {
    config_ = parse_config(text, config_path_.string());
  } catch (const InputError& error) {
    fault("config.json", error.what());
  }
  if (nlohmann::json::parse(text, nullptr, false).is_object()) config_text_ = std::move(text);
}

void CheckpointView::open_shard(const fs::path& file, bool headers_only) {
  try {
    SafetensorsFile shard(file, SafetensorsFile::Data::kHeaderOnly);
    std::uint64_t end = shard.header_bytes().size();
    for (const Tensor& tensor : shard.tensors()) end = std::max(end, tensor.begin + tensor.bytes());
    const std::uint64_t size = fs::file_size(file);
    if (size < end) {
      if (!ends_after_header(shard)) {
        fault(file.string(), fmt::format("expected {} bytes, as the header says, found {}: a "
                                         "half-downloaded shard",
                                         end, size));
      } else if (kind_ == Kind::kFull) {
        kind_ = Kind::kHeadersOnly;
      }
    }
    if (headers_only) kind_ = Kind::kHeadersOnly;
    shards_.push_back(std::move(shard));
  } catch (const Error& error) {
    fault(file.string(), error.what());
  }
}

void CheckpointView::read_shards(bool headers_only) {
  std::vector<std::string> files;
  std::unordered_map<std::string, std::string> weight_map;
  try {
    ShardIndex index = read_shard_index(path_);
    files = index.files;
    weight_map = std::move(index.weight_map);
  } catch (const InputError& error) {
    fault(std::string(kIndexFile), error.what());
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().extension() == ".safetensors") {
        files.push_back(entry.path().filename().string());
      }
    }
    std::ranges::sort(files);
  }
  std::set<std::string> opened;
  for (const std::string& file : files) {
    open_shard(path_ / file, headers_only);
    if (!shards_.empty() && shards_.back().path() == path_ / file) opened.insert(file);
  }
  // Where shards are missing or broken, the index still says what they should hold.
  std::unordered_set<std::string_view> stored;
  for (const SafetensorsFile& shard : shards_) {
    for (const Tensor& tensor : shard.tensors()) {
      stored.insert(tensor.name);
      if (!weight_map.empty() && !weight_map.contains(tensor.name)) {
        fault(tensor_where(tensor.file, tensor.name), "expected an entry in the index, found none",
              stage_of(tensor.name) < 0);
      }
    }
  }
  for (const auto& [name, file] : weight_map) {
    if (stored.contains(name)) continue;
    if (opened.contains(file)) {
      fault(tensor_where((path_ / file).string(), name),
            "expected the tensor, as the index says, found none", stage_of(name) < 0);
    } else {
      unreadable_.insert(name);
    }
  }
}

void CheckpointView::pair_scales() {
  std::unordered_map<std::string_view, const Tensor*> table;
  for (const SafetensorsFile& shard : shards_) {
    for (const Tensor& tensor : shard.tensors()) {
      if (!table.emplace(tensor.name, &tensor).second) {
        fault(tensor_where(tensor.file, tensor.name), "expected one such tensor, found another");
      }
    }
  }
  std::set<int> stages;
  for (const auto& [name, tensor] : table) {
    stages.insert(stage_of(name));
    constexpr std::string_view kScale = ".scale";
    if (name.ends_with(kScale)) {
      const std::string weight =
          fmt::format("{}.weight", name.substr(0, name.size() - kScale.size()));
      if (table.contains(weight)) continue;  // comes with its weight
    }
    ViewedWeight viewed;
    viewed.tensor = tensor;
    if (name.ends_with(".weight")) {
      const auto scale = table.find(scale_name(name));
      if (scale != table.end()) viewed.scale = scale->second;
    }
    viewed.role = "unknown";
    viewed.target = stage_of(name) < 0;
    weights_.push_back(std::move(viewed));
  }
  std::ranges::sort(weights_, {}, &ViewedWeight::name);
  stages.erase(-1);
  if (!shards_.empty()) drafter_stages_ = static_cast<int>(stages.size());
  // As class Checkpoint does: the first expert tells.
  if (config_ && !config_->expert_dtype_stated) {
    if (const ViewedWeight* expert = find("layers.0.ffn.experts.0.w1.weight")) {
      if (expert->tensor->dtype == Dtype::kF8E4M3) config_->expert_dtype = ExpertDtype::kFp8;
      if (expert->tensor->dtype == Dtype::kBF16) config_->expert_dtype = ExpertDtype::kBf16;
    }
  }
}

void CheckpointView::check_structure() {
  if (!config_ || shards_.empty()) return;
  bool target = true;
  const auto visit = [&](const ExpectedTensor& expected) {
    const auto found = std::ranges::lower_bound(weights_, expected.name, {}, &ViewedWeight::name);
    if (found == weights_.end() || found->name() != expected.name) {
      if (target && !unreadable_.contains(expected.name)) {
        fault(tensor_where(path_.string(), expected.name),
              fmt::format("expected a tensor ({}), found none", expected.role));
      }
      return;
    }
    found->role = target ? expected.role : fmt::format("drafter {}", expected.role);
    found->target = target;
    const Tensor& tensor = *found->tensor;
    const auto where = [&] { return tensor_where(tensor.file, tensor.name); };
    auto storages = legal_storages(expected);
    const bool expert = expected.encoding == Encoding::kExpert;
    if (expert && target) {
      storages = {storages.at(static_cast<std::size_t>(config_->expert_dtype))};
    }
    const auto storage = std::ranges::find(storages, tensor.dtype, &Storage::dtype);
    if (storage == storages.end()) {
      fault(where(),
            fmt::format("expected dtype {} ({}), found {}", dtype_name(storages.front().dtype),
                        expected.role, dtype_name(tensor.dtype)),
            target);
      return;
    }
    if (storage->shape != tensor.shape) {
      fault(where(),
            fmt::format("expected shape {} ({}), found {}", shape_text(storage->shape),
                        expected.role, tensor.shape_text()),
            target);
    }
    if (storage->scale_shape.empty()) return;
    const std::string scale = scale_name(expected.name);
    if (found->scale == nullptr) {
      if (unreadable_.contains(scale)) return;
      fault(tensor_where(tensor.file, scale),
            fmt::format("expected the scale {} of the {} tensor, found none",
                        shape_text(storage->scale_shape), dtype_name(tensor.dtype)),
            target);
    } else if (found->scale->dtype != Dtype::kF8E8M0 && found->scale->dtype != Dtype::kF32) {
      fault(tensor_where(found->scale->file, scale),
            fmt::format("expected dtype F8_E8M0 or F32, found {}", dtype_name(found->scale->dtype)),
            target);
    } else if (found->scale->shape != storage->scale_shape) {
      fault(tensor_where(found->scale->file, scale),
            fmt::format("expected shape {}, found {}", shape_text(storage->scale_shape),
                        found->scale->shape_text()),
            target);
    }
  };
  visit_trunk_tensors(*config_, visit);
  for (int layer = 0; layer < config_->layers; ++layer) visit_layer_tensors(*config_, layer, visit);
  target = false;
  const int stages = drafter_stages_.value_or(0);
  for (int stage = 0; stage < stages; ++stage) {
    visit_drafter_tensors(*config_, stage, stages, visit);
  }
  for (const ViewedWeight& weight : weights_) {
    if (weight.role != "unknown") continue;
    fault(tensor_where(weight.tensor->file, weight.name()),
          "expected a tensor that config.json calls for, found one without use", weight.target);
  }
}

void CheckpointView::hash_side_files() {
  // A folder that is a link into a cache holds links: follow them.
  for (auto entry =
           fs::recursive_directory_iterator(path_, fs::directory_options::skip_permission_denied);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path& file = entry->path();
    if (file.filename().string().starts_with(".")) {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    constexpr std::uintmax_t kLargest = 256u << 20;
    if (!is_file(file) || file.extension() == ".safetensors" || file == config_path_ ||
        file.filename() == kIndexFile || fs::file_size(file) > kLargest) {
      continue;
    }
    side_files_.push_back({file.lexically_relative(path_).string(), hash_hex(read_file(file))});
  }
  std::ranges::sort(side_files_, {}, &SideFile::name);
}

const ViewedWeight* CheckpointView::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(weights_, name, {}, [](const ViewedWeight& weight) {
    return std::string_view(weight.name());
  });
  return found == weights_.end() || found->name() != name ? nullptr : &*found;
}

std::int64_t CheckpointView::tensors() const {
  std::int64_t count = 0;
  for (const ViewedWeight& weight : weights_) count += weight.scale == nullptr ? 1 : 2;
  return count;
}

std::uint64_t CheckpointView::bytes() const {
  std::uint64_t bytes = 0;
  for (const ViewedWeight& weight : weights_) bytes += weight.bytes();
  return bytes;
}

}  // namespace cupel
