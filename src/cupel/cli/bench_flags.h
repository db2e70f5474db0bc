// Flags that both benchmarks of servers have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cupel/base/file.h"
#include "cupel/cli/endpoint_flags.h"
#include "cupel/load/bench_target.h"

namespace cupel {

struct BenchFlags {
  std::string endpoint;
  ConnectionFlags connection;
  int vocabulary = 0;
  std::uint64_t seed = 0;
  int repeats = 1;
  std::string run_name = "default";
  std::string json;
  bool markdown = false;

  void add(CLI::App& app);

  // The server. Throws as find_bench_target() does, and InputError.
  BenchTarget target() const;

  // --vocabulary, or what the server says. Throws InputError where neither is there.
  int vocabulary_of(const BenchTarget& target) const;
};

// A file that grows by a line for each result, after what is there already; none without a path.
std::unique_ptr<LineWriter> open_lines(const std::string& path);

}  // namespace cupel
