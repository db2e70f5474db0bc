#include "cupel/checkpoint/safetensors.h"

#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t kPrefixSize = 8;
// The bound that the format's own readers use.
constexpr std::uint64_t kLargestHeader = 100'000'000;

// The size of the JSON header, checked against the file.
std::size_t read_header_size(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string where = file.path().string();
  if (bytes.size() < kPrefixSize) {
    throw InputError(where, "a safetensors file: 8 bytes of header length at offset 0",
                     fmt::format("the end of the file after {} bytes", bytes.size()));
  }
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size > bytes.size() - kPrefixSize) {
    throw InputError(fmt::format("{}: header length at byte offset 0", where),
                     fmt::format("at most {} (the rest of the file)", bytes.size() - kPrefixSize),
                     fmt::format("{}", size));
  }
  if (size == 0 || size > kLargestHeader) {
    throw InputError(fmt::format("{}: header length at byte offset 0", where),
                     fmt::format("1 to {} bytes", kLargestHeader), fmt::format("{}", size));
  }
  return static_cast<std::size_t>(size);
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    text += fmt::format("{}{}", text.size() == 1 ? "" : ", ", size);
  }
  return text + "]";
}

std::optional<std::uint64_t> checked_bytes(std::span<const std::int64_t> shape, Dtype dtype) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = dtype_size(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;  // the other sizes must still be sane
    }
    if (bytes > kLargest / static_cast<std::uint64_t>(size)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(size);
  }
  return empty ? 0 : bytes;
}

std::int64_t Tensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size == 0) return 0;
    count *= size;
  }
  return count;
}

std::size_t Tensor::bytes() const {
  return static_cast<std::size_t>(elements()) * dtype_size(dtype);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, Data data)
    : file_(path), header_size_(kPrefixSize + read_header_size(file_)) {
  const auto bytes = file_.bytes();
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()) + kPrefixSize,
                              header_size_ - kPrefixSize);
  tensors_ = parse_safetensors_header(json, header_size_, bytes.size(), path.string(), data);
  for (Tensor& tensor : tensors_) {
    const std::size_t size = tensor.bytes();
    // Only a header-only file may lack them.
    if (tensor.begin <= bytes.size() && size <= bytes.size() - tensor.begin) {
      tensor.data = bytes.subspan(tensor.begin, size);
    }
  }
}

std::span<const std::byte> SafetensorsFile::header_bytes() const {
  return file_.bytes().first(header_size_);
}

}  // namespace cupel
