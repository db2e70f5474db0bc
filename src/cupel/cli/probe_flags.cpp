#include "cupel/cli/probe_flags.h"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/assay/probe_verdict.h"
#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/cli/task_flags.h"
#include "cupel/eval/jsonl.h"
#include "cupel/eval/probe/nll.h"
#include "cupel/eval/probe/repeatability.h"

namespace cupel {

void ProbeFlags::add(CLI::App& app) {
  app.add_option("--probe-prompts", prompts,
                 "repeatability, nll and stray: the first N items of the task")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--nll-texts", texts,
      "nll: JSON lines with \"text\" (default: questions and worked answers of the task)");
  app.add_option("--phase-template", phase_form,
                 "phase: prompt with {key} and {filler}, a text or @FILE; the first number of the "
                 "answer must be the key (default: a pass key)");
  app.add_option("--filler", phase.filler, "phase: text that lengthens a prompt by one token")
      ->capture_default_str();
  app.add_option("--longest", phase.longest, "phase: tokens of the longest prompt")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--copy-template", copy_form,
                 "copy: prompt with {text}, a text or @FILE (default: an example and the text)");
  app.add_option("--copy-sizes", copy.sizes, "copy: numbers in the text, by commas")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--copy-prompts", copy.prompts, "copy: prompts of each size")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--scripts", stray.scripts,
                 "stray: Unicode scripts that answers may hold, by commas")
      ->delimiter(',')
      ->capture_default_str();
}

void ProbeFlags::check() const {
  const StrayDetector detector(stray);
  cupel::check(phase_options());
  cupel::check(copy_options());
}

PhaseOptions ProbeFlags::phase_options() const {
  PhaseOptions options = phase;
  if (!phase_form.empty()) options.form = text_or_file(phase_form);
  return options;
}

CopyOptions ProbeFlags::copy_options() const {
  CopyOptions options = copy;
  if (!copy_form.empty()) options.form = text_or_file(copy_form);
  return options;
}

std::vector<CompletionRequest> ProbeFlags::requests(const Task& task) const {
  std::vector<CompletionRequest> all;
  for (const TaskItem& item : task.items) {
    if (static_cast<int>(all.size()) == prompts) break;
    CompletionRequest request;
    request.prompt = task.prompt(item);
    request.max_new_tokens = task.max_new_tokens;
    request.stop = task.stop;
    all.push_back(std::move(request));
  }
  return all;
}

std::vector<std::string> ProbeFlags::nll_texts(const Task& task) const {
  const std::string bos(task.bos ? kBosText : "");
  std::vector<std::string> all;
  if (!texts.empty()) {
    jsonl::for_each_object(read_file(texts), texts,
                           [&](const nlohmann::json& object, const std::string& where) {
                             all.push_back(bos + jsonl::text_member(object, "text", where));
                           });
    return all;
  }
  for (const TaskItem& item : task.items) {
    if (static_cast<int>(all.size()) == prompts) break;
    all.push_back(bos +
                  fill(task.form.shot, {{"question", item.question}, {"answer", item.answer}}));
  }
  return all;
}

ProbeResult ProbeFlags::run(ProbeKind kind, Target& target, const Task& task,
                            int concurrency) const {
  switch (kind) {
    case ProbeKind::kRepeatability:
      return probe_repeatability(target, requests(task));
    case ProbeKind::kPhase: {
      PhaseOptions options = phase_options();
      options.bos = task.bos;
      options.concurrency = concurrency;
      return probe_phase(target, options);
    }
    case ProbeKind::kCopy: {
      CopyOptions options = copy_options();
      options.bos = task.bos;
      options.concurrency = concurrency;
      return probe_copy(target, options);
    }
    case ProbeKind::kNll:
      return probe_nll(target, nll_texts(task));
    case ProbeKind::kStray:
      break;
  }
  return run_stray(target, task, concurrency);
}

ProbeResult ProbeFlags::run_stray(Target& target, const Task& task, int concurrency) const {
  const auto asked = requests(task);
  const auto found = ask_all(target, asked, concurrency, "stray");
  std::vector<StrayAnswer> answers;
  for (std::size_t i = 0; i < found.size(); ++i) {
    answers.push_back({static_cast<int>(i), hash_hex(asked[i].prompt), found[i].text,
                       found[i].stop_reason == StopReason::kLength});
  }
  return probe_stray(answers, stray);
}

std::vector<ProbeRequest> parse_probes(const std::vector<std::string>& texts) {
  std::vector<ProbeRequest> all;
  for (const std::string& text : texts) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    ProbeRequest request{parse_probe(text.substr(0, colon)), std::nullopt};
    if (colon < text.size()) {
      double margin = 0;
      const char* begin = text.data() + colon + 1;
      const char* end = text.data() + text.size();
      const auto [last, error] = std::from_chars(begin, end, margin);
      if (error != std::errc() || last != end) {
        throw InputError("--probe", "NAME or NAME:MARGIN", text);
      }
      check_probe_margin(request.kind, margin);
      request.margin = margin;
    }
    const bool twice = std::any_of(all.begin(), all.end(), [&](const ProbeRequest& other) {
      return other.kind == request.kind;
    });
    if (twice) throw InputError("--probe", "each probe once", text + " again");
    all.push_back(request);
  }
  return all;
}

std::string render_probe(const ProbeResult& result) {
  const ProbeFigure figure = probe_figure(result);
  const bool nats = result.kind == ProbeKind::kNll;
  const int digits = nats ? 4 : 2;
  std::string text =
      fmt::format("{}: {:.{}f}{} {}, 95 % {:.{}f} to {:.{}f} ({} {})\n", probe_name(result.kind),
                  figure.mean, digits, nats ? "" : " %", result.what, figure.interval95.low, digits,
                  figure.interval95.high, digits, result.items.size(), nats ? "texts" : "prompts");
  for (const std::string& line : result.lines) text += "  " + line + '\n';
  return text;
}

}  // namespace cupel
