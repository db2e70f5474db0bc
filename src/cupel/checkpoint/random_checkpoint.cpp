// Random weights as a checkpoint folder.
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/random_weights.h"

namespace cupel {
namespace {

namespace fs = std::filesystem;

// Made and written in pieces of this size, one a thread.
constexpr std::size_t kPiece = std::size_t{4} << 20;

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_data(const RandomWeights& weights, const Tensor& tensor, ThreadPool& pool,
                SafetensorsWriter& writer) {
  const std::size_t bytes = tensor.bytes();
  const auto batch = static_cast<std::size_t>(pool.threads()) * kPiece;
  for (std::size_t begin = 0; begin < bytes; begin += batch) {
    const std::size_t end = std::min(bytes, begin + batch);
    std::vector<std::optional<LentBytes>> pieces((end - begin + kPiece - 1) / kPiece);
    pool.parallel_for(pieces.size(), [&](std::size_t i, int) {
      const std::size_t first = begin + i * kPiece;
      pieces[i].emplace(weights.read(tensor, first, std::min(kPiece, end - first)));
    });
    for (const auto& piece : pieces) {
      if (piece) writer.append(piece->bytes());
    }
  }
}

}  // namespace

std::uint64_t write_random_checkpoint(const RandomWeights& weights, const fs::path& folder,
                                      const WriteRandomOptions& options) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    throw InputError(folder.string(), "a path that does not exist: nothing is overwritten",
                     "an existing one");
  }
  const std::string tokenizer =
      options.tokenizer.empty() ? "" : read_file(options.tokenizer);  // before anything is made
  if (!fs::create_directory(folder, error)) {
    throw InputError(folder.string(), "a folder that can be created", error.message());
  }
  ThreadPool pool(options.threads);
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::uint64_t total = 0;
  const auto& shards = weights.shards();
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : shards[s]) {
      specs.push_back({tensor.name, tensor.dtype, tensor.shape});
      map[tensor.name] = file;
      total += tensor.bytes();
    }
    if (options.headers_only) {
      write_safetensors_header(folder / file, specs);
      continue;
    }
    SafetensorsWriter writer(folder / file, specs);
    for (const Tensor& tensor : shards[s]) write_data(weights, tensor, pool, writer);
    writer.commit();
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_text(folder / "model.safetensors.index.json", index.dump(2) + "\n");
  if (!options.tokenizer.empty()) write_text(folder / "tokenizer.json", tokenizer);
  // Last: a folder that was not finished is no checkpoint.
  write_text(folder / "config.json", weights.config_json());
  return total;
}

}  // namespace cupel
