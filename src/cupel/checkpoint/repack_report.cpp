#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/checkpoint/repack.h"
#include "cupel/checkpoint/repack_records.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

Json weight_json(const RepackedWeight& weight) {
  Json lossy = Json::array();
  for (const LossyBlock& block : weight.lossy) {
    lossy.push_back({{"row", block.row},
                     {"column", block.column},
                     {"changed", block.changed},
                     {"relative_error", block.relative_error},
                     {"exponent_spread", block.exponent_spread}});
  }
  return {{"name", weight.name},
          {"blocks", weight.blocks},
          {"lossless_blocks", weight.blocks - static_cast<std::int64_t>(weight.lossy.size())},
          {"elements", weight.elements},
          {"changed_elements", weight.changed_elements},
          {"max_abs_error", weight.max_abs_error},
          {"lossy_blocks", lossy},
          {"ambiguous_groups", weight.ambiguous_groups}};
}

Json weights_json(std::span<const RepackedWeight> weights) {
  Json out = Json::array();
  for (const RepackedWeight& weight : weights) out.push_back(weight_json(weight));
  return out;
}

struct Totals {
  std::int64_t blocks = 0;
  std::int64_t lossy = 0;
  std::int64_t elements = 0;
  std::int64_t changed = 0;
  std::int64_t ambiguous = 0;
  double max_abs_error = 0;
};

Totals totals_of(const RepackReport& report) {
  Totals totals;
  for (const RepackedWeight& weight : report.weights) {
    totals.blocks += weight.blocks;
    totals.lossy += static_cast<std::int64_t>(weight.lossy.size());
    totals.elements += weight.elements;
    totals.changed += weight.changed_elements;
    totals.ambiguous += static_cast<std::int64_t>(weight.ambiguous_groups.size());
    totals.max_abs_error = std::max(totals.max_abs_error, weight.max_abs_error);
  }
  return totals;
}

}  // namespace

std::string records_json(std::span<const RepackedWeight> weights) {
  return weights_json(weights).dump() + "\n";
}

std::vector<RepackedWeight> parse_records(std::string_view text, std::string_view where) {
  std::vector<RepackedWeight> out;
  try {
    for (const auto& item : nlohmann::json::parse(text)) {
      RepackedWeight weight;
      weight.name = item.at("name").get<std::string>();
      weight.blocks = item.at("blocks").get<std::int64_t>();
      weight.elements = item.at("elements").get<std::int64_t>();
      weight.changed_elements = item.at("changed_elements").get<std::int64_t>();
      weight.max_abs_error = item.at("max_abs_error").get<double>();
      weight.ambiguous_groups = item.at("ambiguous_groups").get<std::vector<std::int64_t>>();
      for (const auto& block : item.at("lossy_blocks")) {
        weight.lossy.push_back(
            {block.at("row").get<std::int64_t>(), block.at("column").get<std::int64_t>(),
             block.at("changed").get<std::int64_t>(), block.at("relative_error").get<double>(),
             block.at("exponent_spread").get<int>()});
      }
      out.push_back(std::move(weight));
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(where, "the record of a repacked shard", error.what());
  }
  return out;
}

std::string repack_text(const RepackReport& report, int top) {
  const Totals t = totals_of(report);
  std::string out = fmt::format(
      "repacked {} -> {}\n  experts {} -> {}: {} weights, {} values\n  bytes {} -> {} in {} "
      "shards, {} tensors\n",
      report.in, report.out, expert_dtype_name(report.from), expert_dtype_name(report.to),
      report.weights.size(), t.elements, report.bytes_in, report.bytes_out, report.shards,
      report.tensors_out);
  if (report.resumed_shards > 0) {
    out += fmt::format("  {} shards were finished by an interrupted run\n", report.resumed_shards);
  }
  out +=
      fmt::format("  blocks of {}: {} lossless, {} lossy\n",
                  report.to == ExpertDtype::kFp4 ? "1x32" : "128x128", t.blocks - t.lossy, t.lossy);
  if (t.lossy > 0) {
    out += fmt::format("  values changed: {}; largest absolute error {:.3g}\n", t.changed,
                       t.max_abs_error);
    int listed = 0;
    for (const RepackedWeight& weight : report.weights) {
      for (const LossyBlock& block : weight.lossy) {
        if (++listed > top) break;
        out +=
            fmt::format("    {} block at [{}, {}]: {} values changed, relative error {:.3g}",
                        weight.name, block.row, block.column, block.changed, block.relative_error);
        if (block.exponent_spread > 0) {
          out += fmt::format(", scale exponents spread over {}", block.exponent_spread);
        }
        out += '\n';
      }
    }
    if (listed > top) out += fmt::format("    … {} in all: see the JSON\n", t.lossy);
  }
  if (report.to == ExpertDtype::kFp4) {
    out += fmt::format("  groups that more than one scale keeps (the largest was taken): {}\n",
                       t.ambiguous);
  }
  out += report.verified ? "  verified: every value read back as reported\n" : "";
  return out;
}

std::string repack_json(const RepackReport& report) {
  const Totals t = totals_of(report);
  const Json out = {{"in", report.in},
                    {"out", report.out},
                    {"from", expert_dtype_name(report.from)},
                    {"to", expert_dtype_name(report.to)},
                    {"bytes_in", report.bytes_in},
                    {"bytes_out", report.bytes_out},
                    {"tensors_out", report.tensors_out},
                    {"shards", report.shards},
                    {"resumed_shards", report.resumed_shards},
                    {"verified", report.verified},
                    {"blocks", t.blocks},
                    {"lossy_blocks", t.lossy},
                    {"elements", t.elements},
                    {"changed_elements", t.changed},
                    {"max_abs_error", t.max_abs_error},
                    {"ambiguous_groups", t.ambiguous},
                    {"weights", weights_json(report.weights)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cupel
