#include "cupel/eval/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/eval/answer.h"

namespace cupel {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double rate(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// The state of one run_task call.
class Run {
 public:
  Run(const Task& task, Target& target, const RunOptions& options);
  RunResult run();

 private:
  std::optional<Record>& slot(int item, int repeat);
  void resume();
  void check_resumed(const Record& record) const;
  void ask(int repeat);
  void keep(const TaskItem& item, int repeat, const Completion& completion);
  void rewrite_in_order() const;

  const Task& task_;
  Target& target_;
  const RunOptions& options_;
  CellIdentity identity_;
  std::vector<std::string> prompts_;
  std::vector<std::string> prompt_hashes_;
  std::vector<std::optional<Record>> slots_;  // by repeat, then item
  std::vector<Record> further_;               // of repeats beyond those asked for, in that order
  std::unique_ptr<LineWriter> writer_;
  Progress progress_;
  std::int64_t cached_prompt_tokens_ = 0;
  std::int64_t retries_ = 0;
  Clock::time_point start_;
};

Run::Run(const Task& task, Target& target, const RunOptions& options)
    : task_(task), target_(target), options_(options), identity_(options.identity) {
  if (options.repeats < 1) {
    throw InputError("repeats", "1 or more", std::to_string(options.repeats));
  }
  if (options.concurrency < 0) {
    throw InputError("concurrency", "0 or more", std::to_string(options.concurrency));
  }
  identity_.model = target.model_fingerprint();
  if (!identity_.settings.empty()) identity_.settings += ' ';
  identity_.settings += task.settings();
  if (options.seed != 0) identity_.settings += fmt::format(" seed={}", options.seed);
  for (const TaskItem& item : task.items) {
    prompts_.push_back(task.prompt(item));
    prompt_hashes_.push_back(hash_hex(prompts_.back()));
  }
  slots_.resize(task.items.size() * static_cast<std::size_t>(options.repeats));
  progress_.total = static_cast<std::int64_t>(slots_.size());
}

std::optional<Record>& Run::slot(int item, int repeat) {
  return slots_[static_cast<std::size_t>(repeat) * task_.items.size() +
                static_cast<std::size_t>(item)];
}

void Run::check_resumed(const Record& r) const {
  const std::string where =
      fmt::format("{}, item {} repeat {}", options_.records.string(), r.item, r.repeat);
  const auto same = [&](std::string_view what, const auto& expected, const auto& found) {
    if (expected != found) {
      throw InputError(
          where, fmt::format("{} {} (records can only be resumed by the same run)", what, expected),
          fmt::format("{}", found));
    }
  };
  same("task", task_.name, r.task);
  same("cell", identity_.cell, r.identity.cell);
  same("backend", identity_.backend, r.identity.backend);
  same("settings", identity_.settings, r.identity.settings);
  same("build", identity_.build, r.identity.build);
  same("model", identity_.model, r.identity.model);
  const auto items = static_cast<int>(task_.items.size());
  if (r.item >= items || (r.repeat >= options_.repeats && !options_.keep_further)) {
    throw InputError(
        where, fmt::format("only items below {} and repeats below {}", items, options_.repeats),
        "a record beyond them");
  }
  same("prompt hash", prompt_hashes_[static_cast<std::size_t>(r.item)], r.prompt_hash);
  same("gold", task_.items[static_cast<std::size_t>(r.item)].gold, r.gold);
}

void Run::resume() {
  if (!std::filesystem::exists(options_.records)) return;
  std::vector<Record> records = read_records(options_.records, UnfinishedLine::kDrop);
  for (const Record& record : records) check_resumed(record);
  for (Record& record : records) {
    if (record.repeat < options_.repeats) {
      slot(record.item, record.repeat) = std::move(record);
      ++progress_.resumed;
    } else {
      further_.push_back(std::move(record));
    }
  }
  std::sort(further_.begin(), further_.end(), [](const Record& a, const Record& b) {
    return std::tie(a.repeat, a.item) < std::tie(b.repeat, b.item);
  });
  progress_.done = progress_.resumed;
}

void Run::keep(const TaskItem& item, int repeat, const Completion& completion) {
  Record r;
  r.task = task_.name;
  r.item = item.id;
  r.repeat = repeat;
  r.prompt_hash = prompt_hashes_[static_cast<std::size_t>(item.id)];
  r.output = completion.text;
  r.output_ids = completion.output_ids;
  r.extracted = last_digits(completion.text);
  r.gold = item.gold;
  r.correct = r.extracted == item.gold;
  r.correct_strict = marked_answer(completion.text) == item.strict_gold;
  r.invalid = !r.extracted.has_value();
  r.stop_reason = completion.stop_reason;
  r.prompt_tokens = completion.prompt_tokens;
  r.completion_tokens = completion.completion_tokens;
  r.min_margin = completion.min_margin;
  r.min_margin_step = completion.min_margin_step;
  r.queue_seconds = completion.queue_seconds;
  r.first_token_seconds = completion.first_token_seconds;
  r.total_seconds = completion.total_seconds;
  r.identity = identity_;
  r.launch = options_.launch;
  r.retries = completion.retries;
  if (writer_) writer_->write_line(to_json_line(r));

  progress_.done += 1;
  progress_.prompt_tokens += r.prompt_tokens;
  progress_.completion_tokens += r.completion_tokens;
  progress_.elapsed_seconds = seconds_since(start_);
  cached_prompt_tokens_ += completion.cached_prompt_tokens;
  retries_ += completion.retries;
  slot(item.id, repeat) = std::move(r);
  if (options_.progress) options_.progress(progress_);
}

void Run::ask(int repeat) {
  std::vector<const TaskItem*> asked;
  std::vector<CompletionRequest> requests;
  for (const TaskItem& item : task_.items) {
    if (slot(item.id, repeat)) continue;
    asked.push_back(&item);
    requests.push_back({prompts_[static_cast<std::size_t>(item.id)], task_.max_new_tokens,
                        task_.temperature, request_seed(options_.seed, repeat, item.id),
                        task_.stop});
  }
  if (asked.empty()) return;
  std::string first_error;
  target_.complete(requests, options_.concurrency,
                   [&](std::size_t index, const Completion& completion) {
                     const TaskItem& item = *asked.at(index);
                     if (completion.stop_reason == StopReason::kError) {
                       if (first_error.empty()) {
                         first_error = fmt::format("item {}: {}", item.id, completion.error);
                       }
                     } else if (!slot(item.id, repeat)) {
                       keep(item, repeat, completion);
                     }
                   });
  const auto missing = std::count_if(asked.begin(), asked.end(), [&](const TaskItem* item) {
    return !slot(item->id, repeat).has_value();
  });
  if (missing == 0) return;
  throw InfrastructureError(
      fmt::format("cell {}", identity_.cell),
      fmt::format("{} of {} requests of repeat {} got no answer ({}); {} answers are kept{}",
                  missing, asked.size(), repeat,
                  first_error.empty() ? "the target never reported them" : first_error,
                  progress_.done,
                  writer_ ? fmt::format(" in {}", options_.records.string()) : std::string()));
}

// Answers end in any order; a finished file does not depend on it.
void Run::rewrite_in_order() const {
  if (!writer_ || !std::filesystem::is_regular_file(options_.records)) return;
  AtomicFile file(options_.records);
  for (const auto& record : slots_) {
    if (record) file.write(to_json_line(*record) + '\n');
  }
  for (const Record& record : further_) file.write(to_json_line(record) + '\n');
  file.commit();
}

RunResult Run::run() {
  if (options_.resume) resume();
  if (!options_.records.empty()) {
    writer_ = std::make_unique<LineWriter>(options_.records, options_.resume);
  }
  if (progress_.resumed > 0) {
    spdlog::info("{}: {} of {} answers are there already", options_.records.string(),
                 progress_.resumed, progress_.total);
  }
  start_ = Clock::now();
  for (int repeat = 0; repeat < options_.repeats; ++repeat) ask(repeat);

  RunResult result;
  result.wall_seconds = seconds_since(start_);
  rewrite_in_order();
  if (retries_ > 0) {
    spdlog::warn("{}: further tries after failures of the server: {} (\"retries\" of the records)",
                 identity_.cell, retries_);
  }
  // ask() has thrown unless every slot is filled.
  for (auto& record : slots_) {
    if (record) result.records.push_back(std::move(*record));
  }
  result.score = score(result.records);
  result.resumed = progress_.resumed;
  result.prompt_tokens_per_second = rate(progress_.prompt_tokens, result.wall_seconds);
  result.output_tokens_per_second = rate(progress_.completion_tokens, result.wall_seconds);
  result.cached_prompt_tokens = cached_prompt_tokens_;
  result.retries = retries_;
  return result;
}

}  // namespace

std::uint64_t request_seed(std::uint64_t seed, int repeat, int item) {
  const std::string hex = hash_hex(fmt::format("cupel seed {} {} {}", seed, repeat, item));
  // 53 bits: exact in every JSON parser.
  return std::stoull(hex.substr(0, 16), nullptr, 16) >> 11U;
}

void add_speed(RunResult& result, const RunResult& before) {
  const double prompt = result.prompt_tokens_per_second * result.wall_seconds +
                        before.prompt_tokens_per_second * before.wall_seconds;
  const double output = result.output_tokens_per_second * result.wall_seconds +
                        before.output_tokens_per_second * before.wall_seconds;
  result.wall_seconds += before.wall_seconds;
  result.prompt_tokens_per_second = result.wall_seconds > 0 ? prompt / result.wall_seconds : 0;
  result.output_tokens_per_second = result.wall_seconds > 0 ? output / result.wall_seconds : 0;
  result.cached_prompt_tokens += before.cached_prompt_tokens;
  result.retries += before.retries;
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
}

std::string progress_line(const Progress& p) {
  std::string line = fmt::format("{}/{} answers, {:.0f} prompt tok/s, {:.0f} output tok/s", p.done,
                                 p.total, rate(p.prompt_tokens, p.elapsed_seconds),
                                 rate(p.completion_tokens, p.elapsed_seconds));
  const std::int64_t asked = p.done - p.resumed;
  if (asked > 0) {
    line +=
        fmt::format(", {} left", format_duration(p.elapsed_seconds / static_cast<double>(asked) *
                                                 static_cast<double>(p.total - p.done)));
  }
  return line;
}

RunResult run_task(const Task& task, Target& target, const RunOptions& options) {
  return Run(task, target, options).run();
}

}  // namespace cupel
