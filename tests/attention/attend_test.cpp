// Each backend against double arithmetic on its own stored bytes, and against itself in other cuts
// and company.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "attention/double_attention.h"
#include "attention/sequence.h"
#include "support/isa_scope.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::kHeads;
using test::kRow;
using test::kTopk;
using test::kWindow;
using test::Output;
using test::Part;
using test::run_chunks;
using test::run_step;
using test::same_bits;
using test::Sequence;
using test::Setting;

// Three entries of ratio 128, a hundred of ratio 4, the ring three times around.
constexpr std::size_t kLength = 401;

class Attend : public testing::TestWithParam<std::tuple<Setting, int>> {
 protected:
  const Setting& setting() const { return std::get<0>(GetParam()); }
  int layer() const { return std::get<1>(GetParam()); }
  int ratio() const { return test::kRatios[layer()]; }
};

// The entries that a row attends to: as selected for ratio 4, else all visible ones.
std::vector<std::int64_t> entries_of(const Output& output, int ratio, std::size_t position) {
  std::vector<std::int64_t> list;
  if (ratio == 0) return list;
  const std::size_t visible = (position + 1) / static_cast<std::size_t>(ratio);
  for (std::size_t e = 0; ratio == 128 && e < visible; ++e) {
    list.push_back(static_cast<std::int64_t>(e));
  }
  for (std::size_t i = 0; ratio == 4 && i < std::min(visible, kTopk); ++i) {
    list.push_back(output.selection[position * kTopk + i]);
  }
  return list;
}

// Feeds one token at a time beyond `prefill` and checks each row in turn, so that the ring holds
// the row's whole window when it is read.
TEST_P(Attend, IsWithinTheBoundOfDoubleOnItsOwnStoredBytes) {
  CpuExecutor executor(1);
  const auto backend = setting().make(executor);
  const Sequence sequence(101, kLength, ratio());
  const std::set<std::size_t> checked = {0,   1,   2,   3,   4,   62,  63,  64,
                                         66,  67,  71,  126, 127, 128, 129, 191,
                                         255, 256, 257, 300, 383, 384, 385, 400};
  const int slot = backend->open();
  Output output;
  std::size_t start = 0;
  for (const std::size_t position : checked) {
    // Up to and including the checked row in one chunk of the current step's rows.
    const Part part{&sequence, slot, start, position + 1 - start, &output};
    run_step(*backend, layer(), {&part, 1});
    start = position + 1;

    std::vector<std::vector<float>> rows;
    const auto p = static_cast<std::int64_t>(position);
    for (std::int64_t at = std::max<std::int64_t>(0, p - kWindow + 1); at <= p; ++at) {
      backend->read_window(slot, layer(), at, rows.emplace_back(kRow).data());
    }
    for (const std::int64_t entry : entries_of(output, ratio(), position)) {
      backend->read_entry(slot, layer(), entry, rows.emplace_back(kRow).data());
    }
    std::vector<const float*> keys;
    for (const auto& row : rows) keys.push_back(row.data());
    for (std::size_t h = 0; h < kHeads; ++h) {
      const std::size_t at = (position * kHeads + h) * kRow;
      const auto exact =
          test::exact_attention(sequence.q.data() + at, keys, double{Sequence::sink()[h]});
      for (std::size_t d = 0; d < kRow; ++d) {
        const double bound = 0x1p-8 * exact.magnitude[d] + test::bf16_ulp(exact.value[d]);
        ASSERT_NEAR(output.out[at + d], exact.value[d], bound)
            << "position " << position << " head " << h << " element " << d;
      }
    }
  }
}

// The stored rows are the inputs in the format of the backend, in order: neither lost nor mixed up.
TEST_P(Attend, StoresEveryRowAndEntryInItsForm) {
  CpuExecutor executor(2);
  const auto backend = setting().make(executor);
  const Sequence sequence(102, kLength, ratio());
  const int slot = backend->open();
  run_chunks(*backend, layer(), slot, sequence, {300, 1, 50});
  const RowStore& store = backend->rows(layer());
  std::vector<std::byte> record(store.record_bytes());
  std::vector<float> expected(kRow), out(kRow);
  const auto in_its_form = [&](const float* row) {
    store.encode(row, record.data());
    store.decode(record.data(), expected.data());
  };
  for (std::size_t p = kLength - kWindow; p < kLength; ++p) {
    in_its_form(sequence.kv.data() + p * kRow);
    backend->read_window(slot, layer(), static_cast<std::int64_t>(p), out.data());
    ASSERT_TRUE(same_bits(out, expected)) << "position " << p;
  }
  for (std::size_t e = 0; e < sequence.entries.size() / kRow; ++e) {
    in_its_form(sequence.entries.data() + e * kRow);
    backend->read_entry(slot, layer(), static_cast<std::int64_t>(e), out.data());
    ASSERT_TRUE(same_bits(out, expected)) << "entry " << e;
  }
}

