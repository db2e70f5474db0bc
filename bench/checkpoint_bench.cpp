// Preflight and repack against a plain read of the same files.
//
//   checkpoint_bench FOLDER [EXPERTS]
//
// Makes, in an existing folder with room for it, two equal checkpoints and one of other values: one
// layer of V4-Flash's true shapes with EXPERTS routed experts (13 MB each; default 128), random
// values. Reads them plainly, compares the equal two (hashing alone), compares two that differ
// (hashing, decoding, every measure), repacks one to FP8. Prints each rate as a ratio to the plain
// read that came just before it, and the peak of resident memory, pages of maps included. A storage
// that writes more slowly than 0.3 of its reading rate times 2 bounds the repack, whatever the
// program does: the rate of writing as many bytes, synced, is printed beside it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/made_checkpoint.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/plain_read.h"
#include "cupel/checkpoint/preflight.h"
#include "cupel/checkpoint/repack.h"

namespace cupel {
namespace {

namespace fs = std::filesystem;

struct Removed {
  fs::path path;
  ~Removed() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::uint64_t make(const fs::path& folder, int experts, std::uint64_t seed) {
  fs::create_directory(folder);
  const std::string config =
      test::cut_config(CUPEL_SOURCE_DIR "/data/v4-flash/config.preview.json", 1, experts, 4096);
  return test::CheckpointMaker(folder, config, 0, test::Content::kRandom, seed).bytes();
}

// Asks the system to write out and forget the files: reading starts from the storage.
void forget(const fs::path& folder) {
  ::sync();
  plain_read({folder});
}

void print(const char* what, std::uint64_t bytes, double seconds, const PlainRead& plain) {
  const double rate = static_cast<double>(bytes) / seconds;
  const double read = static_cast<double>(plain.bytes) / plain.seconds;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:<34} {:5.2f} GB/s, plain read {:5.2f} GB/s, ratio {:4.2f}, peak memory {} MiB\n",
             what, rate * 1e-9, read * 1e-9, rate / read, usage.ru_maxrss >> 10);
  std::fflush(stdout);
}

double write_synced(const fs::path& path, std::uint64_t bytes) {
  const std::string piece(8u << 20, 'x');
  const auto start = std::chrono::steady_clock::now();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
    if (::write(file, piece.data(), piece.size()) < 0) throw InfrastructureError(path.string(), "");
  }
  ::fsync(file);
  ::close(file);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(const fs::path& folder, int experts) {
  const Removed a{folder / "bench-a"}, b{folder / "bench-b"}, c{folder / "bench-c"};
  const Removed out{folder / "bench-out"}, file{folder / "bench-write"};
  const std::uint64_t bytes = make(a.path, experts, 1);
  make(b.path, experts, 1);
  make(c.path, experts, 2);
  fmt::print("three checkpoints of {:.2f} GB\n", static_cast<double>(bytes) * 1e-9);
  for (const fs::path* path : {&a.path, &b.path, &c.path}) forget(*path);

  PlainRead plain = plain_read({a.path, b.path});
  PreflightReport report = run_preflight(a.path, b.path, {});
  print("preflight, equal: hashes", report.bytes_read, report.seconds, plain);
  plain = plain_read({a.path, c.path});
  report = run_preflight(a.path, c.path, {});
  print("preflight, every weight differs", report.bytes_read, report.seconds, plain);

  plain = plain_read({a.path});
  const RepackReport repacked =
      repack(a.path, out.path, {.experts = ExpertDtype::kFp8, .progress = {}});
  print("repack fp4 to fp8, input rate", repacked.bytes_converted, repacked.seconds, plain);
  const double seconds = write_synced(file.path, repacked.bytes_out);
  fmt::print("{:<34} {:5.2f} GB/s; the repack wrote {:5.2f} GB/s\n",
             "writing as many bytes, synced",
             static_cast<double>(repacked.bytes_out) / seconds * 1e-9,
             static_cast<double>(repacked.bytes_out) / repacked.seconds * 1e-9);
}

}  // namespace
}  // namespace cupel

int main(int argc, char** argv) {
  const int experts = argc == 3 ? std::atoi(argv[2]) : 128;
  if (argc < 2 || argc > 3 || experts < 6) {
    fmt::print(stderr, "usage: checkpoint_bench FOLDER [EXPERTS, at least 6]\n");
    return 4;
  }
  try {
    cupel::run(argv[1], experts);
  } catch (const std::exception& error) {
    fmt::print(stderr, "checkpoint_bench: {}\n", error.what());
    return 3;
  }
  return 0;
}
