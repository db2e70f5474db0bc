// The safetensors container, read through a memory map.
//
// File: u64 little-endian header length n, n bytes of JSON, then the data. The JSON maps each
// tensor name to {dtype, shape, data_offsets: [begin, end)}, offsets counted from the end of the
// header. Offsets need not be multiples of the element size: read elements with memcpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/base/file.h"

namespace cupel {

enum class Dtype {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool
};

inline constexpr std::size_t kDtypeCount = 13;

std::size_t dtype_size(Dtype dtype);       // bytes an element
std::string_view dtype_name(Dtype dtype);  // as in the file, for example "F8_E4M3"
std::optional<Dtype> dtype_from_name(std::string_view name);

// "[768, 256]"
std::string shape_text(std::span<const std::int64_t> shape);
// elements x dtype_size; nullopt if a size is negative or the product exceeds 2^63 - 1.
std::optional<std::uint64_t> checked_bytes(std::span<const std::int64_t> shape, Dtype dtype);

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;          // byte offset in the file
  std::span<const std::byte> data;  // any alignment; empty when only the header is there
  std::string file;                 // path, for errors

  std::int64_t elements() const;
  std::size_t bytes() const;  // elements() * dtype_size(dtype)
  std::string shape_text() const { return cupel::shape_text(shape); }
};

// One file. Every tensor is checked on opening: dtype known, shape x dtype = bytes without
// overflow, offsets in range and not overlapping, names unique. Bytes that belong to no tensor are
// allowed. Throws InputError naming file, tensor, offset.
class SafetensorsFile {
 public:
  enum class Data { kRequired, kHeaderOnly };  // kHeaderOnly: the file may end after its header

  explicit SafetensorsFile(const std::filesystem::path& path, Data data = Data::kRequired);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return file_.path(); }
  // The JSON header with its length prefix.
  std::span<const std::byte> header_bytes() const;

 private:
  MappedFile file_;
  std::size_t header_size_ = 0;
  std::vector<Tensor> tensors_;
};

// Parses a header alone (the JSON text), in the order of the file and without data. `data_begin` is
// where the data starts in the file; `file_size` (>= data_begin) bounds the offsets unless only the
// header is there. For the class above and for the fuzzer. Throws InputError.
std::vector<Tensor> parse_safetensors_header(std::string_view json, std::uint64_t data_begin,
                                             std::uint64_t file_size, std::string_view where,
                                             SafetensorsFile::Data data);

// A tensor of a file to be written.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
};

// Writes one file piece by piece, tensors in the order given and without gaps; it appears under its
// name, complete and synced, with commit(). Throws InputError for a duplicate name, a name that is
// no UTF-8, and data that do not fit the shape; InfrastructureError where the system cannot write.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> tensors);

  // The next bytes of the data, of any number of tensors.
  void append(std::span<const std::byte> bytes);
  void commit();

 private:
  std::string where_;
  std::uint64_t missing_ = 0;
  AtomicFile file_;
};

// A file that ends after its header, for Data::kHeaderOnly.
void write_safetensors_header(const std::filesystem::path& path,
                              std::span<const TensorSpec> tensors);

// The same with all data at hand.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace cupel
