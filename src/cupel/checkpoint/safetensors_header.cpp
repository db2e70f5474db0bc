// The JSON header of a safetensors file: parsed with simdjson; when that fails, read again with a
// parser that knows where it is, for the error message.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>
#include <simdjson.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/json_diagnosis.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {
namespace {

using simdjson::dom::element;

constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::string found_text(element value) {
  constexpr std::size_t kLongest = 100;
  std::string text = simdjson::minify(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// One tensor's entry while it is parsed, and where it stands for errors.
class EntryParser {
 public:
  EntryParser(std::string_view file, std::string_view name) : file_(file), name_(name) {}

  Tensor parse(element value) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) {
      fail({}, "an object with dtype, shape and data_offsets", found_text(value));
    }
    for (const auto field : object) {
      if (field.key == "dtype") {
        keep(dtype_, field.value, "dtype");
      } else if (field.key == "shape") {
        keep(shape_, field.value, "shape");
      } else if (field.key == "data_offsets") {
        keep(offsets_, field.value, "data_offsets");
      }
    }
    Tensor tensor;
    tensor.name = name_;
    tensor.file = file_;
    tensor.dtype = parse_dtype(required(dtype_, "dtype"));
    tensor.shape = parse_shape(required(shape_, "shape"));
    const auto bytes = checked_bytes(tensor.shape, tensor.dtype);
    if (!bytes) {
      fail("shape", "at most 2^63 - 1 bytes",
           fmt::format("{} {}", dtype_name(tensor.dtype), tensor.shape_text()));
    }
    const auto [begin, end] = parse_offsets(required(offsets_, "data_offsets"));
    if (end - begin != *bytes) {
      fail("data_offsets",
           fmt::format("{} bytes for {} {}", *bytes, dtype_name(tensor.dtype), tensor.shape_text()),
           fmt::format("{} bytes, [{}, {}]", end - begin, begin, end));
    }
    tensor.begin = begin;
    return tensor;
  }

  [[noreturn]] void fail(std::string_view field, std::string_view expected,
                         std::string_view found) const {
    throw InputError(tensor_where(file_, name_, field), expected, found);
  }

 private:
  void keep(std::optional<element>& slot, element value, std::string_view field) {
    if (slot) fail(field, "one such field", "two");
    slot = value;
  }

  element required(const std::optional<element>& slot, std::string_view field) const {
    if (!slot) fail(field, "a value", "no such field");
    return *slot;
  }

  Dtype parse_dtype(element value) const {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) fail("dtype", "a string", found_text(value));
    const auto dtype = dtype_from_name(text);
    if (!dtype) {
      std::string known;
      for (std::size_t i = 0; i < kDtypeCount; ++i) {
        known += fmt::format("{}{}", i == 0 ? "" : ", ", dtype_name(static_cast<Dtype>(i)));
      }
      fail("dtype", fmt::format("one of {}", known), quote(text));
    }
    return *dtype;
  }

  std::vector<std::int64_t> parse_shape(element value) const {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS) fail("shape", "an array", found_text(value));
    std::vector<std::int64_t> shape;
    for (const element item : array) {
      std::int64_t size = 0;
      if (item.get(size) != simdjson::SUCCESS || size < 0) {
        fail("shape", "integers from 0 to 2^63 - 1", found_text(value));
      }
      shape.push_back(size);
    }
    return shape;
  }

  std::pair<std::uint64_t, std::uint64_t> parse_offsets(element value) const {
    simdjson::dom::array array;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (value.get(array) != simdjson::SUCCESS || array.size() != 2 ||
        array.at(0).get(begin) != simdjson::SUCCESS || array.at(1).get(end) != simdjson::SUCCESS ||
        begin > end || end > kLargest) {
      fail("data_offsets", "two integers from 0 to 2^63 - 1, the first not above the second",
           found_text(value));
    }
    return {begin, end};
  }

  std::string_view file_;
  std::string_view name_;
  std::optional<element> dtype_;
  std::optional<element> shape_;
  std::optional<element> offsets_;
};

void check_metadata(element value, std::string_view file) {
  simdjson::dom::object object;
  bool good = value.get(object) == simdjson::SUCCESS;
  if (good) {
    for (const auto field : object) good = good && field.value.is_string();
  }
  if (!good) {
    throw InputError(fmt::format("{}: __metadata__", file), "an object of strings",
                     found_text(value));
  }
}

void check_overlaps(const std::vector<Tensor>& tensors, std::uint64_t data_begin) {
  std::vector<const Tensor*> order;
  order.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    if (tensor.bytes() > 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &Tensor::begin);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Tensor& before = *order[i - 1];
    const Tensor& tensor = *order[i];
    const std::uint64_t end = before.begin + before.bytes();
    if (tensor.begin < end) {
      throw InputError(tensor_where(tensor.file, tensor.name, "data_offsets"),
                       fmt::format("an offset of at least {}, where tensor {} ends",
                                   end - data_begin, quote(before.name)),
                       fmt::format("{}, an overlap", tensor.begin - data_begin));
    }
  }
}

}  // namespace

std::vector<Tensor> parse_safetensors_header(std::string_view json, std::uint64_t data_begin,
                                             std::uint64_t file_size, std::string_view where,
                                             SafetensorsFile::Data data) {
  simdjson::dom::parser parser;
  element root;
  const auto error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    throw_json_error(json, where, "tensor", simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    throw InputError(fmt::format("{}: header", where), "a JSON object", found_text(root));
  }
  const std::uint64_t room = file_size - std::min(file_size, data_begin);
  std::vector<Tensor> tensors;
  tensors.reserve(object.size());
  std::unordered_set<std::string_view> names;
  for (const auto field : object) {
    EntryParser entry(where, field.key);
    if (!names.insert(field.key).second) entry.fail({}, "one such name in the header", "two");
    if (field.key == "__metadata__") {
      check_metadata(field.value, where);
      continue;
    }
    Tensor tensor = entry.parse(field.value);
    const std::uint64_t end = tensor.begin + tensor.bytes();
    const bool header_only = data == SafetensorsFile::Data::kHeaderOnly;
    if (!header_only && end > room) {
      entry.fail(
          "data_offsets",
          fmt::format("at most {} bytes of data, as the file of {} bytes has", room, file_size),
          fmt::format("an end at {}", end));
    }
    if (data_begin > kLargest - end) {
      entry.fail("data_offsets", "an end below 2^63 in the file", fmt::format("{}", end));
    }
    tensor.begin += data_begin;
    tensors.push_back(std::move(tensor));
  }
  check_overlaps(tensors, data_begin);
  return tensors;
}

}  // namespace cupel
