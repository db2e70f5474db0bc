// The folder that a repack builds: OUT.partial until it is whole, then OUT.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cupel/checkpoint/config.h"

namespace cupel {

class RepackOutput {
 public:
  // Throws InputError if `out` exists or lies inside `in`. Makes nothing yet.
  RepackOutput(const std::filesystem::path& in, const std::filesystem::path& out);

  // Makes the temporary folder, or takes over the one that a run with the same plan left. Throws
  // InputError if something else is in the way or it cannot be made.
  void open(const std::string& plan);
  // Throws InfrastructureError if the file system has not so many bytes left.
  void require_space(std::uint64_t bytes) const;

  // Where a shard and its record go. The shard gets its name before its record does: with a record
  // it is complete.
  std::filesystem::path shard(const std::string& file) const { return partial_ / file; }
  std::filesystem::path record(const std::string& file) const;
  // The record's text if the shard is complete.
  std::optional<std::string> finished(const std::string& file) const;

  // weight_map: tensor -> shard.
  void write_index(const std::map<std::string, std::string>& weight_map, std::uint64_t total_size);
  // config.json with expert_dtype adjusted, and every other file that is no shard.
  void copy_side_files(ExpertDtype experts);

  const std::filesystem::path& partial() const { return partial_; }
  // Drops what only a repack needs and gives the folder its name. Throws InputError if that was
  // taken meanwhile.
  void finish();

 private:
  std::filesystem::path in_;
  std::filesystem::path out_;
  std::filesystem::path partial_;
};

}  // namespace cupel
