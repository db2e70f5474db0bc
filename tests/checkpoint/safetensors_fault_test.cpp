#include <cstring>
#include <fstream>
#include <random>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include <gtest/gtest.h>

#include "cupel/base/file.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {
namespace {

using test::expect_input_error;

constexpr std::uint64_t kDataBegin = 1000;
constexpr std::uint64_t kFileSize = kDataBegin + 64;

std::vector<Tensor> parse(std::string_view json) {
  return parse_safetensors_header(json, kDataBegin, kFileSize, "x.safetensors",
                                  SafetensorsFile::Data::kRequired);
}

struct Fault {
  std::string name;
  std::string json;
  std::vector<std::string> parts;
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class HeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(HeaderFault, NamesFileAndTensor) {
  std::vector<std::string> parts = GetParam().parts;
  parts.insert(parts.end(), {"x.safetensors: ", ": expected ", ", found "});
  expect_input_error([] { parse(GetParam().json); }, parts);
}

// `{"a": {…}}` with the three fields given.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

std::string pair_of(const std::string& first, const std::string& second, const std::string& names) {
  return R"({")" + names.substr(0, 1) + R"(":{"dtype":"U8","shape":[8],"data_offsets":)" + first +
         R"(},")" + names.substr(1, 1) + R"(":{"dtype":"U8","shape":[8],"data_offsets":)" + second +
         "}}";
}

const Fault kFaults[] = {
    {"Empty", "", {"JSON"}},
    {"Truncated", R"({"a":{"dtype":"U8")", {"byte offset", "valid JSON"}},
    {"TrailingText", one(R"("U8")", "[8]", "[0,8]") + "x", {"byte offset", "valid JSON"}},
    {"BadUtf8", "{\"\xff\":1}", {"byte offset", "valid JSON"}},
    {"Deep", std::string(5000, '[') + std::string(5000, ']'), {"JSON"}},
    {"Array", "[]", {"header", "a JSON object", "found []"}},
    {"EntryNoObject", R"({"a":[1]})", {R"(tensor "a")", "an object", "found [1]"}},
    {"NoDtype", R"({"a":{"shape":[8],"data_offsets":[0,8]}})", {R"("a": dtype)", "no such field"}},
    {"NoShape", R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", {R"("a": shape)", "no such field"}},
    {"NoOffsets", R"({"a":{"dtype":"U8","shape":[8]}})", {R"("a": data_offsets)", "no such field"}},
    {"TwoDtypes",
     R"({"a":{"dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8]}})",
     {R"("a": dtype)", "two"}},
    {"UnknownDtype", one(R"("F4")", "[8]", "[0,8]"), {R"("a": dtype)", "F8_E4M3", R"(found "F4")"}},
    {"DtypeNoString", one("8", "[8]", "[0,8]"), {R"("a": dtype)", "found 8"}},
    {"NegativeShape", one(R"("U8")", "[-8]", "[0,8]"), {R"("a": shape)", "from 0", "found [-8]"}},
    {"NegativeShapes", one(R"("U8")", "[-2,-4]", "[0,8]"), {R"("a": shape)", "found [-2,-4]"}},
    {"FractionalShape", one(R"("U8")", "[8.0]", "[0,8]"), {R"("a": shape)", "integers"}},
    {"ShapeNoArray", one(R"("U8")", "8", "[0,8]"), {R"("a": shape)", "an array", "found 8"}},
    {"ShapeBeyondInt64",
     one(R"("U8")", "[9223372036854775808]", "[0,8]"),
     {R"("a": shape)", "found [9223372036854775808]"}},
    {"ShapeBeyond64Bits",
     one(R"("U8")", "[36893488147419103232]", "[0,8]"),
     {R"(tensor "a")", "64 bits", R"(found "36893488147419103232")"}},
    {"ShapeOverflows",
     one(R"("U8")", "[4294967296,4294967296]", "[0,8]"),
     {R"("a": shape)", "2^63", "found U8 [4294967296, 4294967296]"}},
    {"ShapeTimesDtypeOverflows",
     one(R"("F32")", "[4611686018427387904]", "[0,0]"),
     {R"("a": shape)", "2^63", "F32"}},
    {"TooFewBytes",
     one(R"("F32")", "[2,2]", "[0,8]"),
     {R"("a": data_offsets)", "16 bytes for F32 [2, 2]", "found 8 bytes"}},
    {"TooManyBytes",
     one(R"("U8")", "[2]", "[0,8]"),
     {R"("a": data_offsets)", "2 bytes", "8 bytes"}},
    {"OffsetsBackwards", one(R"("U8")", "[8]", "[8,0]"), {R"("a": data_offsets)", "found [8,0]"}},
    {"OffsetNegative", one(R"("U8")", "[8]", "[-8,0]"), {R"("a": data_offsets)", "found [-8,0]"}},
    {"OffsetHuge",
     one(R"("U8")", "[8]", "[18446744073709551607,18446744073709551615]"),
     {R"("a": data_offsets)", "2^63"}},
    {"OneOffset", one(R"("U8")", "[8]", "[8]"), {R"("a": data_offsets)", "two integers"}},
    {"PastTheEnd",
     one(R"("U8")", "[8]", "[57,65]"),
     {R"("a": data_offsets)", "at most 64 bytes", "file of 1064 bytes", "an end at 65"}},
    {"FarPastTheEnd",
     one(R"("U8")", "[8]", "[9223372036854775799,9223372036854775807]"),
     {R"("a": data_offsets)", "at most 64 bytes"}},
    {"Overlap",
     pair_of("[0,8]", "[7,15]", "ab"),
     {R"(tensor "b": data_offsets)", R"(at least 8, where tensor "a" ends)", "found 7"}},
    {"SameBytes", pair_of("[8,16]", "[8,16]", "ab"), {"data_offsets", "overlap"}},
    {"DuplicateName", pair_of("[0,8]", "[8,16]", "aa"), {R"(tensor "a")", "one such name", "two"}},
    {"MetadataNoObject", R"({"__metadata__":1})", {"__metadata__", "an object of strings"}},
    {"MetadataNumber", R"({"__metadata__":{"a":1}})", {"__metadata__", R"(found {"a":1})"}},
    {"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", {"__metadata__", "two"}},
};

