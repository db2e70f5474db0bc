#include "cupel/checkpoint/repack.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/catalogue.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/checkpoint_view.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/repack_records.h"
#include "cupel/checkpoint/weight_diff.h"
#include "cupel/checkpoint/weight_rows.h"

namespace cupel {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kPlanFile = "cupel-repack-plan.json";
constexpr std::string_view kRecordSuffix = ".record.json";

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool good = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!good) throw InfrastructureError(folder.string(), "cannot sync the folder");
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// One tensor of an output shard.
struct OutputTensor {
  TensorSpec spec;
  const Tensor* copy = nullptr;    // its bytes as they are
  const Tensor* weight = nullptr;  // or: converted from this one, its bytes or (scale) its scales
  bool scale = false;
};

class Repacker {
 public:
  Repacker(const fs::path& in, const fs::path& out, const RepackOptions& options)
      : options_(options), input_(in), out_(out), partial_(out) {
    partial_ += ".partial";
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
    check_output();
    prepare_folder();
    ThreadPool pool(options_.threads);
    for (const SafetensorsFile& shard : input_.shards()) {
      for (const Tensor& tensor : shard.tensors()) report_.bytes_in += tensor.data.size();
    }
    for (const SafetensorsFile& shard : input_.shards()) repack_shard(shard, pool);
    write_index();
    write_config();
    copy_side_files();
    std::ranges::sort(report_.weights, {}, &RepackedWeight::name);
    if (options_.verify) verify(pool);
    finish();
    return std::move(report_);
  }

 private:
  void check_output() {
    std::error_code error;
    const fs::path inside = fs::canonical(input_.folder());
    const fs::path target = fs::weakly_canonical(fs::absolute(out_));
    const auto [end, ignored] =
        std::mismatch(inside.begin(), inside.end(), target.begin(), target.end());
    if (end == inside.end()) {
      throw InputError(out_.string(), "an output outside the input folder", "one inside it");
    }
    if (fs::symlink_status(out_, error).type() != fs::file_type::not_found) {
      throw InputError(out_.string(), "a path that does not exist: nothing is overwritten",
                       "an existing one");
    }
  }

  // The temporary folder, new or left by an interrupted run of the same job.
  void prepare_folder() {
    const std::string plan =
        Json{{"input", input_.fingerprint()}, {"experts", expert_dtype_name(options_.experts)}}
            .dump() +
        "\n";
    const fs::path plan_path = partial_ / kPlanFile;
    std::error_code error;
    if (fs::create_directory(partial_, error)) {
      write_text(plan_path, plan);
      return;
    }
    if (error) throw InputError(partial_.string(), "a folder that can be created", error.message());
    const bool empty = fs::is_empty(partial_, error);
    if (!empty && (!fs::exists(plan_path, error) || read_file(plan_path) != plan)) {
      throw InputError(partial_.string(), "nothing, or an interrupted run of the same repack",
                       "something else");
    }
    if (empty) write_text(plan_path, plan);
    // Files that were being written when the run ended.
    std::vector<fs::path> torn;
    for (const auto& entry : fs::directory_iterator(partial_)) {
      if (entry.path().filename().string().find(".tmp") != std::string::npos) {
        torn.push_back(entry.path());
      }
    }
    for (const fs::path& path : torn) fs::remove(path, error);
  }

  const Tensor* scale_of(const Tensor& weight) const {
    const auto found = scales_.find(scale_name(weight.name));
    return found == scales_.end() ? nullptr : found->second;
  }

  // The scale follows its weight: a pair is converted once and never waits.
  std::vector<OutputTensor> plan_shard(const SafetensorsFile& shard) const {
    std::vector<OutputTensor> outputs;
    for (const Tensor& tensor : shard.tensors()) {
      if (scales_.contains(tensor.name)) continue;
      if (!experts_.contains(tensor.name)) {
        outputs.push_back({{tensor.name, tensor.dtype, tensor.shape}, &tensor, nullptr, false});
        continue;
      }
      const ConvertedExpert layout = converted_layout(tensor, options_.experts);
      outputs.push_back({{tensor.name, layout.dtype, layout.shape}, nullptr, &tensor, false});
      if (layout.scale_shape.empty()) continue;
      outputs.push_back(
          {{scale_name(tensor.name), Dtype::kF8E8M0, layout.scale_shape}, nullptr, &tensor, true});
    }
    return outputs;
  }

