#include "cupel/assay/report/json.h"

#include <nlohmann/json.hpp>

#include "cupel/assay/report.h"

namespace cupel {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json interval(const Interval& i) {
  return {{"low", i.low}, {"high", i.high}};
}

ordered_json agreement(const Agreement& a) {
  return {{"share", a.total_agreement()},
          {"share95", interval({1 - a.rate95.high, 1 - a.rate95.low})},
          {"pairs", a.pairs},
          {"differing", a.differing},
          {"independent_pairs", a.independent_pairs}};
}

ordered_json agreement_or_null(const std::optional<Agreement>& a) {
  return a ? agreement(*a) : ordered_json(nullptr);
}

ordered_json noise(const std::optional<RunNoise>& n) {
  if (!n) return nullptr;
  return {{"disagreeing_items", n->disagreeing},
          {"unstable", n->unstable},
          {"unstable95", interval(n->unstable95)},
          {"deviation_by_items", n->deviation_by_items},
          {"deviation_by_runs", n->deviation_by_runs},
          {"deviation_by_runs95", interval(n->deviation_by_runs95)},
          {"p_same", or_null(n->p_same)},
          {"notes", notes(*n)}};
}

ordered_json cell(const CellRow& c, const std::string& records) {
  return {{"name", c.name},
          {"items", c.items},
          {"repeats", c.repeats},
          {"accuracy", c.accuracy},
          {"accuracy95", interval(c.accuracy95)},
          {"strict_accuracy", or_null(c.strict_accuracy)},
          {"invalid_share", or_null(c.invalid_share)},
          {"truncated_share", or_null(c.truncated_share)},
          {"prompt_tokens_per_second", c.prompt_tokens_per_second},
          {"output_tokens_per_second", c.output_tokens_per_second},
          {"seconds", c.seconds},
          {"noise", noise(c.noise)},
          {"same_text", agreement_or_null(c.same_text)},
          {"same_answer", agreement_or_null(c.same_answer)},
          {"backend", c.identity.backend},
          {"settings", c.identity.settings},
          {"build", c.identity.build},
          {"model", c.identity.model},
          {"launches", c.launches},
          {"records", records}};
}

ordered_json answer(const FlippedAnswer& a, const std::string& text, bool cut) {
  return {{"repeat", a.repeat},
          {"correct", a.correct},
          {"extracted", or_null(a.extracted)},
          {"stop_reason", stop_reason_name(a.stop_reason)},
          {"min_margin", or_null(a.min_margin)},
          {"min_margin_step", a.min_margin_step},
          {"text", text},
          {"text_cut", cut}};
}

ordered_json flip(const Flip& f) {
  return {{"item", f.item},
          {"change", f.lost ? "lost" : "gained"},
          {"difference", f.change},
          {"prompt_hash", f.question},
          {"gold", or_null(f.gold)},
          {"first_different_token", or_null(f.token)},
          {"first_different_byte", f.text.offset},
          {"near_tie", near_tie_name(f.near_tie)},
          {"text_before", f.text.before},
          {"text_before_cut", f.text.before_cut},
          {"reference", answer(f.reference, f.text.reference, f.text.reference_cut)},
          {"candidate", answer(f.candidate, f.text.candidate, f.text.candidate_cut)}};
}

ordered_json remedy(const Decision& d) {
  if (d.verdict != Verdict::kInconclusive) return nullptr;
  return {{"text", d.remedy.text},
          {"repeats", or_null(d.remedy.repeats)},
          {"items", or_null(d.remedy.items)}};
}

ordered_json comparison(const ComparisonRow& row) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  std::vector<std::string> all_notes = row.notes;
  for (std::string& note : notes(c, d)) all_notes.push_back(std::move(note));
  ordered_json flips = ordered_json::array();
  for (const Flip& f : row.flips) flips.push_back(flip(f));
  return {{"reference", c.reference},
          {"candidate", c.candidate},
          {"verdict", verdict_name(d.verdict)},
          {"items", c.items},
          {"repeats_reference", c.repeats_reference},
          {"repeats_candidate", c.repeats_candidate},
          {"deterministic", c.deterministic},
          {"loss", c.loss},
          {"lost", c.lost},
          {"gained", c.gained},
          {"level", row.level},
          {"bounds", interval(d.interval90)},
          {"interval95_new_items", interval(d.interval95_new)},
          {"interval95_item_set",
           d.interval95_set ? interval(*d.interval95_set) : ordered_json(nullptr)},
          {"se_new_items", c.se_new},
          {"se_item_set", or_null(c.se_set)},
          {"p_regression", d.p_regression},
          {"p_holm", d.p_holm},
          {"q_value", d.q_value},
          {"mcnemar_two_sided", or_null(c.mcnemar_two_sided)},
          {"loss_inside_margin", d.loss_inside_margin},
          {"loss_beyond_margin", d.loss_beyond_margin},
          {"would_decide", remedy(d)},
          {"notes", all_notes},
          {"flips", flips}};
}

