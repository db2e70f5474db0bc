// The parts of judge_preflight: what may be found, by where it shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/preflight.h"

namespace cupel {

// Appends. What only a drafter sees becomes a drafter's finding: it never stands above the
// target's.
void add_finding(PreflightReport& report, Severity severity, std::string what, std::string evidence,
                 std::vector<std::string> tensors, double weight, bool target);

// Faults, configuration, side files, tensors added, removed, renamed, reshaped or stored otherwise.
void find_structure(PreflightReport& report, const CheckpointView& before,
                    const CheckpointView& after);

// Damage, suspects and drift, from the differences of values. Needs the report's roles.
void find_value_changes(PreflightReport& report);

// "1 weight", "2 weights".
std::string plural(std::size_t count, std::string_view noun);

}  // namespace cupel
