#include "cupel/eval/record.h"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/eval/jsonl.h"

namespace cupel {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::int64_t kIntMax = std::numeric_limits<int>::max();

// The double whose shortest decimal form is that of the float: 0.1, not 0.10000000149011612.
ordered_json short_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{}", value));
}

int int_member(const json& object, const char* key, const std::string& where,
               std::int64_t low = 0) {
  return static_cast<int>(jsonl::integer_member(object, key, where, low, kIntMax));
}

StopReason stop_reason_member(const json& object, const std::string& where) {
  const std::string name = jsonl::text_member(object, "stop_reason", where);
  for (const StopReason reason : {StopReason::kEos, StopReason::kStopString, StopReason::kLength}) {
    if (name == stop_reason_name(reason)) return reason;
  }
  throw InputError(where + ", \"stop_reason\"", "eos, stop or length", name);
}

std::vector<std::int32_t> ids_member(const json& object, const std::string& where) {
  const json& values = jsonl::member(object, "output_ids", where);
  std::vector<std::int32_t> ids;
  for (const json& value : values.is_array() ? values : json::array({nullptr})) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kIntMax) {
      throw InputError(where + ", \"output_ids\"", "a list of token ids", value.type_name());
    }
    ids.push_back(value.get<std::int32_t>());
  }
  return ids;
}

// NaN for null.
double nullable_member(const json& object, const char* key, const std::string& where) {
  if (jsonl::member(object, key, where).is_null()) return std::numeric_limits<double>::quiet_NaN();
  return jsonl::number_member(object, key, where);
}

ordered_json nullable(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

template <typename T>
bool same_or_both_unknown(T a, T b) {
  return a == b || (!std::isfinite(a) && !std::isfinite(b));
}

Record record_from(const json& object, const std::string& where) {
  Record r;
  r.task = jsonl::text_member(object, "task", where);
  r.item = int_member(object, "item", where);
  r.repeat = int_member(object, "repeat", where);
  r.prompt_hash = jsonl::text_member(object, "prompt_hash", where);
  r.output = jsonl::text_member(object, "output", where);
  r.output_ids = ids_member(object, where);
  if (!jsonl::member(object, "extracted", where).is_null()) {
    r.extracted = jsonl::integer_member(object, "extracted", where, INT64_MIN, INT64_MAX);
  }
  r.gold = jsonl::integer_member(object, "gold", where, INT64_MIN, INT64_MAX);
  r.correct = jsonl::flag_member(object, "correct", where);
  r.correct_strict = jsonl::flag_member(object, "correct_strict", where);
  r.invalid = jsonl::flag_member(object, "invalid", where);
  r.stop_reason = stop_reason_member(object, where);
  r.prompt_tokens = int_member(object, "prompt_tokens", where);
  r.completion_tokens = int_member(object, "completion_tokens", where);
  r.min_margin = static_cast<float>(nullable_member(object, "min_margin", where));
  r.min_margin_step = int_member(object, "min_margin_step", where, -1);
  r.queue_seconds = nullable_member(object, "queue_seconds", where);
  r.first_token_seconds = nullable_member(object, "first_token_seconds", where);
  r.total_seconds = nullable_member(object, "total_seconds", where);
  r.identity.cell = jsonl::text_member(object, "cell", where);
  r.identity.backend = jsonl::text_member(object, "backend", where);
  r.identity.settings = jsonl::text_member(object, "settings", where);
  r.identity.build = jsonl::text_member(object, "build", where);
  r.identity.model = jsonl::text_member(object, "model", where);
  if (object.contains("launch")) r.launch = jsonl::text_member(object, "launch", where);
  if (object.contains("retries")) r.retries = int_member(object, "retries", where);
  return r;
}

}  // namespace

bool Record::operator==(const Record& other) const {
  const auto tie = [](const Record& r) {
    return std::tie(r.task, r.item, r.repeat, r.prompt_hash, r.output, r.output_ids, r.extracted,
                    r.gold, r.correct, r.correct_strict, r.invalid, r.stop_reason, r.prompt_tokens,
                    r.completion_tokens, r.min_margin_step, r.identity, r.launch, r.retries);
  };
  return tie(*this) == tie(other) && same_or_both_unknown(min_margin, other.min_margin) &&
         same_or_both_unknown(queue_seconds, other.queue_seconds) &&
         same_or_both_unknown(first_token_seconds, other.first_token_seconds) &&
         same_or_both_unknown(total_seconds, other.total_seconds);
}

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEos:
      return "eos";
    case StopReason::kStopString:
      return "stop";
    case StopReason::kLength:
      return "length";
    case StopReason::kError:
      break;
  }
  return "error";
}

std::string to_json_line(const Record& r) {
  const ordered_json object = {
      {"task", r.task},
      {"item", r.item},
      {"repeat", r.repeat},
      {"prompt_hash", r.prompt_hash},
      {"output", r.output},
      {"output_ids", r.output_ids},
      {"extracted", r.extracted ? ordered_json(*r.extracted) : ordered_json(nullptr)},
      {"gold", r.gold},
      {"correct", r.correct},
      {"correct_strict", r.correct_strict},
      {"invalid", r.invalid},
      {"stop_reason", stop_reason_name(r.stop_reason)},
      {"prompt_tokens", r.prompt_tokens},
      {"completion_tokens", r.completion_tokens},
      {"min_margin", short_number(r.min_margin)},
      {"min_margin_step", r.min_margin_step},
      {"queue_seconds", nullable(r.queue_seconds)},
      {"first_token_seconds", nullable(r.first_token_seconds)},
      {"total_seconds", nullable(r.total_seconds)},
      {"cell", r.identity.cell},
      {"backend", r.identity.backend},
      {"settings", r.identity.settings},
      {"build", r.identity.build},
      {"model", r.identity.model},
      {"launch", r.launch},
      {"retries", r.retries},
  };
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Record parse_record(std::string_view line, const std::string& where) {
  std::optional<Record> record;
  jsonl::for_each_object(line, where, [&](const json& object, const std::string&) {
    record = record_from(object, where);
  });
  if (!record) throw InputError(where, "one JSON object", "an empty line");
  return *std::move(record);
}

std::vector<Record> read_records(const std::filesystem::path& path, UnfinishedLine unfinished) {
  std::string text = read_file(path);
  if (unfinished == UnfinishedLine::kDrop) text.resize(text.rfind('\n') + 1);
  std::vector<Record> records;
  std::map<std::pair<int, int>, std::string> seen;
  jsonl::for_each_object(text, path.string(), [&](const json& object, const std::string& where) {
    records.push_back(record_from(object, where));
    const Record& r = records.back();
    const auto [first, inserted] = seen.try_emplace({r.item, r.repeat}, where);
    if (!inserted) {
      throw InputError(
          where, "each item and repeat once",
          fmt::format("item {} repeat {} again, first at {}", r.item, r.repeat, first->second));
    }
  });
  return records;
}

}  // namespace cupel
