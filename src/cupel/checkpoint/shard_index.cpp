#include "cupel/checkpoint/shard_index.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <simdjson.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/checkpoint/json_diagnosis.h"
#include "cupel/checkpoint/quote.h"

namespace cupel {
namespace {

using simdjson::dom::element;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";

std::string field_where(const ShardIndex& index, std::string_view field) {
  return fmt::format("{}: field {}", index.source.string(), field);
}

simdjson::dom::object get_object(const ShardIndex& index, std::string_view field, element value) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    throw InputError(field_where(index, field), "an object", std::string(simdjson::minify(value)));
  }
  return object;
}

void read_weight_map(ShardIndex& index, simdjson::dom::object map) {
  std::set<std::string> files;
  for (const auto entry : map) {
    const std::string where = tensor_where(index.source.string(), entry.key);
    std::string_view file;
    if (entry.value.get(file) != simdjson::SUCCESS) {
      throw InputError(where, "the name of a shard", std::string(simdjson::minify(entry.value)));
    }
    if (!file.ends_with(".safetensors") || file.find('/') != std::string_view::npos ||
        file.find('\0') != std::string_view::npos) {
      throw InputError(where, "the name of a *.safetensors file in the same folder", quote(file));
    }
    if (!index.weight_map.emplace(entry.key, file).second) {
      throw InputError(where, "one such tensor in the index", "two");
    }
    files.emplace(file);
  }
  if (files.empty()) {
    throw InputError(field_where(index, "weight_map"), "at least one tensor", "none");
  }
  index.files.assign(files.begin(), files.end());
}

void read_total_size(ShardIndex& index, simdjson::dom::object metadata) {
  element value;
  if (metadata["total_size"].get(value) != simdjson::SUCCESS) return;  // optional
  std::uint64_t size = 0;
  double number = 0;
  if (value.get(size) != simdjson::SUCCESS) {
    // Some writers pass the sum through a floating-point number.
    if (!value.is_double() || value.get(number) != simdjson::SUCCESS || number < 0 ||
        number > 9.0e18 || number != static_cast<double>(static_cast<std::uint64_t>(number))) {
      throw InputError(field_where(index, "metadata.total_size"), "a number of bytes",
                       std::string(simdjson::minify(value)));
    }
    size = static_cast<std::uint64_t>(number);
  }
  index.total_size = size;
}

void parse_index(ShardIndex& index) {
  const std::string where = index.source.string();
  const std::string text = read_file(index.source);
  simdjson::dom::parser parser;
  element root;
  const auto error = parser.parse(text).get(root);
  if (error != simdjson::SUCCESS) {
    throw_json_error(text, where, "field", simdjson::error_message(error));
  }
  const simdjson::dom::object object = get_object(index, "(whole text)", root);
  bool mapped = false;
  for (const auto field : object) {
    if (field.key == "weight_map") {
      if (mapped) throw InputError(field_where(index, "weight_map"), "one such field", "two");
      read_weight_map(index, get_object(index, "weight_map", field.value));
      mapped = true;
    } else if (field.key == "metadata") {
      read_total_size(index, get_object(index, "metadata", field.value));
    }
  }
  if (!mapped) {
    throw InputError(field_where(index, "weight_map"), "an object: tensor name -> file",
                     "no such field");
  }
}

// Also false where the name is too long or the folder may not be read.
bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Every tensor in the folder must be accounted for, those in forgotten files too.
void check_stray_files(const ShardIndex& index, const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".safetensors") && !std::ranges::binary_search(index.files, name)) {
      throw InputError(entry->path().string(),
                       fmt::format("only the files that {} names", index.source.string()),
                       "one more");
    }
  }
  if (error) throw InputError(folder.string(), "a readable folder", error.message());
}

}  // namespace

ShardIndex read_shard_index(const std::filesystem::path& folder) {
  ShardIndex index;
  index.source = folder / kIndexName;
  if (file_exists(index.source)) {
    index.sharded = true;
    parse_index(index);
  } else {
    index.source = folder / kSingleName;
    if (!file_exists(index.source)) {
      throw InputError(folder.string(), fmt::format("{} or {}", kIndexName, kSingleName),
                       "neither");
    }
    index.files = {std::string(kSingleName)};
  }
  for (const std::string& file : index.files) {
    if (!file_exists(folder / file)) {
      const auto names = [&](const auto& entry) { return entry.second == file; };
      const auto tensor = std::ranges::find_if(index.weight_map, names);
      throw InputError((folder / file).string(),
                       fmt::format("a shard that {} names for tensor {}", index.source.string(),
                                   quote(tensor->first)),
                       "no such file");
    }
  }
  check_stray_files(index, folder);
  return index;
}

TensorTable index_tensors(const ShardIndex& index, const std::vector<SafetensorsFile>& shards) {
  TensorTable table;
  std::uint64_t bytes = 0;
  for (const SafetensorsFile& shard : shards) {
    const std::string file = shard.path().filename().string();
    for (const Tensor& tensor : shard.tensors()) {
      const auto where = [&] { return tensor_where(tensor.file, tensor.name); };
      const auto [entry, fresh] = table.emplace(tensor.name, &tensor);
      if (!fresh) {
        throw InputError(where(), "one such tensor in the folder",
                         fmt::format("another in {}", entry->second->file));
      }
      bytes += tensor.bytes();
      if (!index.sharded) continue;
      const auto listed = index.weight_map.find(tensor.name);
      if (listed == index.weight_map.end()) {
        throw InputError(where(), fmt::format("an entry in {}", index.source.string()), "none");
      }
      if (listed->second != file) {
        throw InputError(where(), fmt::format("it in {}, as the index says", quote(listed->second)),
                         fmt::format("it in {}", quote(file)));
      }
    }
  }
  for (const auto& [name, file] : index.weight_map) {
    if (!table.contains(name)) {
      throw InputError(tensor_where(index.source.string(), name),
                       fmt::format("it in {}, as the index says", quote(file)),
                       "no such tensor in that file");
    }
  }
  if (index.total_size && *index.total_size != bytes) {
    throw InputError(field_where(index, "metadata.total_size"),
                     fmt::format("{}, the bytes of all tensors in the shards", bytes),
                     fmt::format("{}", *index.total_size));
  }
  return table;
}

}  // namespace cupel
