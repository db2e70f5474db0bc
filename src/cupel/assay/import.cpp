#include "cupel/assay/import.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/eval/jsonl.h"

namespace cupel {
namespace {

using nlohmann::json;

constexpr std::int64_t kIntMax = std::numeric_limits<int>::max();

bool has(const json& object, std::initializer_list<const char*> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* k) { return object.contains(k); });
}

template <typename Names>
std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

ResultFormat recognise(const json& object, const std::string& where) {
  if (has(object, {"item", "repeat", "output", "correct"})) return ResultFormat::kCupel;
  if (has(object, {"doc_id", "filtered_resps"})) return ResultFormat::kLmEval;
  if (has(object, {"id", "generation"}) &&
      (object.contains("symbolic_correct") || object.contains("is_correct"))) {
    return ResultFormat::kSglEval;
  }
  if (has(object, {"prompt_id", "output", "correct"})) return ResultFormat::kBenchRaw;
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() < 8) keys.push_back(key);
  }
  throw InputError(where,
                   "per-sample results: records of cupel, samples_*.jsonl of lm-eval, "
                   "output-rs*.jsonl of sgl-eval or a raw result file of SGLang's benchmarks",
                   keys.empty() ? "an empty object" : "an object with " + listed(keys));
}

// A score of 0 or 1, as a number or a flag.
bool zero_or_one(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number() && (value == 0 || value == 1)) return value == 1;
  throw InputError(fmt::format("{}, \"{}\"", where, key), "a score of 0 or 1 for each sample",
                   value.is_number() ? value.dump() : std::string(value.type_name()));
}

std::string hash_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() || found->get<std::string>().empty()) return {};
  return hash_hex(found->get<std::string>());
}

// A number, or text that ends in one ("gsm8k-12").
int item_of(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const std::size_t digits = text.find_last_not_of("0123456789") + 1;
    int item = 0;
    const auto [end, error] =
        std::from_chars(text.data() + digits, text.data() + text.size(), item);
    if (digits < text.size() && error == std::errc()) return item;
    throw InputError(fmt::format("{}, \"{}\"", where, key), "a number or text ending in one", text);
  }
  return static_cast<int>(jsonl::integer_member(object, key, where, 0, kIntMax));
}

std::string first_text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  const json* value = &*found;
  while (value->is_array() && !value->empty()) value = &value->front();
  return value->is_string() ? value->get<std::string>()
                            : value->dump(-1, ' ', false, json::error_handler_t::replace);
}

class Reader {
 public:
  Reader(const std::string& cell, const ImportOptions& options) : cell_(cell), options_(options) {}

  void read(const std::filesystem::path& path) {
    passes_of_file_.clear();
    filters_.clear();
    const int before = repeats_;
    const std::size_t records_before = records_.size();
    jsonl::for_each_object(
        read_file(path), path.string(),
        [&](const json& object, const std::string& where) { add(object, where, before); });
    if (records_.size() == records_before) {
      const std::string found = filters_.empty() ? "none" : "none with that filter";
      throw InputError(path.string(), "at least one sample", found);
    }
  }

  std::vector<Record> take() { return std::move(records_); }

 private:
  void add(const json& object, const std::string& where, int before) {
    const ResultFormat format = recognise(object, where);
    if (!format_) format_ = format;
    if (*format_ != format) {
      throw InputError(where, fmt::format("{}, as before", format_name(*format_)),
                       std::string(format_name(format)));
    }
    std::optional<Record> r;
    switch (format) {
      case ResultFormat::kCupel:
        r = parse_record(object.dump(-1, ' ', false, json::error_handler_t::replace), where);
        r->repeat += before;
        repeats_ = std::max(repeats_, r->repeat + 1);
        records_.push_back(*std::move(r));
        return;
      case ResultFormat::kLmEval:
        r = lm_eval(object, where);
        break;
      case ResultFormat::kSglEval:
        r = sgl_eval(object, where);
        break;
      case ResultFormat::kBenchRaw:
        r = bench_raw(object, where);
        break;
    }
    if (!r) return;
    r->task = format_name(format);
    r->identity.cell = cell_;
    // The same item once more is the next pass.
    r->repeat = before + passes_of_file_[r->item]++;
    repeats_ = std::max(repeats_, r->repeat + 1);
    records_.push_back(*std::move(r));
  }

  std::optional<Record> lm_eval(const json& object, const std::string& where) {
    const std::string filter =
        object.contains("filter") ? jsonl::text_member(object, "filter", where) : "none";
    filters_.insert(filter);
    if (options_.filter.empty() && filters_.size() > 1) {
      throw InputError(where, "one filter, or one named with --filter", listed(filters_));
    }
    if (!options_.filter.empty() && filter != options_.filter) return std::nullopt;
    Record r;
    r.item = item_of(object, "doc_id", where);
    for (const char* key : {"prompt_hash", "doc_hash"}) {
      if (r.prompt_hash.empty() && object.contains(key)) {
        r.prompt_hash = jsonl::text_member(object, key, where);
      }
    }
    const std::string metric = !options_.metric.empty()         ? options_.metric
                               : object.contains("exact_match") ? "exact_match"
                                                                : "acc";
    r.correct = r.correct_strict = zero_or_one(object, metric.c_str(), where);
    r.output = first_text(object, object.contains("resps") ? "resps" : "filtered_resps");
    return r;
  }

  static Record sgl_eval(const json& object, const std::string& where) {
    if (object.value("finish_reason", json()) == "error") {
      throw InputError(where, "answers (a failed request is no wrong answer)",
                       "\"finish_reason\": \"error\"");
    }
    Record r;
    r.item = item_of(object, "id", where);
    r.prompt_hash = hash_of(object, "problem");
    r.output = first_text(object, "generation");
    const char* score = object.contains("symbolic_correct") ? "symbolic_correct" : "is_correct";
    r.correct = r.correct_strict = zero_or_one(object, score, where);
    return r;
  }

  static Record bench_raw(const json& object, const std::string& where) {
    Record r;
    r.item = item_of(object, "prompt_id", where);
    r.prompt_hash = hash_of(object, "prompt");
    r.output = jsonl::text_member(object, "output", where);
    r.correct = r.correct_strict = zero_or_one(object, "correct", where);
    return r;
  }

  std::string cell_;
  ImportOptions options_;
  std::optional<ResultFormat> format_;
  std::set<std::string> filters_;
  std::map<int, int> passes_of_file_;
  int repeats_ = 0;
  std::vector<Record> records_;
};

}  // namespace

std::string_view format_name(ResultFormat format) {
  switch (format) {
    case ResultFormat::kCupel:
      return "records of cupel";
    case ResultFormat::kLmEval:
      return "lm-eval samples";
    case ResultFormat::kSglEval:
      return "sgl-eval predictions";
    case ResultFormat::kBenchRaw:
      break;
  }
  return "SGLang raw results";
}

std::vector<Record> import_results(std::span<const std::filesystem::path> files,
                                   const std::string& cell, const ImportOptions& options) {
  Reader reader(cell, options);
  for (const std::filesystem::path& file : files) reader.read(file);
  return reader.take();
}

}  // namespace cupel
