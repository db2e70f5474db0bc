#include "cupel/checkpoint/catalogue_check.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/catalogue.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/value_check.h"

namespace cupel {
namespace {

constexpr std::string_view kSkipReason = "no drafter runs";

const Tensor* find(const TensorTable& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

// The FP8 repack and early previews leave expert_dtype out: the first expert tells. If it is
// missing or has another dtype, the comparison below says so.
void detect_expert_dtype(ModelConfig& config, const TensorTable& table) {
  if (config.expert_dtype_stated) return;
  const Tensor* weight = find(table, "layers.0.ffn.experts.0.w1.weight");
  if (weight == nullptr) return;
  if (weight->dtype == Dtype::kF8E4M3) config.expert_dtype = ExpertDtype::kFp8;
  if (weight->dtype == Dtype::kBF16) config.expert_dtype = ExpertDtype::kBf16;
}

// N of a name that starts with "mtp.N."; -1 for any other name.
int drafter_stage(std::string_view name) {
  constexpr std::string_view kPrefix = "mtp.";
  if (!name.starts_with(kPrefix)) return -1;
  const char* first = name.data() + kPrefix.size();
  const char* last = name.data() + name.size();
  int stage = -1;
  const auto [end, error] = std::from_chars(first, last, stage);
  if (error != std::errc() || end == last || *end != '.' || stage < 0) return -1;
  return stage;
}

class Comparison {
 public:
  Comparison(const ModelConfig& config, const TensorTable& table,
             const std::vector<SafetensorsFile>& shards, std::string source)
      : config_(config), table_(table), source_(std::move(source)) {
    entries_.reserve(table.size());
    for (const SafetensorsFile& shard : shards) {
      for (const Tensor& tensor : shard.tensors()) {
        entry_of_.emplace(&tensor, entries_.size());
        entries_.push_back({&tensor, false, {}, {}});
      }
    }
  }

  void compare_main() {
    const auto visit = [this](const ExpectedTensor& expected) { require(expected); };
    visit_trunk_tensors(config_, visit);
    for (int layer = 0; layer < config_.layers; ++layer) {
      visit_layer_tensors(config_, layer, visit);
    }
  }

  // No drafter runs yet: its tensors may be absent, but those present must be what they claim.
  int compare_drafter() {
    std::set<int> stages;
    for (const CatalogueEntry& entry : entries_) {
      const int stage = drafter_stage(entry.tensor->name);
      if (stage >= 0) stages.insert(stage);
    }
    const int count = config_.drafter == DrafterKind::kNone ? 0 : static_cast<int>(stages.size());
    if (count > 0 && *stages.rbegin() != count - 1) {
      throw InputError(
          fmt::format("{}: tensors mtp.{}.*", source_, *stages.rbegin()),
          fmt::format("stages numbered from 0 without a gap, here up to mtp.{}", count - 1),
          fmt::format("mtp.{}", *stages.rbegin()));
    }
    if (config_.drafter == DrafterKind::kMtp && count > config_.nextn_predict_layers) {
      throw InputError(fmt::format("{}: tensors mtp.{}.*", source_, count - 1),
                       fmt::format("at most {} drafter layers, as config.json: field "
                                   "num_nextn_predict_layers says",
                                   config_.nextn_predict_layers),
                       fmt::format("{}", count));
    }
    const auto visit = [this](const ExpectedTensor& expected) { skip(expected); };
    for (int stage = 0; stage < count; ++stage) {
      visit_drafter_tensors(config_, stage, count, visit);
    }
    return count;
  }

  std::vector<CatalogueEntry> finish() {
    for (const CatalogueEntry& entry : entries_) {
      if (entry.used || !entry.reason.empty()) continue;
      throw InputError(tensor_where(entry.tensor->file, entry.tensor->name),
                       "a tensor that config.json calls for", unknown_text(entry.tensor->name));
    }
    return std::move(entries_);
  }

 private:
  std::string unknown_text(std::string_view name) const {
    if (drafter_stage(name) >= 0) {
      switch (config_.drafter) {
        case DrafterKind::kNone:
          return "one of a drafter, which config.json does not have";
        case DrafterKind::kMtp:
          return "no use for it (the drafter is an MTP head: config.json has no dspark_block_size)";
        case DrafterKind::kDspark:
          return "no use for it (the drafter is DSpark: config.json has dspark_block_size)";
      }
    }
    return "no use for it";
  }

  // A tensor of the main network, with its scale and its values.
  void require(const ExpectedTensor& expected) {
    const Tensor* tensor = find(table_, expected.name);
    if (tensor == nullptr) {
      const Storage storage = preferred_storage(expected);
      throw InputError(
          tensor_where(source_, expected.name),
          fmt::format("a tensor {} {} ({}), which config.json calls for", dtype_name(storage.dtype),
                      shape_text(storage.shape), expected.role),
          "no such tensor");
    }
    const Storage storage =
        match_storage(expected, *tensor, expected.encoding == Encoding::kExpert);
    use(*tensor, expected.role);
    if (expected.dtype == Dtype::kI64) check_expert_ids(*tensor, config_.routed_experts);
    if (const Tensor* scale = match_scale(*tensor, storage)) {
      check_scale_values(*scale);
      use(*scale, fmt::format("{} scale", expected.role));
    }
  }

  // A tensor of the drafter, if it is there.
  void skip(const ExpectedTensor& expected) {
    const Tensor* tensor = find(table_, expected.name);
    if (tensor == nullptr) {
      const Tensor* scale =
          expected.encoding == Encoding::kPlain ? nullptr : find(table_, scale_name(expected.name));
      if (scale == nullptr) return;
      throw InputError(tensor_where(scale->file, scale->name),
                       fmt::format("tensor {}, which it scales", quote(expected.name)),
                       "no such tensor");
    }
    const Storage storage = match_storage(expected, *tensor, false);
    set_aside(*tensor, fmt::format("drafter {}", expected.role));
    if (const Tensor* scale = match_scale(*tensor, storage)) {
      set_aside(*scale, fmt::format("drafter {} scale", expected.role));
    }
  }

  void use(const Tensor& tensor, std::string role) {
    CatalogueEntry& entry = entries_[entry_of_.at(&tensor)];
    entry.used = true;
    entry.role = std::move(role);
  }

  void set_aside(const Tensor& tensor, std::string role) {
    CatalogueEntry& entry = entries_[entry_of_.at(&tensor)];
    entry.reason = kSkipReason;
    entry.role = std::move(role);
  }

  Storage preferred_storage(const ExpectedTensor& expected) const {
    const std::vector<Storage> legal = legal_storages(expected);
    const bool expert = expected.encoding == Encoding::kExpert;
    return legal.at(expert ? static_cast<std::size_t>(config_.expert_dtype) : 0);
  }

  // `one_dtype`: all such tensors are stored alike, as config.expert_dtype says.
  Storage match_storage(const ExpectedTensor& expected, const Tensor& tensor,
                        bool one_dtype) const {
    std::vector<Storage> legal = legal_storages(expected);
    std::string why;
    if (one_dtype) {
      legal = {preferred_storage(expected)};
      why = fmt::format(" ({} experts, as {})", expert_dtype_name(config_.expert_dtype),
                        config_.expert_dtype_stated ? "config.json: field expert_dtype says"
                                                    : "the first expert of layer 0 is stored");
    }
    const auto match = std::ranges::find(legal, tensor.dtype, &Storage::dtype);
    if (match == legal.end()) {
      std::string dtypes;
      for (const Storage& storage : legal) {
        dtypes += fmt::format("{}{}", dtypes.empty() ? "" : " or ", dtype_name(storage.dtype));
      }
      throw InputError(tensor_where(tensor.file, tensor.name, "dtype"), dtypes + why,
                       dtype_name(tensor.dtype));
    }
    if (tensor.shape != match->shape) {
      throw InputError(tensor_where(tensor.file, tensor.name, "shape"),
                       fmt::format("{} for {} ({}), as config.json says", shape_text(match->shape),
                                   dtype_name(tensor.dtype), expected.role),
                       tensor.shape_text());
    }
    return *match;
  }

  // The scale of `weight`; nullptr where its storage has none.
  const Tensor* match_scale(const Tensor& weight, const Storage& storage) const {
    if (storage.scale_shape.empty()) return nullptr;
    const std::string name = scale_name(weight.name);
    const Tensor* scale = find(table_, name);
    if (scale == nullptr) {
      throw InputError(tensor_where(weight.file, name),
                       fmt::format("a scale F8_E8M0 or F32 {} for the {} tensor {}",
                                   shape_text(storage.scale_shape), dtype_name(weight.dtype),
                                   quote(weight.name)),
                       "no such tensor");
    }
    if (scale->dtype != Dtype::kF8E8M0 && scale->dtype != Dtype::kF32) {
      throw InputError(tensor_where(scale->file, name, "dtype"), "F8_E8M0 or F32",
                       dtype_name(scale->dtype));
    }
    if (scale->shape != storage.scale_shape) {
      throw InputError(tensor_where(scale->file, name, "shape"),
                       fmt::format("{} for {} {}", shape_text(storage.scale_shape),
                                   dtype_name(weight.dtype), weight.shape_text()),
                       scale->shape_text());
    }
    return scale;
  }

  const ModelConfig& config_;
  const TensorTable& table_;
  std::string source_;
  std::vector<CatalogueEntry> entries_;
  std::unordered_map<const Tensor*, std::size_t> entry_of_;
};

}  // namespace

std::vector<CatalogueEntry> check_catalogue(ModelConfig& config, const TensorTable& table,
                                            const std::vector<SafetensorsFile>& shards,
                                            const std::filesystem::path& source,
                                            int& drafter_stages) {
  detect_expert_dtype(config, table);
  Comparison comparison(config, table, shards, source.string());
  comparison.compare_main();
  drafter_stages = comparison.compare_drafter();
  return comparison.finish();
}

}  // namespace cupel
