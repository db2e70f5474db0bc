#include <cstring>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {
namespace {

// The header, and in `size` the bytes of all data.
std::string header_json(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
                        std::uint64_t& size) {
  // Written by hand: the order of the tensors is the order of the data.
  std::string json = "{";
  std::uint64_t offset = 0;
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    const std::string where = tensor_where(path.string(), tensor.name);
    if (tensor.name == "__metadata__") throw InputError(where, "a tensor's name", "a reserved one");
    if (!names.insert(tensor.name).second) throw InputError(where, "one such tensor", "two");
    const auto bytes = checked_bytes(tensor.shape, tensor.dtype);
    if (!bytes) {
      throw InputError(where, "sizes whose product fits 63 bits", shape_text(tensor.shape));
    }
    std::string name;
    try {
      name = nlohmann::json(tensor.name).dump();
    } catch (const nlohmann::json::exception&) {
      throw InputError(where, "a name in UTF-8", "other bytes");
    }
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        json.size() == 1 ? "" : ",", name, dtype_name(tensor.dtype),
                        shape_text(tensor.shape), offset, offset + *bytes);
    offset += *bytes;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of eight
  size = offset;
  return json;
}

void write_header(AtomicFile& file, std::string_view json) {
  const std::uint64_t size = json.size();
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(json);
}

// Before the file is created: a refusal leaves nothing behind.
std::vector<TensorSpec> checked_specs(const std::filesystem::path& path,
                                      std::span<const TensorToWrite> tensors) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    const auto bytes = checked_bytes(tensor.shape, tensor.dtype);
    if (!bytes || *bytes != tensor.data.size()) {
      throw InputError(
          tensor_where(path.string(), tensor.name),
          fmt::format("the bytes of {} {}", dtype_name(tensor.dtype), shape_text(tensor.shape)),
          fmt::format("{} bytes", tensor.data.size()));
    }
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  return specs;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const TensorSpec> tensors)
    : where_(path.string()), file_(path) {
  write_header(file_, header_json(path, tensors, missing_));
}

void write_safetensors_header(const std::filesystem::path& path,
                              std::span<const TensorSpec> tensors) {
  std::uint64_t size = 0;
  const std::string json = header_json(path, tensors, size);
  AtomicFile file(path);
  write_header(file, json);
  file.commit();
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_) {
    throw InputError(where_, fmt::format("at most {} bytes more", missing_),
                     fmt::format("{}", bytes.size()));
  }
  file_.write(bytes);
  missing_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (missing_ > 0) throw InputError(where_, "the data of every tensor", "less");
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  const std::vector<TensorSpec> specs = checked_specs(path, tensors);
  SafetensorsWriter writer(path, specs);
  for (const TensorToWrite& tensor : tensors) writer.append(tensor.data);
  writer.commit();
}

}  // namespace cupel
