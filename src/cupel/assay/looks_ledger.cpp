#include "cupel/assay/looks_ledger.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/eval/jsonl.h"

namespace cupel {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "cupel looks 1";
constexpr int kMostRepeats = 1'000'000;

int repeats_of(const json& value, const std::string& where) {
  if (!value.is_number_integer() || value < 1 || value > kMostRepeats) {
    throw InputError(where, "a number of repeats", value.dump());
  }
  return value.get<int>();
}

const json& array_member(const json& object, const char* key, const std::string& where) {
  const json& value = jsonl::member(object, key, where);
  if (!value.is_array())
    throw InputError(where + ", \"" + key + '"', "an array", value.type_name());
  return value;
}

// A level above 0 keeps a damaged ledger from granting looks for nothing.
double level_member(const json& object, const std::string& where) {
  const double alpha = jsonl::number_member(object, "alpha", where);
  if (!(alpha >= 0 && alpha < 0.5)) {
    throw InputError(where + ", \"alpha\"", "a level from 0 to 0.5", fmt::format("{}", alpha));
  }
  return alpha;
}

StudyLooks study_from(const json& object, const std::string& where) {
  if (!object.is_object()) throw InputError(where, "an object", object.type_name());
  StudyLooks s;
  s.reference = jsonl::text_member(object, "reference", where);
  s.candidate = jsonl::text_member(object, "candidate", where);
  s.study = jsonl::text_member(object, "study", where);
  s.margin = jsonl::number_member(object, "margin", where);
  s.plan.alpha = level_member(object, where);
  s.plan.repeats.clear();
  for (const json& value : array_member(object, "looks", where)) {
    s.plan.repeats.push_back(repeats_of(value, where + ", \"looks\""));
  }
  check(s.plan);
  for (const json& look : array_member(object, "taken", where)) {
    const std::string at = where + ", \"taken\"";
    if (!look.is_object()) throw InputError(at, "objects", look.type_name());
    s.taken.push_back({repeats_of(jsonl::member(look, "reference", at), at),
                       repeats_of(jsonl::member(look, "candidate", at), at),
                       level_member(look, at)});
  }
  return s;
}

ordered_json to_json(const StudyLooks& s) {
  ordered_json taken = ordered_json::array();
  for (const TakenLook& t : s.taken) {
    taken.push_back({{"reference", t.repeats_reference},
                     {"candidate", t.repeats_candidate},
                     {"alpha", t.alpha}});
  }
  return {{"reference", s.reference}, {"candidate", s.candidate}, {"study", s.study},
          {"margin", s.margin},       {"alpha", s.plan.alpha},    {"looks", s.plan.repeats},
          {"taken", std::move(taken)}};
}

void add_first_pass(Hasher& hasher, std::span<const Record> records) {
  std::map<int, const Record*> first;
  for (const Record& r : records) {
    const Record*& at = first[r.item];
    if (at == nullptr || r.repeat < at->repeat) at = &r;
  }
  for (const auto& [item, r] : first) {
    hasher.add(fmt::format("{}:{}:{}:", item, r->prompt_hash, r->output.size())).add(r->output);
  }
}

}  // namespace

std::string study_hash(std::span<const Record> reference, std::span<const Record> candidate) {
  Hasher hasher;
  add_first_pass(hasher, reference);
  hasher.add("|");
  add_first_pass(hasher, candidate);
  return hasher.hex();
}

LooksLedger::LooksLedger(std::filesystem::path path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  const std::string where = path_.string();
  const json ledger = json::parse(read_file(path_), nullptr, /*allow_exceptions=*/false);
  if (!ledger.is_object() || ledger.value("format", json()) != kFormat) {
    throw InputError(where, fmt::format("a ledger of looks (\"format\": \"{}\")", kFormat),
                     "something else");
  }
  for (const json& study : array_member(ledger, "studies", where)) {
    studies_.push_back(study_from(study, fmt::format("{}, study {}", where, studies_.size())));
  }
}

StudyLooks LooksLedger::find(const std::string& reference, const std::string& candidate,
                             const std::string& study, double margin, const LookPlan& plan) const {
  for (const StudyLooks& s : studies_) {
    if (s.reference != reference || s.candidate != candidate || s.study != study) continue;
    if (s.margin != margin || s.plan.alpha != plan.alpha) {
      throw InputError(
          path_.string(),
          fmt::format("the margin {:g} and level {:g} that {} was first looked at with", s.margin,
                      s.plan.alpha, candidate),
          fmt::format("{:g} and {:g}", margin, plan.alpha));
    }
    return s;
  }
  return {reference, candidate, study, margin, plan, {}};
}

void LooksLedger::keep(const StudyLooks& looks) {
  std::erase_if(studies_, [&](const StudyLooks& s) {
    return s.reference == looks.reference && s.candidate == looks.candidate;
  });
  studies_.push_back(looks);
  ordered_json ledger = {{"format", kFormat}, {"studies", ordered_json::array()}};
  for (const StudyLooks& s : studies_) ledger["studies"].push_back(to_json(s));
  AtomicFile file(path_);
  file.write(ledger.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n');
  file.commit();
}

}  // namespace cupel
