// The yardstick of throughput figures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace cupel {

struct PlainRead {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

// Reads every *.safetensors file of these folders once, in order, 4 MiB at a time. The system is
// asked to forget the files before and after, so that what is timed next also starts from the disk
// (a request: files in use elsewhere stay in memory).
PlainRead plain_read(const std::vector<std::filesystem::path>& folders);

}  // namespace cupel
