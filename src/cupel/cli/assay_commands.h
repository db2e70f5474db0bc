// The statistics commands under `cupel assay`: they run nothing, but judge what is there.
#pragma once

#include <string>
#include <vector>

#include "cupel/assay/sequential.h"
#include "cupel/cli/command.h"

namespace cupel {

// Adds floor, plan, counts and compare to the assay command. Their names take precedence over a
// task of the same name ("./floor" is a path). What `assay` itself requires (task, reference,
// margin) they do not.
void add_statistics_commands(CLI::App& assay, Run& run);

// For the callback of `assay` itself: throws CLI::RequiredError if no task was given. Of no effect
// after one of the commands above.
void require_task(const CLI::App& assay);

// One of them, wired so; `run` is set by what it returns.
CLI::App* add_statistics_command(CLI::App& assay, const std::string& name,
                                 const std::string& description);

void add_assay_floor_command(CLI::App& assay, Run& run);
void add_assay_plan_command(CLI::App& assay, Run& run);
void add_assay_counts_command(CLI::App& assay, Run& run);
void add_assay_compare_command(CLI::App& assay, Run& run);

// "60,160,320", or a range "60..320" that doubles from its low end and ends with its high end:
// 60, 120, 240, 320. Throws InputError naming `flag` unless they are `low` or more, ascending.
std::vector<int> parse_numbers(const std::string& text, const std::string& flag, int low);

// "group" or "group-sequential", or "anytime". Throws InputError naming --bound.
SequentialBound parse_bound(const std::string& text);

// "0.03 %", "99.8 %", "7e-15": legible over many orders.
std::string format_share(double share);

}  // namespace cupel
