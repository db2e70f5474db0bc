#include "cupel/checkpoint/repack.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/catalogue.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/checkpoint_view.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/repack_output.h"
#include "cupel/checkpoint/repack_records.h"
#include "cupel/checkpoint/shard_stream.h"
#include "cupel/checkpoint/weight_diff.h"
#include "cupel/checkpoint/weight_rows.h"

namespace cupel {
namespace {

// Output of experts that are converted side by side, and bytes on their way to the storage: what
// bounds the memory.
constexpr std::size_t kBatchBytes = 64u << 20;
constexpr std::size_t kStreamBytes = 128u << 20;

// One tensor of an output shard.
struct OutputTensor {
  TensorSpec spec;
  const Tensor* copy = nullptr;    // its bytes as they are
  const Tensor* weight = nullptr;  // or: converted from this one, its bytes or (scale) its scales
  bool scale = false;

  std::uint64_t bytes() const { return checked_bytes(spec.shape, spec.dtype).value_or(0); }
};

struct OutputShard {
  std::string file;
  std::vector<OutputTensor> tensors;
  std::uint64_t bytes_in = 0;
  bool finished = false;  // by an earlier run
};

class Repacker {
 public:
  Repacker(const std::filesystem::path& in, const std::filesystem::path& out,
           const RepackOptions& options)
      : options_(options), input_(in), output_(input_.folder(), out) {
    for (const CatalogueEntry& entry : input_.catalogue()) {
      if (entry.role.find("routed expert") == std::string::npos) continue;
      if (entry.role.ends_with(" scale")) {
        scales_.emplace(entry.tensor->name, entry.tensor);
      } else {
        converted_layout(*entry.tensor, options.experts);  // refuses experts of that form
        experts_.emplace(entry.tensor->name, entry.tensor);
      }
    }
    report_.in = in.string();
    report_.out = out.string();
    report_.from = input_.config().expert_dtype;
    report_.to = options.experts;
    report_.shards = static_cast<int>(input_.shards().size());
  }

  RepackReport run() {
    const std::vector<OutputShard> shards = plan();
    ThreadPool pool(options_.threads);
    const auto start = std::chrono::steady_clock::now();
    {
      ShardStream stream(kStreamBytes);
      for (const OutputShard& shard : shards) {
        if (!shard.finished) write_shard(shard, stream, pool);
        done_ += shard.finished ? shard.bytes_in : 0;
      }
      stream.finish();
    }
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    output_.write_index(weight_map_, report_.bytes_out);
    output_.copy_side_files(options_.experts);
    std::ranges::sort(report_.weights, {}, &RepackedWeight::name);
    if (options_.verify) verify(pool);
    output_.finish();
    return std::move(report_);
  }

 private:
  // Opens the output; what an earlier run finished is taken over.
  std::vector<OutputShard> plan() {
    output_.open(nlohmann::ordered_json{{"input", input_.fingerprint()},
                                        {"experts", expert_dtype_name(options_.experts)}}
                     .dump() +
                 "\n");
    std::vector<OutputShard> shards;
    std::uint64_t to_write = 0;
    for (const SafetensorsFile& shard : input_.shards()) {
      shards.push_back(plan_shard(shard));
      const OutputShard& planned = shards.back();
      report_.bytes_in += planned.bytes_in;
      std::uint64_t bytes = 0;
      for (const OutputTensor& tensor : planned.tensors) {
        weight_map_[tensor.spec.name] = planned.file;
        bytes += tensor.bytes();
        ++report_.tensors_out;
      }
      report_.bytes_out += bytes;
      if (planned.finished) {
        ++report_.resumed_shards;
      } else {
        to_write += bytes;
        report_.bytes_converted += planned.bytes_in;
      }
    }
    output_.require_space(to_write);
    return shards;
  }

  const Tensor* scale_of(const Tensor& weight) const {
    const auto found = scales_.find(scale_name(weight.name));
    return found == scales_.end() ? nullptr : found->second;
  }

  // The scale follows its weight: a pair is converted once and never waits.
  OutputShard plan_shard(const SafetensorsFile& shard) {
    OutputShard out;
    out.file = shard.path().filename().string();
    for (const Tensor& tensor : shard.tensors()) {
      out.bytes_in += tensor.data.size();
      if (scales_.contains(tensor.name)) continue;
      if (!experts_.contains(tensor.name)) {
        out.tensors.push_back({{tensor.name, tensor.dtype, tensor.shape}, &tensor, nullptr, false});
        continue;
      }
      const ConvertedExpert layout = converted_layout(tensor, options_.experts);
      out.tensors.push_back({{tensor.name, layout.dtype, layout.shape}, nullptr, &tensor, false});
      if (layout.scale_shape.empty()) continue;
      out.tensors.push_back(
          {{scale_name(tensor.name), Dtype::kF8E8M0, layout.scale_shape}, nullptr, &tensor, true});
    }
    if (const auto record = output_.finished(out.file)) {
      for (RepackedWeight& weight : parse_records(*record, output_.record(out.file).string())) {
        report_.weights.push_back(std::move(weight));
      }
      out.finished = true;
    }
    return out;
  }

