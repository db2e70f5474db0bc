// What a repack noted of each expert, as JSON: beside a finished shard, for a run that goes on
// later.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/repack.h"

namespace cupel {

std::string records_json(std::span<const RepackedWeight> weights);
// Throws InputError naming `where`.
std::vector<RepackedWeight> parse_records(std::string_view text, std::string_view where);

}  // namespace cupel