INSTANTIATE_TEST_SUITE_P(All, HeaderFault, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

TEST(Header, LegalOddities) {
  EXPECT_TRUE(parse("{}").empty());
  EXPECT_TRUE(parse(R"({"__metadata__":{"format":"pt"}}   )").empty());
  EXPECT_EQ(parse(one(R"("F32")", "[]", "[3,7]")).at(0).elements(), 1);       // a scalar, unaligned
  EXPECT_EQ(parse(one(R"("F32")", "[4,0]", "[64,64]")).at(0).elements(), 0);  // empty, at the end
  EXPECT_EQ(parse(pair_of("[40,48]", "[0,8]", "ab")).at(0).begin,
            kDataBegin + 40);  // a gap, any order
}

TEST(Header, NamesCannotBreakTheMessage) {
  try {
    parse("{\"line\\nbreak" + std::string(1000, 'x') + "\":1}");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::strlen(error.what()), 400U);
  }
}

struct FileFault {
  std::uint64_t length;  // as written in the first eight bytes
  std::string rest;
  std::size_t size;  // the file is cut or padded to this
  std::vector<std::string> parts;
};

TEST(File, LengthAndTruncation) {
  const std::string json = one(R"("U8")", "[8]", "[0,8]");
  const std::uint64_t n = json.size();
  const FileFault faults[] = {
      {n, json, 0, {"8 bytes of header length", "after 0 bytes"}},
      {n, json, 7, {"8 bytes of header length", "after 7 bytes"}},
      {n, json, 8 + n - 1, {"header length at byte offset 0", "at most " + std::to_string(n - 1)}},
      {~std::uint64_t{0}, json, 8 + n, {"header length", "found 18446744073709551615"}},
      {~std::uint64_t{0} - 7, json, 8 + n, {"header length", "found 18446744073709551608"}},
      {0, json, 8 + n, {"header length", "1 to 100000000 bytes", "found 0"}},
      {100'000'001, json, 100'000'100, {"header length", "1 to 100000000", "found 100000001"}},
      {n, json, 8 + n + 7, {R"(tensor "a": data_offsets)", "at most 7 bytes", "an end at 8"}},
  };
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  for (const FileFault& fault : faults) {
    std::string bytes(reinterpret_cast<const char*>(&fault.length), 8);
    bytes += fault.rest;
    std::ofstream(path, std::ios::binary) << bytes;
    std::filesystem::resize_file(path, fault.size);
    std::vector<std::string> parts = fault.parts;
    parts.push_back(path.string());
    expect_input_error([&] { const SafetensorsFile file(path); }, parts);
  }
  expect_input_error([&] { const SafetensorsFile file(folder.path() / "none"); }, {"none"});
  expect_input_error([&] { const SafetensorsFile file(folder.path()); }, {"a regular file"});
}

// Whatever the bytes, a header parses or gives an InputError; what parses lies within the file.
TEST(Header, RandomDamageNeverCrashes) {
  const std::string path =
      std::string(CUPEL_SOURCE_DIR) + "/models/tiny-v4-0731/model-00004-of-00004.safetensors";
  const SafetensorsFile file(path);
  const auto bytes = file.header_bytes();
  const std::string good(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8);
  const std::uint64_t size = std::filesystem::file_size(path);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = good;
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    }
    if (round % 10 == 0) damaged.resize(random() % damaged.size());
    try {
      for (const Tensor& tensor : parse_safetensors_header(damaged, bytes.size(), size, "x",
                                                           SafetensorsFile::Data::kRequired)) {
        ASSERT_LE(tensor.begin + tensor.bytes(), size);
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 5000);  // some damage hits names only
}

}  // namespace
}  // namespace cupel
