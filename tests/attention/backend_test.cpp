#include "cupel/attention/backend.h"

#include <vector>

#include "attention/sequence.h"
#include "support/expect_error.h"
#include <gtest/gtest.h>

#include "cupel/attention/row_gather.h"

namespace cupel {
namespace {

using test::expect_input_error;

TEST(Backend, NamesAreParsedOrRefused) {
  EXPECT_EQ(parse_backend("reference"), BackendKind::kReference);
  EXPECT_EQ(parse_backend("packed"), BackendKind::kPacked);
  EXPECT_EQ(parse_backend("triton"), BackendKind::kPacked);
  EXPECT_EQ(parse_backend("unified"), BackendKind::kUnified);
  EXPECT_EQ(parse_backend("unified_kv_triton"), BackendKind::kUnified);
  expect_input_error([] { parse_backend("flash"); }, {"--attention-backend", "packed", "flash"});
  for (const auto kind : {BackendKind::kReference, BackendKind::kPacked, BackendKind::kUnified}) {
    EXPECT_EQ(parse_backend(backend_name(kind)), kind);
  }
  for (const auto dtype : {KvDtype::kAuto, KvDtype::kBf16, KvDtype::kFp8E4m3}) {
    EXPECT_EQ(parse_kv_dtype(kv_dtype_name(dtype)), dtype);
  }
  expect_input_error([] { parse_kv_dtype("fp8"); }, {"--kv-cache-dtype", "fp8_e4m3", "fp8"});
}

TEST(Backend, RefusesWhatDoesNotGoTogether) {
  CpuExecutor executor(1);
  const ModelConfig config = test::small_config();
  const auto make = [&](BackendKind kind, const ModelConfig& c) {
    return make_backend(kind, KvDtype::kBf16, Numerics::kReference, c, executor);
  };
  expect_input_error([&] { make(BackendKind::kPacked, config); },
                     {"--kv-cache-dtype", "packed", "bf16"});
  expect_input_error([&] { make(BackendKind::kReference, config); },
                     {"--kv-cache-dtype", "reference", "bf16"});
  EXPECT_NE(make(BackendKind::kUnified, config), nullptr);
  ModelConfig odd = config;
  odd.heads = 6;
  expect_input_error([&] { make(BackendKind::kUnified, odd); },
                     {"num_attention_heads", "multiple of 4", "6"});
}

TEST(Backend, BytesInUseReturnToTheStart) {
  CpuExecutor executor(1);
  std::vector<test::Sequence> sequences;
  for (const int ratio : test::kRatios) sequences.emplace_back(151, 140, ratio);
  for (const test::Setting& setting : test::settings()) {
    for (const Numerics numerics : {Numerics::kReference, Numerics::kFloat32}) {
      test::Setting with = setting;
      with.numerics = numerics;
      const auto backend = with.make(executor);
      const std::size_t start = backend->bytes_in_use();
      for (int cycle = 0; cycle < 3; ++cycle) {
        std::vector<int> slots;
        for (int i = 0; i < 2; ++i) slots.push_back(backend->open());
        EXPECT_EQ(slots, (std::vector<int>{0, 1})) << with.name;
        const std::size_t opened = backend->bytes_in_use();
        EXPECT_GT(opened, start) << with.name;
        for (int layer = 0; layer < 3; ++layer) {
          run_chunks(*backend, layer, slots[1], sequences[static_cast<std::size_t>(layer)], {140});
        }
        EXPECT_GT(backend->bytes_in_use(), opened) << with.name;
        EXPECT_EQ(backend->bytes_in_use(),
                  backend->sequence_bytes(0) + backend->sequence_bytes(140))
            << with.name;
        EXPECT_EQ(backend->fork(slots[1], 140), 2) << with.name;
        for (const int slot : {1, 2, 0}) backend->close(slot);
        EXPECT_EQ(backend->bytes_in_use(), start) << with.name << " cycle " << cycle;
      }
    }
  }
}

// A step that ends within an entry does not complete it; the next one does.
TEST(Backend, SegmentsCompleteTheEntriesThatEndInThem) {
  const auto completed = [](std::int64_t start, std::size_t rows, int ratio) {
    const auto c = completed_entries({.start = start, .rows = rows}, ratio);
    return std::pair(c.first, c.count);
  };
  using Pair = std::pair<std::int64_t, std::size_t>;
  EXPECT_EQ(completed(0, 300, 0), Pair(0, 0));
  EXPECT_EQ(completed(0, 3, 4), Pair(0, 0));
  EXPECT_EQ(completed(3, 1, 4), Pair(0, 1));
  EXPECT_EQ(completed(3, 6, 4), Pair(0, 2));
  EXPECT_EQ(completed(4, 3, 4), Pair(1, 0));
  EXPECT_EQ(completed(127, 1, 128), Pair(0, 1));
  EXPECT_EQ(completed(128, 400, 128), Pair(1, 3));
  const AttentionSegment segments[] = {{.start = 0, .rows = 9},
                                       {.start = 3, .rows = 1},
                                       {.start = 5, .rows = 2},
                                       {.start = 2, .rows = 30}};
  EXPECT_EQ(entry_offsets({.segments = segments}, 4), (std::vector<std::size_t>{0, 2, 3, 3}));
}

}  // namespace
}  // namespace cupel
