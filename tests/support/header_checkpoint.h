// A checkpoint of any size by its headers alone: config.json, index, and shards that end after
// their headers, made from the catalogue.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/checkpoint/catalogue.h"

namespace cupel::test {

class HeaderCheckpoint {
 public:
  HeaderCheckpoint(const std::filesystem::path& config_file, int stages) {
    std::filesystem::copy_file(config_file, path() / "config.json");
    const ModelConfig config = load_config(config_file);
    write_shard([&](const auto& visit) { visit_trunk_tensors(config, visit); });
    for (int layer = 0; layer < config.layers; ++layer) {
      write_shard([&](const auto& visit) { visit_layer_tensors(config, layer, visit); });
    }
    for (int stage = 0; stage < stages; ++stage) {
      write_shard([&](const auto& visit) { visit_drafter_tensors(config, stage, stages, visit); });
    }
    std::string index = fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{)", total_);
    for (bool first = true; const auto& [name, file] : weight_map_) {
      index += fmt::format(R"({}"{}":"{}")", first ? "" : ",", name, file);
      first = false;
    }
    std::ofstream(path() / "model.safetensors.index.json") << index << "}}";
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  template <typename Visit>
  void write_shard(const Visit& visit) {
    const std::string file = fmt::format("model-{:05}.safetensors", ++shards_);
    std::string header = "{";
    std::uint64_t offset = 0;
    const auto add = [&](const std::string& name, Dtype dtype,
                         const std::vector<std::int64_t>& shape) {
      const std::uint64_t bytes = checked_bytes(shape, dtype).value();
      header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                            header.size() == 1 ? "" : ",", name, dtype_name(dtype),
                            shape_text(shape), offset, offset + bytes);
      offset += bytes;
      weight_map_[name] = file;
    };
    visit(ExpectedTensorVisitor([&](const ExpectedTensor& expected) {
      const Storage storage = legal_storages(expected).front();
      add(expected.name, storage.dtype, storage.shape);
      if (!storage.scale_shape.empty()) {
        add(scale_name(expected.name), Dtype::kF8E8M0, storage.scale_shape);
      }
    }));
    header += "}";
    total_ += offset;
    const std::uint64_t size = header.size();
    std::ofstream out(path() / file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), sizeof(size));
    out << header;
  }

  TemporaryFolder folder_;
  int shards_ = 0;
  std::uint64_t total_ = 0;
  std::map<std::string, std::string> weight_map_;
};

}  // namespace cupel::test