  void write_shard(const OutputShard& shard, ShardStream& stream, ThreadPool& pool) {
    const std::size_t first_record = report_.weights.size();
    std::vector<TensorSpec> specs;
    specs.reserve(shard.tensors.size());
    for (const OutputTensor& tensor : shard.tensors) specs.push_back(tensor.spec);
    stream.begin(output_.shard(shard.file), std::move(specs));
    for (auto rest = std::span(shard.tensors); !rest.empty();) {
      const std::size_t count = batch_size(rest);
      write_batch(rest.first(count), stream, pool);
      rest = rest.subspan(count);
    }
    stream.commit(output_.record(shard.file),
                  records_json(std::span(report_.weights).subspan(first_record)));
  }

  // A batch never parts a weight from its scale.
  static std::size_t batch_size(std::span<const OutputTensor> tensors) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    while (count < tensors.size() && (bytes < kBatchBytes || tensors[count].scale)) {
      if (tensors[count].copy == nullptr) bytes += tensors[count].bytes();
      ++count;
    }
    return count;
  }

  // Converts the experts of the batch side by side, then hands all of it over in order.
  void write_batch(std::span<const OutputTensor> batch, ShardStream& stream, ThreadPool& pool) {
    std::vector<const Tensor*> weights;
    for (const OutputTensor& output : batch) {
      if (output.weight == nullptr || output.scale) continue;
      weights.push_back(output.weight);
      prefetch(output.weight->data);
    }
    std::vector<ConvertedExpert> converted(weights.size());
    for (ConvertedExpert& expert : converted) expert.bytes = stream.spare();
    pool.parallel_for(weights.size(), [&](std::size_t i, int) {
      const Tensor* scale = scale_of(*weights[i]);
      converted[i] =
          convert_expert(*weights[i], scale, options_.experts, std::move(converted[i].bytes));
      release_pages(weights[i]->data);
      if (scale != nullptr) release_pages(scale->data);
    });
    std::size_t next = 0;
    for (const OutputTensor& output : batch) {
      if (output.copy != nullptr) {
        stream.copy(output.copy->data);
        advance(output.copy->data.size());
      } else if (output.scale) {
        stream.append(std::move(converted[next - 1].scales));
      } else {
        ConvertedExpert& expert = converted[next++];
        stream.append(std::move(expert.bytes));
        const Tensor* scale = scale_of(*output.weight);
        report_.weights.push_back({output.spec.name, expert.blocks, expert.elements,
                                   expert.changed_elements, expert.max_abs_error,
                                   std::move(expert.lossy), std::move(expert.ambiguous_groups)});
        advance(output.weight->data.size() + (scale == nullptr ? 0 : scale->data.size()));
      }
    }
  }

  void advance(std::uint64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(std::min(done_, report_.bytes_in), report_.bytes_in);
  }

  void verify(ThreadPool& pool) {
    const Checkpoint result(output_.partial());  // opens: complete and consistent
    const CheckpointView before(input_.folder(), false);
    const CheckpointView after(output_.partial(), false);
    std::unordered_map<std::string_view, const RepackedWeight*> records;
    for (const RepackedWeight& weight : report_.weights) records.emplace(weight.name, &weight);
    const auto& weights = before.weights();
    pool.parallel_for(weights.size(), [&](std::size_t i, int) {
      const ViewedWeight& weight = weights[i];
      const ViewedWeight* other = after.find(weight.name());
      if (other == nullptr) throw InfrastructureError(weight.name(), "lost by the repack");
      const auto record = records.find(weight.name());
      if (record == records.end()) {
        if (hash_weight(weight) != hash_weight(*other)) {
          throw InfrastructureError(weight.name(), "its copy has other bytes");
        }
        return;
      }
      const WeightDiff diff = diff_weights(weight, *other);
      if (diff.changed_elements != static_cast<std::uint64_t>(record->second->changed_elements) ||
          diff.new_nan != diff.old_nan || !diff.same_shape) {
        throw InfrastructureError(
            weight.name(), fmt::format("{} values differ after the repack, {} expected",
                                       diff.changed_elements, record->second->changed_elements));
      }
    });
    report_.verified = true;
  }

  const RepackOptions& options_;
  Checkpoint input_;
  RepackOutput output_;
  std::unordered_map<std::string_view, const Tensor*> experts_;
  std::unordered_map<std::string_view, const Tensor*> scales_;
  std::map<std::string, std::string> weight_map_;
  std::uint64_t done_ = 0;
  RepackReport report_;
};

}  // namespace

RepackReport repack(const std::filesystem::path& in, const std::filesystem::path& out,
                    const RepackOptions& options) {
  return Repacker(in, out, options).run();
}

}  // namespace cupel
