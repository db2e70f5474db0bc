// `cupel repack`: a checkpoint with its routed experts in another form (spec sections 2.6(2), 2.7).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/expert_forms.h"

namespace cupel {

struct RepackOptions {
  ExpertDtype experts = ExpertDtype::kFp8;
  bool verify = false;  // read the result back and compare every value before it gets its name
  int threads = 0;      // 0: one per hardware thread
  // Input bytes done and in all.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

// What became of one expert's weight.
struct RepackedWeight {
  std::string name;
  std::int64_t blocks = 0;  // 128 x 128; 1 x 32 to FP4
  std::int64_t elements = 0;
  std::int64_t changed_elements = 0;
  double max_abs_error = 0;
  std::vector<LossyBlock> lossy;
  std::vector<std::int64_t> ambiguous_groups;
};

struct RepackReport {
  std::string in;
  std::string out;
  ExpertDtype from = ExpertDtype::kFp4;
  ExpertDtype to = ExpertDtype::kFp8;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::int64_t tensors_out = 0;
  int shards = 0;
  int resumed_shards = 0;  // finished by an earlier run
  bool verified = false;
  std::vector<RepackedWeight> weights;  // every routed expert's, drafter included, by name
  double seconds = 0;                   // of reading, converting and writing shards
  std::uint64_t bytes_converted = 0;    // input bytes in that time
};

// Writes folder `out`, which must not exist, shard by shard: routed experts converted (those of a
// drafter too), every other tensor and file copied byte for byte, index and expert_dtype of
// config.json adjusted (fp8: taken out, as the published repack does). All is built in `out` +
// ".partial" and renamed at the end; a later call with the same input and form goes on where one
// stopped.
//
// Throws InputError: the input is no complete checkpoint or has this form already, `out` exists,
// lies inside the input or cannot be created, or another repack's ".partial" is in the way.
// InfrastructureError: the disk is full or fails, or verification finds another value.
RepackReport repack(const std::filesystem::path& in, const std::filesystem::path& out,
                    const RepackOptions& options);

std::string repack_text(const RepackReport& report, int top);
std::string repack_json(const RepackReport& report);

}  // namespace cupel