ordered_json probe(const ProbeComparison& p) {
  return {{"probe", probe_name(p.kind)},
          {"unit", p.kind == ProbeKind::kNll ? "nats a token" : "points"},
          {"reference", p.reference},
          {"candidate", p.candidate},
          {"items", p.items},
          {"loss", p.loss},
          {"standard_error", p.standard_error},
          {"bounds", interval(p.bounds)},
          {"interval95", interval(p.interval95)},
          {"p", p.p},
          {"margin", or_null(p.margin)},
          {"verdict", p.verdict ? ordered_json(verdict_name(*p.verdict)) : ordered_json(nullptr)},
          {"p_holm", p.verdict ? ordered_json(p.p_holm) : ordered_json(nullptr)},
          {"would_decide",
           p.verdict == Verdict::kInconclusive ? ordered_json(p.remedy) : ordered_json(nullptr)}};
}

std::string records_of(const AssayReport& report, const std::string& name) {
  for (const auto& [cell, path] : report.records) {
    if (cell == name) return path;
  }
  return {};
}

}  // namespace

std::string render_json(const AssayReport& report) {
  ordered_json cells = ordered_json::array();
  for (const CellRow& c : report.cells) cells.push_back(cell(c, records_of(report, c.name)));
  ordered_json comparisons = ordered_json::array();
  for (const ComparisonRow& row : report.comparisons) comparisons.push_back(comparison(row));
  ordered_json probes = ordered_json::array();
  for (const ProbeComparison& p : report.probes) probes.push_back(probe(p));
  ordered_json pairs = ordered_json::array();
  for (const CellAgreement& a : report.agreement) {
    pairs.push_back({{"a", report.cells.at(a.a).name},
                     {"b", report.cells.at(a.b).name},
                     {"text", agreement(a.text)},
                     {"answer", agreement_or_null(a.answer)}});
  }
  ordered_json interactions = ordered_json::array();
  for (const Interaction& i : report.interactions) {
    interactions.push_back({{"name", i.name},
                            {"estimate", i.estimate},
                            {"standard_error", i.standard_error},
                            {"interval95", interval(i.interval95)},
                            {"p_one_sided", i.p_one_sided}});
  }
  const ordered_json object = {{"schema", kReportSchema},
                               {"created_at", report.created_at},
                               {"title", report.title},
                               {"task", report.task},
                               {"item_set", report.item_set},
                               {"verdict", verdict_name(overall_verdict(report))},
                               {"reference", report.reference},
                               {"margin", report.margin},
                               {"looks", report.looks},
                               {"near_tie_below", kNearTie},
                               {"cells", cells},
                               {"comparisons", comparisons},
                               {"probes", probes},
                               {"interactions", interactions},
                               {"agreement", pairs}};
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace cupel
