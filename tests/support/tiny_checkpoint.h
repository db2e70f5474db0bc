// A bundled checkpoint in a folder of its own, for tests that break it. Files are links until a
// test replaces them.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel::test {

struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

class TinyCheckpoint {
 public:
  // `name`: "tiny-v4-preview" or "tiny-v4-0731".
  explicit TinyCheckpoint(const std::string& name) {
    const std::filesystem::path source = std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      std::filesystem::create_symlink(entry.path(), path() / entry.path().filename());
    }
  }

  const std::filesystem::path& path() const { return folder_.path(); }

  void edit_json(const std::string& file, const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json json = nlohmann::json::parse(read_file(path() / file));
    edit(json);
    replace(file, json.dump());
  }
  void edit_config(const std::function<void(nlohmann::json&)>& edit) {
    edit_json("config.json", edit);
  }
  void edit_index(const std::function<void(nlohmann::json&)>& edit) {
    edit_json("model.safetensors.index.json", edit);
  }

  // Rewrites the whole shard `file`; the index stays.
  void edit_shard(const std::string& file,
                  const std::function<void(std::vector<StoredTensor>&)>& edit) {
    std::vector<StoredTensor> tensors = read(path() / file);
    edit(tensors);
    std::filesystem::remove(path() / file);
    write(path() / file, tensors);
  }

  // Rewrites the shard that holds `name`, with that tensor changed.
  void edit_tensor(const std::string& name, const std::function<void(StoredTensor&)>& edit) {
    edit_shard(shard_of(name), [&](std::vector<StoredTensor>& tensors) {
      for (StoredTensor& tensor : tensors) {
        if (tensor.name == name) return edit(tensor);
      }
      throw std::runtime_error("no such tensor: " + name);
    });
    drop_total_size();
  }

  // Takes tensors out of their shards and out of the index.
  void remove_tensors(const std::function<bool(const std::string&)>& chosen) {
    edit_index([&](nlohmann::json& index) {
      nlohmann::json kept = nlohmann::json::object();
      std::set<std::string> shards;
      for (const auto& [name, shard] : index["weight_map"].items()) {
        if (chosen(name)) {
          shards.insert(shard.get<std::string>());
        } else {
          kept[name] = shard;
        }
      }
      for (const std::string& shard : shards) {
        edit_shard(shard, [&](std::vector<StoredTensor>& tensors) {
          std::erase_if(tensors, [&](const StoredTensor& tensor) { return chosen(tensor.name); });
        });
      }
      index["weight_map"] = kept;
      index.erase("metadata");
    });
  }
  void remove_tensor(const std::string& name) {
    remove_tensors([&](const std::string& other) { return other == name; });
  }

  // Adds a tensor to the first shard and to the index.
  void add_tensor(const StoredTensor& tensor) {
    const std::string shard = shard_of("embed.weight");
    edit_shard(shard, [&](std::vector<StoredTensor>& tensors) { tensors.push_back(tensor); });
    edit_index([&](nlohmann::json& index) {
      index["weight_map"][tensor.name] = shard;
      index.erase("metadata");
    });
  }

  std::string shard_of(const std::string& name) const {
    const auto index = nlohmann::json::parse(read_file(path() / "model.safetensors.index.json"));
    return index.at("weight_map").at(name).get<std::string>();
  }

  void drop_total_size() {
    edit_index([](nlohmann::json& index) { index.erase("metadata"); });
  }

  void replace(const std::string& file, const std::string& bytes) {
    std::filesystem::remove(path() / file);
    std::ofstream(path() / file, std::ios::binary) << bytes;
  }

  static std::vector<StoredTensor> read(const std::filesystem::path& file) {
    const SafetensorsFile opened(file);
    std::vector<StoredTensor> tensors;
    for (const Tensor& tensor : opened.tensors()) {
      tensors.push_back(
          {tensor.name, tensor.dtype, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
    }
    return tensors;
  }

  static void write(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors) {
    std::vector<TensorToWrite> out;
    out.reserve(tensors.size());
    for (const StoredTensor& tensor : tensors) {
      out.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data});
    }
    write_safetensors(file, out);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace cupel::test
