#include "cupel/eval/probe/stray.h"

#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr std::size_t kShown = 8;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r\n";
  std::size_t begin = text.find_first_not_of(kBlank);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlank, end);
  }
  return words;
}

// The first n-gram of words that has occurred `repeats` times.
std::string find_loop(std::string_view text, int ngram, int repeats) {
  const auto words = words_of(text);
  const auto n = static_cast<std::size_t>(ngram);
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i + n <= words.size(); ++i) {
    std::string gram;
    for (std::size_t k = i; k < i + n; ++k) gram += (k == i ? "" : " ") + std::string(words[k]);
    if (++seen[gram] >= repeats) return gram;
  }
  return {};
}

// The code point of a character in valid UTF-8.
unsigned code_point(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  unsigned value = bytes.size() == 1 ? lead : lead & (0xFFU >> (bytes.size() + 1));
  for (const char byte : bytes.substr(1))
    value = value << 6U | (static_cast<unsigned>(byte) & 0x3FU);
  return value;
}

}  // namespace

struct StrayDetector::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

StrayDetector::StrayDetector(const StrayOptions& options)
    : options_(options), pattern_(std::make_unique<Pattern>()) {
  if (options.ngram < 1 || options.repeats < 2) {
    throw InputError("stray", "sequences of 1 word or more, repeated twice or more",
                     fmt::format("{} and {}", options.ngram, options.repeats));
  }
  std::string allowed;
  for (const std::string& script : options.scripts) {
    if (script.empty() ||
        script.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
      throw InputError("--scripts", "names of Unicode scripts, as Latin,Greek", script);
    }
    allowed += "\\p{" + script + "}";
  }
  const std::string text = "\\x{FFFD}|[^\\p{Common}\\p{Inherited}" + allowed + "]";
  int error = 0;
  PCRE2_SIZE at = 0;
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                 PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, nullptr);
  if (pattern_->code == nullptr) {
    throw InputError("--scripts", "names of Unicode scripts, as Latin,Greek", allowed);
  }
}

StrayDetector::~StrayDetector() = default;

StrayFindings StrayDetector::look_at(const std::string& text, bool truncated) const {
  StrayFindings found;
  found.truncated = truncated;
  found.loop = find_loop(text, options_.ngram, options_.repeats);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(pattern_->code, nullptr), &pcre2_match_data_free);
  std::set<unsigned> characters;
  std::size_t offset = 0;
  while (pcre2_match(pattern_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), offset,
                     0, match.get(), nullptr) > 0) {
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    const unsigned point = code_point(std::string_view(text).substr(range[0], range[1] - range[0]));
    if (characters.insert(point).second && characters.size() <= kShown) {
      found.characters += fmt::format("{}U+{:04X}", found.characters.empty() ? "" : " ", point);
    }
    offset = range[1];
  }
  return found;
}

std::vector<StrayAnswer> stray_answers(std::span<const Record> records) {
  std::vector<StrayAnswer> answers;
  for (const Record& r : records) {
    answers.push_back({r.item, r.prompt_hash, r.output, r.stop_reason == StopReason::kLength});
  }
  return answers;
}

ProbeResult probe_stray(std::span<const StrayAnswer> answers, const StrayOptions& options) {
  if (answers.empty()) throw InputError("probe stray", "at least one answer", "none");
  const StrayDetector detector(options);
  struct Counted {
    std::string prompt_hash;
    int answers = 0;
    int faults = 0;
  };
  std::map<int, Counted> items;
  int characters = 0;
  int loops = 0;
  int truncated = 0;
  std::vector<std::string> shown;
  for (const StrayAnswer& answer : answers) {
    const StrayFindings found = detector.look_at(answer.text, answer.truncated);
    const bool stray = !found.characters.empty();
    const bool loop = !found.loop.empty();
    characters += stray ? 1 : 0;
    loops += loop ? 1 : 0;
    truncated += found.truncated ? 1 : 0;
    Counted& item = items[answer.item];
    item.prompt_hash = answer.prompt_hash;
    ++item.answers;
    item.faults += stray || loop || found.truncated ? 1 : 0;
    if (shown.size() >= kShown) continue;
    if (stray) shown.push_back(fmt::format("Item {}: {}.", answer.item, found.characters));
    if (loop) {
      shown.push_back(
          fmt::format("Item {} repeats \"{}\".", answer.item, found.loop.substr(0, 60)));
    }
  }
  ProbeResult result{ProbeKind::kStray, "answers with a stray character, a loop or no end", {}, {}};
  for (const auto& [id, item] : items) {
    result.items.push_back({id, item.prompt_hash, static_cast<double>(item.faults) / item.answers});
  }
  result.lines.push_back(
      fmt::format("Of {} answers {} hold characters of unexpected scripts, {} repeat {} words {} "
                  "times or more, {} were truncated.",
                  answers.size(), characters, loops, options.ngram, options.repeats, truncated));
  result.lines.insert(result.lines.end(), shown.begin(), shown.end());
  return result;
}

}  // namespace cupel
