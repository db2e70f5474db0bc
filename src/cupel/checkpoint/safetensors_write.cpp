#include <cstring>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {
namespace {

std::string header_json(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  // Written by hand: the order of the tensors is the order of the data.
  std::string json = "{";
  std::uint64_t offset = 0;
  std::unordered_set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    const std::string where = tensor_where(path.string(), tensor.name);
    if (tensor.name == "__metadata__") throw InputError(where, "a tensor's name", "a reserved one");
    if (!names.insert(tensor.name).second) throw InputError(where, "one such tensor", "two");
    const auto bytes = checked_bytes(tensor.shape, tensor.dtype);
    if (!bytes || *bytes != tensor.data.size()) {
      throw InputError(
          where,
          fmt::format("the bytes of {} {}", dtype_name(tensor.dtype), shape_text(tensor.shape)),
          fmt::format("{} bytes", tensor.data.size()));
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
  return json;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  const std::string json = header_json(path, tensors);
  const std::uint64_t size = json.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(json);
  for (const TensorToWrite& tensor : tensors) file.write(tensor.data);
  file.commit();
}

}  // namespace cupel
