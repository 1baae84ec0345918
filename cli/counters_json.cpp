#include "cli/counters_answer.hpp"

namespace specdec::cli {
namespace {

using estimate::ServingSummary;
using nlohmann::ordered_json;
using render::estimate_json;

ordered_json rate_json(const std::optional<estimate::CountedRate>& rate) {
  ordered_json json = {
      {"value", nullptr}, {"bounds", nullptr}, {"ci95", nullptr}, {"estimator", nullptr}, {"method", nullptr}};
  if (!rate) return json;
  json["value"] = number_or_null(rate->value);
  if (!rate->value) json["bounds"] = pair_of(rate->bounds);
  json["ci95"] = pair_of(rate->ci95);
  json["estimator"] = rate->estimator;
  json["method"] = rate->method;
  return json;
}

ordered_json positions_json(const ServingSummary& s) {
  ordered_json rows = ordered_json::array();
  for (const estimate::PositionAcceptance& position : s.positions) {
    rows.push_back({{"position", position.position},
                    {"accepted", position.accepted},
                    {"evaluated", number_or_null(position.evaluated)},
                    {"unconditional", estimate_json(position.survival)},
                    {"conditional", estimate_json(position.conditional)}});
  }
  return rows;
}

ordered_json histogram_json(const ServingSummary& s) {
  ordered_json rows = ordered_json::array();
  const auto put = [&](const ordered_json& draft_length, const std::vector<double>& rounds) {
    for (std::size_t accepted = 0; accepted < rounds.size(); ++accepted) {
      rows.push_back({{"draft_length", draft_length}, {"accepted_drafts", accepted}, {"rounds", rounds[accepted]}});
    }
  };
  put(nullptr, s.rounds_by_accepted);
  for (const auto& [length, rounds] : s.rounds_by_accepted_and_drafted) put(length, rounds);
  return rows;
}

ordered_json gammas_json(const CountersGroup& group) {
  ordered_json rows = ordered_json::array();
  const bool without_interval = group.summary.basis == estimate::IntervalBasis::none;
  for (const CountersGamma& row : group.gammas) {
    rows.push_back({{"gamma", row.gamma},
                    {"tokens_per_step",
                     {{"value", row.tokens.value},
                      {"ci95", without_interval ? ordered_json() : pair_of(row.tokens.ci95)},
                      {"method", group.method}}},
                    {"full_accepts", row.tokens.full_accepts},
                    {"measured", row.measured},
                    {"extrapolated", row.tokens.extrapolated}});
  }
  return rows;
}

ordered_json group_json(const CountersGroup& group) {
  const ServingSummary& s = group.summary;
  return {{"model_name", s.model_name.empty() ? ordered_json() : ordered_json(s.model_name)},
          {"group", or_null(s.group)},
          {"engines", s.engines},
          {"formats", s.formats},
          {"files", s.files},
          {"unit", s.unit ? ordered_json(name_of(*s.unit)) : ordered_json()},
          {"units", s.units},
          {"clusters", s.clusters},
          {"interval_basis", estimate::name_of(s.basis)},
          {"from_rates", s.from_rates},
          {"unweighted_means", s.unweighted_means},
          {"acceptance", s.rule ? ordered_json(traces::name_of(*s.rule)) : ordered_json("unknown")},
          {"shape", name_of(s.shape)},
          {"gamma", or_null(s.gamma)},
          {"longest_draft", or_null(s.longest_draft)},
          {"verified_per_round", number_or_null(s.verified_per_round)},
          {"rounds", number_or_null(s.rounds)},
          {"drafted", number_or_null(s.drafted)},
          {"accepted", number_or_null(s.accepted)},
          {"emitted", number_or_null(s.emitted)},
          {"tokens_per_step", estimate_json(s.tokens_per_step)},
          {"alpha_hat", rate_json(s.alpha_hat)},
          {"draft_acceptance_rate", estimate_json(s.draft_acceptance_rate)},
          {"draft_acceptance_rate_note", reason_against_alpha(s.shape)},
          {"tokens_per_step_by_one_rate", number_or_null(s.tokens_by_one_rate)},
          {"design_effect", number_or_null(s.design_effect)},
          {"positions", positions_json(s)},
          {"histogram", histogram_json(s)},
          {"gammas", gammas_json(group)}};
}

}  // namespace

std::map<std::string, ordered_json, std::less<>> rows_of_empty_counts() {
  CountersGroup group;
  group.summary.positions.emplace_back();
  group.summary.rounds_by_accepted = {0};
  group.gammas.emplace_back();
  const ordered_json row = group_json(group);
  std::map<std::string, ordered_json, std::less<>> rows = {{"groups", row}};
  for (const char* table : {"positions", "histogram", "gammas"}) {
    rows[table] = {{"model_name", nullptr}, {"group", nullptr}};
    rows[table].update(row[table][0]);
  }
  return rows;
}

ordered_json json_of(const CountersAnswer& answer) {
  ordered_json json = {{"groups", ordered_json::array()}};
  for (const CountersGroup& group : answer.groups) json["groups"].push_back(group_json(group));
  return json;
}

}  // namespace specdec::cli
