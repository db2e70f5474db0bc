#include "cupel/checkpoint/repack_output.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"

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

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// "/a/b/" names the same folder as "/a/b", and the temporary name must not end inside it.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

std::string with_expert_dtype(const std::string& text, std::string_view where,
                              ExpertDtype experts) {
  Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) throw InputError(where, "a JSON object", "something else");
  if (experts == ExpertDtype::kFp8) {
    config.erase("expert_dtype");
  } else {
    config["expert_dtype"] = expert_dtype_name(experts);
  }
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

RepackOutput::RepackOutput(const fs::path& in, const fs::path& out)
    : in_(in), out_(without_slash(out)), partial_(out_) {
  partial_ += ".partial";
  const fs::path inside = fs::canonical(in_);
  const fs::path target = fs::weakly_canonical(fs::absolute(out_));
  const auto [end, ignored] =
      std::mismatch(inside.begin(), inside.end(), target.begin(), target.end());
  if (end == inside.end()) {
    throw InputError(out_.string(), "an output outside the input folder", "one inside it");
  }
  if (is_there(out_)) {
    throw InputError(out_.string(), "a path that does not exist: nothing is overwritten",
                     "an existing one");
  }
}

void RepackOutput::open(const std::string& plan) {
  const fs::path plan_path = partial_ / kPlanFile;
  std::error_code error;
  if (fs::create_directory(partial_, error)) return write_atomically(plan_path, plan);
  if (error) throw InputError(partial_.string(), "a folder that can be created", error.message());
  // Files that were being written when a run ended; the plan itself may be among them.
  std::vector<fs::path> torn;
  bool begun = false;
  for (const auto& entry : fs::directory_iterator(partial_)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".tmp") != std::string::npos) torn.push_back(entry.path());
    begun = begun || !name.starts_with(std::string(kPlanFile) + ".tmp");
  }
  if (begun && (!is_there(plan_path) || read_file(plan_path) != plan)) {
    throw InputError(partial_.string(), "nothing, or an interrupted run of the same repack",
                     "something else");
  }
  for (const fs::path& path : torn) fs::remove(path, error);
  if (!begun) write_atomically(plan_path, plan);
}

void RepackOutput::require_space(std::uint64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(partial_, error);
  if (error || space.available >= bytes) return;
  throw InfrastructureError(
      out_.string(), fmt::format("{} bytes are to be written, the file system has {} left", bytes,
                                 space.available));
}

fs::path RepackOutput::record(const std::string& file) const {
  return partial_ / (file + std::string(kRecordSuffix));
}

std::optional<std::string> RepackOutput::finished(const std::string& file) const {
  if (!is_there(record(file)) || !is_there(shard(file))) return std::nullopt;
  return read_file(record(file));
}

void RepackOutput::write_index(const std::map<std::string, std::string>& weight_map,
                               std::uint64_t total_size) {
  Json map = Json::object();
  for (const auto& [name, file] : weight_map) map[name] = file;
  const Json index = {{"metadata", {{"total_size", total_size}}}, {"weight_map", map}};
  write_atomically(partial_ / kIndexFile, index.dump(2) + "\n");
}

void RepackOutput::copy_side_files(ExpertDtype experts) {
  for (auto entry = fs::recursive_directory_iterator(in_);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path& path = entry->path();
    const fs::path name = path.lexically_relative(in_);
    if (path.filename().string().starts_with(".")) {  // caches and version control
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || path.extension() == ".safetensors" || name == kIndexFile) {
      continue;
    }
    std::error_code error;
    fs::create_directories((partial_ / name).parent_path(), error);
    std::string text = read_file(path);
    // The reference network's own argument file states the form too.
    if (name == "config.json" || name == fs::path("inference") / "config.json") {
      text = with_expert_dtype(text, path.string(), experts);
    }
    write_atomically(partial_ / name, text);
  }
}

void RepackOutput::finish() {
  std::vector<fs::path> notes;
  for (const auto& entry : fs::directory_iterator(partial_)) {
    if (entry.path().filename().string().ends_with(kRecordSuffix)) notes.push_back(entry.path());
  }
  for (const fs::path& note : notes) fs::remove(note);
  sync_folder(partial_);
  // A folder made meanwhile must not be replaced, even an empty one.
  if (is_there(out_))
    throw InputError(out_.string(), "a path that does not exist", "one made meanwhile");
  std::error_code error;
  fs::rename(partial_, out_, error);
  if (error) throw InfrastructureError(out_.string(), error.message());
  // The plan last: whenever a run ends, the next one goes on, or all is there.
  fs::remove(out_ / kPlanFile);
  sync_folder(fs::absolute(out_).parent_path());
}

}  // namespace cupel