TEST_P(Attend, DoesNotDependOnTheChunkSize) {
  CpuExecutor executor(2);
  const Sequence sequence(103, kLength, ratio());
  const auto backend = setting().make(executor);
  const int whole = backend->open();
  const Output expected = run_chunks(*backend, layer(), whole, sequence, {kLength});
  for (const auto& sizes : std::vector<std::vector<std::size_t>>{
           {1}, {3}, {127}, {128}, {129}, {300, 1}, {5, 64, 2, 33, 128, 1}}) {
    const int slot = backend->open();
    const Output out = run_chunks(*backend, layer(), slot, sequence, sizes);
    EXPECT_TRUE(same_bits(out.out, expected.out)) << "chunks of " << sizes[0];
    EXPECT_EQ(out.selection, expected.selection) << "chunks of " << sizes[0];
    backend->close(slot);
  }
}

TEST_P(Attend, DoesNotDependOnCompanyThreadsOrInstructionSet) {
  const std::vector<Sequence> sequences = {
      {104, 300, ratio()}, {105, 131, ratio()}, {106, 1, ratio()}};
  std::vector<Output> expected;
  {
    CpuExecutor executor(1);
    for (const Sequence& s : sequences) {
      const auto backend = setting().make(executor);
      expected.push_back(run_chunks(*backend, layer(), backend->open(), s, {s.length}));
    }
  }
  for (const Isa isa : test::available_isas()) {
    const test::IsaScope scope(isa);
    CpuExecutor executor(3);
    const auto backend = setting().make(executor);
    int slots[3];
    for (int& slot : slots) slot = backend->open();
    std::vector<Output> outputs(3);
    // Two steps; the first two sequences stand in both, the third in the second.
    const Part first[] = {{&sequences[1], slots[1], 0, 130, &outputs[1]},
                          {&sequences[0], slots[0], 0, 77, &outputs[0]}};
    const Part second[] = {{&sequences[0], slots[0], 77, 223, &outputs[0]},
                           {&sequences[2], slots[2], 0, 1, &outputs[2]},
                           {&sequences[1], slots[1], 130, 1, &outputs[1]}};
    run_step(*backend, layer(), first);
    run_step(*backend, layer(), second);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(same_bits(outputs[i].out, expected[i].out)) << active_isa() << " sequence " << i;
      EXPECT_EQ(outputs[i].selection, expected[i].selection) << active_isa() << " sequence " << i;
    }
  }
}

TEST_P(Attend, ACopyContinuesAsTheOriginalAndApart) {
  CpuExecutor executor(1);
  const Sequence sequence(107, 300, ratio()), other(108, 300, ratio());
  const auto backend = setting().make(executor);
  const int original = backend->open(), dirty = backend->open();
  Output expected, dirt, continued;
  // The slot forked into has held something longer before.
  const Part before{&other, dirty, 0, 300, &dirt};
  run_step(*backend, layer(), {&before, 1});
  backend->close(dirty);
  const Part prefix{&sequence, original, 0, 200, &expected};
  run_step(*backend, layer(), {&prefix, 1});
  const int used = backend->fork(original, 200), copy = backend->fork(original, 200);
  ASSERT_EQ(used, dirty);
  EXPECT_TRUE(backend->owners_agree());
  // Another continuation in one copy leaves the original and the other copy alone.
  Output apart;
  const Part otherwise{&other, copy, 200, 100, &apart};
  run_step(*backend, layer(), {&otherwise, 1});
  const Part rest{&sequence, original, 200, 100, &expected};
  run_step(*backend, layer(), {&rest, 1});
  const Part same_rest{&sequence, used, 200, 100, &continued};
  run_step(*backend, layer(), {&same_rest, 1});
  EXPECT_TRUE(same_bits(continued.out, std::span(expected.out).subspan(200 * kHeads * kRow)));
  EXPECT_FALSE(same_bits(apart.out, continued.out));
  EXPECT_TRUE(backend->owners_agree());
  for (const int slot : {original, copy, used}) backend->close(slot);
  EXPECT_TRUE(backend->owners_agree());
  EXPECT_EQ(backend->bytes_in_use(), 0U);
}

TEST(AttendSelection, IsAscendingVisibleAndOfTheRightSize) {
  CpuExecutor executor(1);
  for (const Setting& setting : test::settings()) {
    const auto backend = setting.make(executor);
    const Sequence sequence(109, 200, 4);
    const Output out = run_chunks(*backend, 1, backend->open(), sequence, {200});
    bool left_out = false;
    for (std::size_t p = 0; p < 200; ++p) {
      const std::int32_t* row = out.selection.data() + p * kTopk;
      const std::size_t visible = (p + 1) / 4, count = std::min(visible, kTopk);
      for (std::size_t i = 0; i < kTopk; ++i) {
        if (i >= count) {
          ASSERT_EQ(row[i], -1) << setting.name << " " << p;
          continue;
        }
        ASSERT_GT(row[i], i == 0 ? -1 : row[i - 1]) << setting.name << " " << p;
        ASSERT_LT(row[i], static_cast<std::int32_t>(visible)) << setting.name << " " << p;
        left_out |= row[i] != static_cast<std::int32_t>(i);
      }
    }
    EXPECT_TRUE(left_out) << setting.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Attend,
                         testing::Combine(testing::ValuesIn(test::settings()),
                                          testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_ratio" +
                                  std::to_string(test::kRatios[std::get<1>(info.param)]);
                         });

}  // namespace
}  // namespace cupel
