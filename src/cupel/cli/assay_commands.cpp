#include "cupel/cli/assay_commands.h"

#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace cupel {
namespace {

int parse_number(std::string_view text, const std::string& flag, const std::string& whole) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw InputError(flag, "whole numbers as 60,160,320 or a range as 60..320", whole);
  }
  return value;
}

}  // namespace

void add_statistics_commands(CLI::App& assay, Run& run) {
  // A required positional would swallow the name of the command.
  assay.get_option("task")->required(false);
  add_assay_compare_command(assay, run);
  add_assay_counts_command(assay, run);
  add_assay_floor_command(assay, run);
  add_assay_plan_command(assay, run);
}

void require_task(const CLI::App& assay) {
  if (assay.get_subcommands().empty() && assay.count("task") == 0) {
    throw CLI::RequiredError("task");
  }
}

CLI::App* add_statistics_command(CLI::App& assay, const std::string& name,
                                 const std::string& description) {
  CLI::App* command = assay.add_subcommand(name, description);
  assay.require_subcommand(0, 1);
  // Runs as soon as the word is met, before assay looks for what it requires.
  command->preparse_callback([&assay, name](std::size_t) {
    for (CLI::Option* option : assay.get_options()) {
      if (option->count() > 0) {
        throw InputError("cupel assay " + name, "the flags of " + name + " after its name",
                         "before it " + option->get_name());
      }
      option->required(false);
    }
  });
  return command;
}

std::vector<int> parse_numbers(const std::string& text, const std::string& flag, int low) {
  std::vector<int> numbers;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::string_view view = text;
    const int first = parse_number(view.substr(0, dots), flag, text);
    const int last = parse_number(view.substr(dots + 2), flag, text);
    if (first < 1) throw InputError(flag, "a range that begins with 1 or more", text);
    for (std::int64_t n = first; n < last; n *= 2) numbers.push_back(static_cast<int>(n));
    if (last >= first) numbers.push_back(last);
  } else {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      numbers.push_back(
          parse_number(std::string_view(text).substr(begin, end - begin), flag, text));
      begin = end + 1;
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < low || (i > 0 && numbers[i] <= numbers[i - 1])) {
      throw InputError(flag, fmt::format("ascending numbers from {} on", low), text);
    }
  }
  if (numbers.empty()) throw InputError(flag, "ascending numbers", text);
  return numbers;
}

SequentialBound parse_bound(const std::string& text) {
  if (text == "anytime") return SequentialBound::kAnytime;
  if (text == "group" || text == "group-sequential") return SequentialBound::kGroupSequential;
  throw InputError("--bound", "group (group-sequential) or anytime", text);
}

std::string format_share(double share) {
  if (share == 0) return "0 %";
  if (share < 1e-4) return fmt::format("{:.0e}", share);
  return share < 0.1 ? fmt::format("{:.2f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}

}  // namespace cupel
