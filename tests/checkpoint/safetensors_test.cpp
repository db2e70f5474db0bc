#include "cupel/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "support/expect_error.h"
#include "support/tiny_checkpoint.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::expect_input_error;
using test::StoredTensor;
using test::TinyCheckpoint;

std::vector<StoredTensor> random_tensors(std::mt19937_64& random) {
  std::vector<StoredTensor> tensors(random() % 20);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    StoredTensor& tensor = tensors[i];
    tensor.name = fmt::format("t{}{}", i, i % 3 == 0 ? ".\"\\\n\u00e9" : ".weight");
    tensor.dtype = static_cast<Dtype>(random() % kDtypeCount);
    tensor.shape.resize(random() % 4);
    std::size_t bytes = dtype_size(tensor.dtype);
    for (auto& size : tensor.shape) {
      size = static_cast<std::int64_t>(random() % 6);
      bytes *= static_cast<std::size_t>(size);
    }
    tensor.data.resize(bytes);
    for (auto& byte : tensor.data) byte = static_cast<std::byte>(random());
  }
  std::ranges::shuffle(tensors, random);
  return tensors;
}

TEST(Safetensors, WhatIsWrittenReadsBackEqual) {
  std::mt19937_64 random(1);
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  for (int round = 0; round < 200; ++round) {
    const auto written = random_tensors(random);
    TinyCheckpoint::write(path, written);
    const SafetensorsFile file(path);
    EXPECT_EQ(file.header_bytes().size() % 8, 0U);
    ASSERT_EQ(file.tensors().size(), written.size());
    for (std::size_t i = 0; i < written.size(); ++i) {
      const Tensor& tensor = file.tensors()[i];
      EXPECT_EQ(tensor.name, written[i].name);
      EXPECT_EQ(tensor.dtype, written[i].dtype);
      EXPECT_EQ(tensor.shape, written[i].shape);
      EXPECT_EQ(tensor.file, path.string());
      EXPECT_EQ(tensor.bytes(), written[i].data.size());
      EXPECT_TRUE(std::ranges::equal(tensor.data, written[i].data));
    }
  }
}

// Shards of the bundled checkpoints hold tensors at offsets that are no multiple of the element
// size.
TEST(Safetensors, ElementsAtOddOffsets) {
  const SafetensorsFile file(std::filesystem::path(CUPEL_SOURCE_DIR) /
                             "models/tiny-v4-preview/model-00001-of-00003.safetensors");
  const auto found = std::ranges::find(file.tensors(), "layers.0.ffn.gate.tid2eid", &Tensor::name);
  ASSERT_NE(found, file.tensors().end());
  EXPECT_NE(found->begin % dtype_size(found->dtype), 0U);
  std::int64_t first = -1;
  std::memcpy(&first, found->data.data(), sizeof(first));
  EXPECT_GE(first, 0);
  EXPECT_LT(first, 16);
}

TEST(Safetensors, HeaderAlone) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  TinyCheckpoint::write(path, {{"a", Dtype::kU8, {3}, std::vector<std::byte>(3)}});
  std::filesystem::resize_file(path, SafetensorsFile(path).header_bytes().size());
  expect_input_error([&] { SafetensorsFile(path, SafetensorsFile::Data::kRequired); },
                     {path.string(), R"(tensor "a": data_offsets)", "at most 0 bytes", "end at 3"});
  const SafetensorsFile file(path, SafetensorsFile::Data::kHeaderOnly);
  ASSERT_EQ(file.tensors().size(), 1U);
  EXPECT_TRUE(file.tensors()[0].data.empty());
  EXPECT_EQ(file.tensors()[0].bytes(), 3U);
}

TEST(Safetensors, WriterRefusesAndLeavesNothing) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  const std::vector<std::byte> bytes(4);
  expect_input_error(
      [&] {
        TinyCheckpoint::write(path, {{"a", Dtype::kF32, {2}, bytes}});
      },
      {path.string(), R"(tensor "a")", "F32 [2]", "4 bytes"});
  expect_input_error(
      [&] {
        TinyCheckpoint::write(path, {{"a", Dtype::kF32, {-1}, bytes}});
      },
      {R"(tensor "a")"});
  const StoredTensor good{"a", Dtype::kF32, {1}, bytes};
  expect_input_error([&] { TinyCheckpoint::write(path, {good, good}); }, {R"("a")", "two"});
  expect_input_error(
      [&] {
        TinyCheckpoint::write(path, {{"\xff", Dtype::kF32, {1}, bytes}});
      },
      {"UTF-8"});
  expect_input_error(
      [&] {
        TinyCheckpoint::write(path, {{"__metadata__", Dtype::kF32, {1}, bytes}});
      },
      {"__metadata__", "reserved"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, DtypeNames) {
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(Dtype::kF8E8M0), "F8_E8M0");
  EXPECT_EQ(dtype_name(Dtype::kBool), "BOOL");
  EXPECT_EQ(dtype_size(Dtype::kI64), 8U);
  EXPECT_EQ(dtype_size(Dtype::kBF16), 2U);
  EXPECT_EQ(dtype_from_name("F4"), std::nullopt);
}

TEST(Safetensors, CheckedBytes) {
  const auto bytes = [](std::vector<std::int64_t> shape, Dtype dtype) {
    return checked_bytes(shape, dtype);
  };
  constexpr std::int64_t kHalf = std::int64_t{1} << 31;
  EXPECT_EQ(bytes({}, Dtype::kF32), 4U);
  EXPECT_EQ(bytes({2, 3}, Dtype::kI64), 48U);
  EXPECT_EQ(bytes({2, 0, 3}, Dtype::kI64), 0U);
  EXPECT_EQ(bytes({-1}, Dtype::kI8), std::nullopt);
  EXPECT_EQ(bytes({0, -1}, Dtype::kI8), std::nullopt);
  EXPECT_EQ(bytes({kHalf, kHalf}, Dtype::kI8), std::uint64_t{1} << 62);
  EXPECT_EQ(bytes({kHalf, kHalf, 2}, Dtype::kI8), std::nullopt);
  EXPECT_EQ(bytes({kHalf, kHalf}, Dtype::kBF16), std::nullopt);
}

}  // namespace
}  // namespace cupel
