// Writing shards in the background: whoever makes the bytes goes on while they travel to the
// storage and are synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// One shard after the other, in the order of the calls. A call waits while too much is on its way.
// An error of the background, thrown as it was by the next call: InputError, InfrastructureError.
class ShardStream {
 public:
  // At most about `most_bytes` are held that were handed over and are not written.
  explicit ShardStream(std::size_t most_bytes);
  ShardStream(const ShardStream&) = delete;
  ShardStream& operator=(const ShardStream&) = delete;
  // Completes what was committed; a shard without its commit leaves nothing.
  ~ShardStream();

  void begin(const std::filesystem::path& shard, std::vector<TensorSpec> tensors);
  // Storage of bytes that were written, or an empty vector.
  std::vector<std::uint8_t> spare();
  // The next bytes of the shard.
  void append(std::vector<std::uint8_t> bytes);
  // The same from a map that outlives the stream: read ahead, and released when written.
  void copy(std::span<const std::byte> mapped);
  // The shard gets its name, complete and synced; then, in the same way, a text file.
  void commit(const std::filesystem::path& note, std::string text);
  // Waits until all is written.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cupel
