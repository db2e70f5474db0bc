// A checkpoint of any size made from the catalogue: config.json, index, one shard for the trunk,
// each layer and each drafter stage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/checkpoint/catalogue.h"

namespace cupel::test {

enum class Content {
  kHeaders,  // shards end after their headers
  kHoles,    // of full size, all zero, without taking disk space
  kRandom    // legal values everywhere
};

// Fills a tensor's bytes piece by piece with values that a load accepts. Fast, not statistical.
class RandomBytes {
 public:
  explicit RandomBytes(std::uint64_t seed) : state_(seed * 2 + 1) {}

  void fill(Dtype dtype, bool scale, int experts, std::span<std::uint64_t> words) {
    for (std::uint64_t& word : words) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t bits = state_ ^ state_ >> 29;
      if (scale) {
        word = (bits & 0x0303030303030303u) + 0x7777777777777777u;  // 2^-8 .. 2^-5
      } else if (dtype == Dtype::kF8E4M3) {
        word = bits & 0xb7b7b7b7b7b7b7b7u;  // below 2, no NaN
      } else if (dtype == Dtype::kI64) {
        word = bits % static_cast<std::uint64_t>(experts);
      } else if (dtype == Dtype::kBF16) {
        word = (bits & 0x80ff80ff80ff80ffu) | 0x3c003c003c003c00u;  // about 2^-7 .. 2^-5
      } else if (dtype == Dtype::kF32) {
        word = (bits & 0x80ffffff80ffffffu) | 0x3c0000003c000000u;
      } else {
        word = bits;
      }
    }
  }

 private:
  std::uint64_t state_;
};

// Writes it into an existing, empty folder. `stages`: drafter stages.
class CheckpointMaker {
 public:
  CheckpointMaker(std::filesystem::path folder, const std::string& config_json, int stages,
                  Content content, std::uint64_t seed = 1)
      : folder_(std::move(folder)),
        content_(content),
        random_(seed),
        config_(parse_config(config_json, "config.json")) {
    std::ofstream(folder_ / "config.json") << config_json;
    write_shard([&](const auto& visit) { visit_trunk_tensors(config_, visit); });
    for (int layer = 0; layer < config_.layers; ++layer) {
      write_shard([&](const auto& visit) { visit_layer_tensors(config_, layer, visit); });
    }
    for (int stage = 0; stage < stages; ++stage) {
      write_shard([&](const auto& visit) { visit_drafter_tensors(config_, stage, stages, visit); });
    }
    std::string index = fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{)", total_);
    for (bool first = true; const auto& [name, file] : weight_map_) {
      index += fmt::format(R"({}"{}":"{}")", first ? "" : ",", name, file);
      first = false;
    }
    std::ofstream(folder_ / "model.safetensors.index.json") << index << "}}";
  }

  std::uint64_t bytes() const { return total_; }

 private:
  struct Part {
    Dtype dtype;
    bool scale;
    std::uint64_t bytes;
  };

  template <typename Visit>
  void write_shard(const Visit& visit) {
    const std::string file = fmt::format("model-{:05}.safetensors", ++shards_);
    std::string header = "{";
    std::uint64_t offset = 0;
    std::vector<Part> parts;
    const auto add = [&](const std::string& name, Dtype dtype, bool scale,
                         const std::vector<std::int64_t>& shape) {
      const std::uint64_t bytes = checked_bytes(shape, dtype).value();
      header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                            header.size() == 1 ? "" : ",", name, dtype_name(dtype),
                            shape_text(shape), offset, offset + bytes);
      offset += bytes;
      weight_map_[name] = file;
      parts.push_back({dtype, scale, bytes});
    };
    visit(ExpectedTensorVisitor([&](const ExpectedTensor& expected) {
      const Storage storage = legal_storages(expected).front();
      add(expected.name, storage.dtype, false, storage.shape);
      if (!storage.scale_shape.empty()) {
        add(scale_name(expected.name), Dtype::kF8E8M0, true, storage.scale_shape);
      }
    }));
    header += "}";
    total_ += offset;
    const std::uint64_t size = header.size();
    std::ofstream out(folder_ / file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), sizeof(size));
    out << header;
    if (content_ == Content::kRandom) {
      for (const Part& part : parts) write_random(out, part);
    }
    out.close();
    if (content_ == Content::kHoles) {
      std::filesystem::resize_file(folder_ / file, sizeof(size) + size + offset);
    }
  }

  void write_random(std::ofstream& out, const Part& part) {
    std::vector<std::uint64_t> words(1u << 17);
    for (std::uint64_t at = 0; at < part.bytes; at += words.size() * 8) {
      random_.fill(part.dtype, part.scale, config_.routed_experts, words);
      out.write(reinterpret_cast<const char*>(words.data()),
                static_cast<std::streamsize>(std::min(words.size() * 8, part.bytes - at)));
    }
  }

  std::filesystem::path folder_;
  Content content_;
  RandomBytes random_;
  ModelConfig config_;
  int shards_ = 0;
  std::uint64_t total_ = 0;
  std::map<std::string, std::string> weight_map_;
};

// A published config.json cut down to a few layers and experts of the true shapes.
inline std::string cut_config(const std::filesystem::path& published, int layers, int experts,
                              int vocab) {
  nlohmann::json config = nlohmann::json::parse(read_file(published));
  std::vector<int> ratios = config.at("compress_ratios");
  ratios.resize(static_cast<std::size_t>(layers));
  config["compress_ratios"] = ratios;
  config["num_hidden_layers"] = layers;
  config["num_hash_layers"] = std::min(1, layers);
  config["num_nextn_predict_layers"] = 0;
  config["n_routed_experts"] = experts;
  config["vocab_size"] = vocab;
  return config.dump(2);
}

}  // namespace cupel::test