  void note_output(const std::vector<OutputTensor>& outputs, const std::string& file) {
    for (const OutputTensor& output : outputs) {
      weight_map_[output.spec.name] = file;
      report_.bytes_out += checked_bytes(output.spec.shape, output.spec.dtype).value_or(0);
      ++report_.tensors_out;
    }
  }

  void repack_shard(const SafetensorsFile& shard, ThreadPool& pool) {
    const std::string file = shard.path().filename().string();
    const std::vector<OutputTensor> outputs = plan_shard(shard);
    std::uint64_t bytes = 0;
    for (const Tensor& tensor : shard.tensors()) bytes += tensor.data.size();
    note_output(outputs, file);
    const fs::path record = partial_ / (file + std::string(kRecordSuffix));
    std::error_code ignored;
    // The shard gets its name before its record does: with a record it is complete.
    if (fs::exists(record, ignored) && fs::exists(partial_ / file, ignored)) {
      for (RepackedWeight& weight : parse_records(read_file(record), record.string())) {
        report_.weights.push_back(std::move(weight));
      }
      ++report_.resumed_shards;
      advance(bytes);
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    const std::size_t first_record = report_.weights.size();
    std::vector<TensorSpec> specs;
    specs.reserve(outputs.size());
    for (const OutputTensor& output : outputs) specs.push_back(output.spec);
    SafetensorsWriter writer(partial_ / file, specs);
    for (std::size_t first = 0; first < outputs.size();) {
      first = write_batch(outputs, first, writer, pool);
    }
    writer.commit();
    write_text(record, records_json(std::span(report_.weights).subspan(first_record)));
    report_.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report_.bytes_converted += bytes;
  }

  // Converts experts side by side up to a bound of memory, then writes in order. Returns the next
  // output.
  std::size_t write_batch(const std::vector<OutputTensor>& outputs, std::size_t first,
                          SafetensorsWriter& writer, ThreadPool& pool) {
    constexpr std::size_t kMostBytes = 128u << 20;
    std::vector<const Tensor*> weights;
    std::size_t bytes = 0;
    std::size_t last = first;
    for (; last < outputs.size() && (bytes < kMostBytes || outputs[last].scale); ++last) {
      if (outputs[last].weight == nullptr || outputs[last].scale) continue;
      weights.push_back(outputs[last].weight);
      bytes += checked_bytes(outputs[last].spec.shape, outputs[last].spec.dtype).value_or(0);
      prefetch(weights.back()->data);
    }
    std::vector<ConvertedExpert> converted(weights.size());
    pool.parallel_for(weights.size(), [&](std::size_t i, int) {
      const Tensor* scale = scale_of(*weights[i]);
      converted[i] = convert_expert(*weights[i], scale, options_.experts);
      release_pages(weights[i]->data);
      if (scale != nullptr) release_pages(scale->data);
    });
    std::size_t next = 0;
    for (std::size_t i = first; i < last; ++i) {
      const OutputTensor& output = outputs[i];
      if (output.copy != nullptr) {
        write_copy(*output.copy, writer);
      } else if (output.scale) {
        writer.append(std::as_bytes(std::span(converted[next - 1].scales)));
      } else {
        ConvertedExpert& expert = converted[next++];
        writer.append(std::as_bytes(std::span(expert.bytes)));
        expert.bytes = {};
        const Tensor* scale = scale_of(*output.weight);
        advance(output.weight->data.size() + (scale == nullptr ? 0 : scale->data.size()));
        report_.weights.push_back({output.spec.name, expert.blocks, expert.elements,
                                   expert.changed_elements, expert.max_abs_error,
                                   std::move(expert.lossy), std::move(expert.ambiguous_groups)});
      }
    }
    return last;
  }

  void write_copy(const Tensor& tensor, SafetensorsWriter& writer) {
    constexpr std::size_t kPiece = 8u << 20;
    for (std::size_t at = 0; at < tensor.data.size(); at += kPiece) {
      const auto piece = tensor.data.subspan(at, std::min(kPiece, tensor.data.size() - at));
      prefetch(piece);
      writer.append(piece);
      release_pages(piece);
    }
    advance(tensor.data.size());
  }

  void advance(std::uint64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(std::min(done_, report_.bytes_in), report_.bytes_in);
  }

  void write_index() {
    Json map = Json::object();
    for (const auto& [name, file] : weight_map_) map[name] = file;
    const Json index = {{"metadata", {{"total_size", report_.bytes_out}}}, {"weight_map", map}};
    write_text(partial_ / kIndexFile, index.dump(2) + "\n");
  }

  std::string adjusted(const std::string& text, std::string_view where) const {
    Json config = Json::parse(text, nullptr, false);
    if (!config.is_object()) throw InputError(where, "a JSON object", "something else");
    if (options_.experts == ExpertDtype::kFp8) {
      config.erase("expert_dtype");
    } else {
      config["expert_dtype"] = expert_dtype_name(options_.experts);
    }
    return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  void write_config() {
    const fs::path path = input_.folder() / "config.json";
    write_text(partial_ / "config.json", adjusted(read_file(path), path.string()));
  }

  void copy_side_files() {
    const fs::path& from = input_.folder();
    for (auto entry = fs::recursive_directory_iterator(from);
         entry != fs::recursive_directory_iterator(); ++entry) {
      const fs::path& path = entry->path();
      const fs::path name = path.lexically_relative(from);
      if (path.filename().string().starts_with(".")) {  // caches and version control
        if (entry->is_directory()) entry.disable_recursion_pending();
        continue;
      }
      if (!entry->is_regular_file() || path.extension() == ".safetensors" ||
          name == "config.json" || name == kIndexFile) {
        continue;
      }
      std::error_code error;
      fs::create_directories((partial_ / name).parent_path(), error);
      std::string text = read_file(path);
      // The reference network's own argument file states the form too.
      if (name == fs::path("inference") / "config.json") text = adjusted(text, path.string());
      write_text(partial_ / name, text);
    }
  }

  void verify(ThreadPool& pool) {
    const Checkpoint result(partial_);  // opens: complete and consistent
    const CheckpointView before(input_.folder(), false);
    const CheckpointView after(partial_, false);
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

  void finish() {
    for (const SafetensorsFile& shard : input_.shards()) {
      fs::remove(partial_ / (shard.path().filename().string() + std::string(kRecordSuffix)));
    }
    fs::remove(partial_ / kPlanFile);
    sync_folder(partial_);
    std::error_code error;
    // A folder made meanwhile must not be replaced, even an empty one.
    if (fs::symlink_status(out_, error).type() != fs::file_type::not_found) {
      throw InputError(out_.string(), "a path that does not exist", "one made meanwhile");
    }
    fs::rename(partial_, out_, error);
    if (error) throw InfrastructureError(out_.string(), error.message());
    sync_folder(fs::absolute(out_).parent_path());
  }

  const RepackOptions& options_;
  Checkpoint input_;
  fs::path out_;
  fs::path partial_;
  std::unordered_map<std::string_view, const Tensor*> experts_;
  std::unordered_map<std::string_view, const Tensor*> scales_;
  std::map<std::string, std::string> weight_map_;
  std::uint64_t done_ = 0;
  RepackReport report_;
};

// "/a/b/" names the same folder as "/a/b", and the temporary name must not end inside it.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

RepackReport repack(const fs::path& in, const fs::path& out, const RepackOptions& options) {
  return Repacker(in, without_slash(out), options).run();
}

}  // namespace cupel
