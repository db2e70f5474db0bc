#include "cupel/eval/probe/retrieval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"
#include "cupel/eval/task.h"

namespace cupel {
namespace {

constexpr int kShortest = 16;   // lengths from the shortest on
constexpr int kAround = 4;      // on each side of a multiple
constexpr int kMultiple = 128;  // the window and the pages of the compressed entries
constexpr int kTrial = 16;      // fillers of the second of the first prompts, half of the third's

std::string with_bos(bool bos, std::string text) {
  return std::string(bos ? kBosText : "") + std::move(text);
}

void require(const std::string& form, std::string_view place, std::string_view flag) {
  if (form.find(place) == std::string::npos) {
    throw InputError(flag, fmt::format("a text with {}", place), "\"" + form + "\"");
  }
}

std::string first_number(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = std::min(text.find_first_of(kDigits), text.size());
  return text.substr(begin, std::min(text.find_first_not_of(kDigits, begin), text.size()) - begin);
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

class Phase {
 public:
  Phase(Target& target, const PhaseOptions& options) : target_(target), options_(options) {}

  ProbeResult run();

 private:
  CompletionRequest request(int fillers) const;
  std::string key(int fillers) const {
    return std::to_string(stable_number("phase", fillers, 100, 999));
  }
  std::vector<int> fillers() const;

  Target& target_;
  const PhaseOptions& options_;
};

CompletionRequest Phase::request(int fillers) const {
  std::string filler;
  for (int i = 0; i < fillers; ++i) filler += options_.filler;
  CompletionRequest request;
  request.prompt =
      with_bos(options_.bos, fill(options_.form, {{"key", key(fillers)}, {"filler", filler}}));
  request.max_new_tokens = options_.max_new_tokens;
  request.stop = options_.stop;
  return request;
}

// How many fillers give the lengths wanted, by what they add to a prompt.
std::vector<int> Phase::fillers() const {
  const std::array<CompletionRequest, 3> trial = {request(0), request(kTrial), request(2 * kTrial)};
  const auto lengths = ask_all(target_, trial, 1, "phase");
  const int shortest = lengths[0].prompt_tokens;
  // The first filler may add another number of tokens than those after it.
  const int anchor = lengths[1].prompt_tokens;
  const double step = static_cast<double>(lengths[2].prompt_tokens - anchor) / kTrial;
  if (step <= 0) {
    throw InputError("--filler", "a text that makes a prompt longer",
                     "\"" + options_.filler + "\"");
  }
  std::vector<int> wanted;
  wanted.reserve(kShortest);
  for (int i = 0; i < kShortest; ++i) wanted.push_back(shortest + i);
  for (int middle = kMultiple; middle + kAround <= options_.longest; middle += kMultiple) {
    for (int i = -kAround; i <= kAround; ++i) wanted.push_back(middle + i);
  }
  std::vector<int> counts;
  for (const int length : wanted) {
    const auto count = static_cast<int>(std::lround(kTrial + (length - anchor) / step));
    if (count >= 0) counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

ProbeResult Phase::run() {
  const std::vector<int> counts = fillers();
  std::vector<CompletionRequest> requests;
  requests.reserve(counts.size());
  for (const int count : counts) requests.push_back(request(count));
  const auto answers = ask_all(target_, requests, options_.concurrency, "phase");

  ProbeResult result{ProbeKind::kPhase, "wrong answers", {}, {}};
  std::map<int, std::array<int, 2>> by_residue;  // length mod 4 -> asked, wrong
  std::string wrong_lengths;
  int wrong = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const int length = answers[i].prompt_tokens;
    const bool right = first_number(answers[i].text) == key(counts[i]);
    result.items.push_back({counts[i], hash_hex(requests[i].prompt), right ? 0.0 : 1.0});
    auto& [asked, failed] = by_residue[length % 4];
    ++asked;
    if (right) continue;
    ++failed;
    if (++wrong <= 24) wrong_lengths += fmt::format("{}{}", wrong == 1 ? "" : ", ", length);
  }
  const auto [shortest, longest] = std::minmax_element(
      answers.begin(), answers.end(),
      [](const Completion& a, const Completion& b) { return a.prompt_tokens < b.prompt_tokens; });
  result.lines.push_back(
      fmt::format("Prompts of {} to {} tokens.", shortest->prompt_tokens, longest->prompt_tokens));
  for (const auto& [residue, counted] : by_residue) {
    result.lines.push_back(
        fmt::format("Length mod 4 = {}: {} of {} wrong.", residue, counted[1], counted[0]));
  }
  if (wrong > 0) {
    result.lines.push_back(fmt::format("Wrong at lengths {}{}.", wrong_lengths,
                                       wrong > 24 ? fmt::format(" and {} more", wrong - 24) : ""));
  }
  return result;
}

std::string numbers(int size, int index) {
  std::string text;
  for (int i = 0; i < size; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ",
                        stable_number(fmt::format("copy {} {}", size, index), i, 100, 999));
  }
  return text;
}

}  // namespace

void check(const PhaseOptions& options) {
  require(options.form, "{key}", "--phase-template");
  require(options.form, "{filler}", "--phase-template");
  if (options.longest < 1) {
    throw InputError("--longest", "1 token or more", std::to_string(options.longest));
  }
}

ProbeResult probe_phase(Target& target, const PhaseOptions& options) {
  check(options);
  return Phase(target, options).run();
}

void check(const CopyOptions& options) {
  require(options.form, "{text}", "--copy-template");
  if (options.sizes.empty() || options.prompts < 1 ||
      *std::min_element(options.sizes.begin(), options.sizes.end()) < 1) {
    throw InputError("--copy-sizes", "sizes and a number of prompts, each 1 or more",
                     fmt::format("{} sizes, {} prompts", options.sizes.size(), options.prompts));
  }
}

ProbeResult probe_copy(Target& target, const CopyOptions& options) {
  check(options);
  ProbeResult result{ProbeKind::kCopy, "copies that are not exact", {}, {}};
  for (const int size : options.sizes) {
    std::vector<CompletionRequest> requests;
    std::vector<std::string> texts;
    for (int i = 0; i < options.prompts; ++i) {
      texts.push_back(numbers(size, i));
      CompletionRequest request;
      request.prompt = with_bos(options.bos, fill(options.form, {{"text", texts.back()}}));
      // A tokenizer may split a number and its blank, rarely more.
      request.max_new_tokens = 4 * size + 8;
      request.stop = options.stop;
      requests.push_back(std::move(request));
    }
    const auto answers = ask_all(target, requests, options.concurrency, "copy");
    int wrong = 0;
    double copied = 0;
    int tokens = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string answer = trimmed(answers[i].text);
      const bool exact = answer == texts[i];
      wrong += exact ? 0 : 1;
      copied +=
          static_cast<double>(
              std::mismatch(texts[i].begin(), texts[i].end(), answer.begin(), answer.end()).first -
              texts[i].begin()) /
          static_cast<double>(texts[i].size());
      tokens = std::max(tokens, answers[i].prompt_tokens);
      result.items.push_back(
          {static_cast<int>(result.items.size()), hash_hex(requests[i].prompt), exact ? 0.0 : 1.0});
    }
    result.lines.push_back(fmt::format(
        "{} numbers (prompts of up to {} tokens): {} of {} exact; copied without a "
        "mistake before the first: {:.1f} % on average.",
        size, tokens, options.prompts - wrong, options.prompts, 100 * copied / options.prompts));
  }
  return result;
}

}  // namespace cupel
