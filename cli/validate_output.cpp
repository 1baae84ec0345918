#include "cli/validate_output.hpp"

#include "cli/report.hpp"
#include "render/comparison.hpp"
#include "render/json_values.hpp"
#include "render/table.hpp"
#include "render/text.hpp"
#include "sim/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using validation::Check;
using validation::Configuration;
using validation::UniformityTest;

// Rows of the tables of checks and of distribution tests begin with the configuration they belong to.
ordered_json place_of(const Configuration& c) {
  return {{"task", c.task}, {"temperature", c.temperature}, {"gamma", c.gamma}};
}

ordered_json check_json(const Configuration& configuration, const Check& check) {
  ordered_json row = place_of(configuration);
  row["name"] = check.name;
  row["expected"] = check.expected;
  row["measured"] = check.measured;
  row["deviation_standard_errors"] = number_or_null(check.deviation_standard_errors);
  row["p_value"] = number_or_null(check.p_value);
  row["passed"] = check.passed;
  return row;
}

ordered_json uniformity_json(const Configuration& configuration, const UniformityTest& test) {
  ordered_json row = place_of(configuration);
  row["order"] = test.order == UniformityTest::Order::by_ratio ? "ratio" : "probability";
  // null stands for the tokens of all slots together.
  row["slot"] = test.slot == 0 ? ordered_json() : ordered_json(test.slot);
  row["tokens"] = test.tokens;
  row["distance"] = number_or_null(test.distance);
  row["p_value"] = number_or_null(test.p_value);
  row["passed"] = test.passed;
  return row;
}

ordered_json configuration_json(const Configuration& c) {
  return {{"task", c.task},
          {"temperature", c.temperature},
          {"gamma", c.gamma},
          {"sequences", c.sequences},
          {"steps", c.counters.steps},
          {"tokens", c.counters.tokens},
          {"drafted", c.counters.drafted},
          {"accepted", c.counters.accepted},
          {"alpha", estimate_json(c.alpha)},
          {"tokens_per_step",
           {{"iid", c.tokens_per_step.iid},
            {"iid_finite", c.tokens_per_step.iid_finite},
            {"iid_relative_error", c.tokens_per_step.iid_error()},
            {"replay", c.tokens_per_step.replay},
            {"measured", estimate_json(c.tokens_per_step.measured)}}},
          {"operations_factor",
           {{"theory", number_or_null(c.operations.theory)}, {"measured", number_or_null(c.operations.measured)}}},
          {"timing", timing_json(c.timing)},
          {"distribution_test",
           {{"smallest_p_value", number_or_null(c.smallest_p_value)},
            {"tests", c.tests},
            {"steps_z", number_or_null(c.steps_z)}}},
          {"passed", c.passed}};
}

template <class Get>
std::string timed_cell(const Configuration& c, const Get& get) {
  return c.timing ? get(*c.timing) : "-";
}

std::string p_value(const std::optional<double>& value) { return value ? fmt::format("{:.1e}", *value) : "-"; }

/// @param is_brief  without what theory says of speeds and operations
Table table_of(const std::vector<Configuration>& configurations, bool is_brief) {
  const ColumnLook of_theory = {.shown = !is_brief};
  return make_table(
      configurations,
      {{"task", {Align::left}, &Configuration::task},
       {"T", [](const auto& c) { return fmt::format("{}", c.temperature); }},
       {"gamma", [](const auto& c) { return fmt::format("{}", c.gamma); }},
       {"alpha", [](const auto& c) { return with_interval(c.alpha, 3); }},
       {"Eq.1", [](const auto& c) { return fixed(c.tokens_per_step.iid, 2); }},
       {"error", of_theory, [](const auto& c) { return fmt::format("{:+.1f}%", 100 * c.tokens_per_step.iid_error()); }},
       {"replay", [](const auto& c) { return fixed(c.tokens_per_step.replay, 2); }},
       {"tokens/step", [](const auto& c) { return with_interval(c.tokens_per_step.measured, 2); }},
       {"c", of_theory, [](const auto& c) { return timed_cell(c, [](const auto& t) { return fixed(t.c, 2); }); }},
       {"v", of_theory,
        [](const auto& c) { return timed_cell(c, [](const auto& t) { return fixed(verify_factor_of(t), 2); }); }},
       {"ops", of_theory, [](const auto& c) { return fixed(c.operations.measured, 2); }},
       {"Theorem 3.8", of_theory,
        [](const auto& c) { return timed_cell(c, [](const auto& t) { return with_error(t.theorem, t.measured); }); }},
       {"expected", of_theory,
        [](const auto& c) { return timed_cell(c, [](const auto& t) { return with_error(t.expected, t.measured); }); }},
       {"speedup", [](const auto& c) { return timed_cell(c, [](const auto& t) { return fixed(t.measured, 2); }); }},
       {"least p", [](const auto& c) { return p_value(c.smallest_p_value); }},
       {"z", of_theory, [](const auto& c) { return fixed(c.steps_z, 1); }},
       {"ok", [](const auto& c) { return c.passed ? "yes" : "NO"; }}});
}

std::vector<std::string> failures(const Configuration& c) {
  std::vector<std::string> lines;
  const std::string where = fmt::format("{}, T = {}, gamma = {}", c.task, c.temperature, c.gamma);
  for (const Check& check : c.checks) {
    if (check.passed) continue;
    lines.push_back(fmt::format(
        "{}: {} expected {:.6g}, measured {:.6g}{}", where, check.name, check.expected, check.measured,
        check.deviation_standard_errors ? fmt::format(", {:.1f} standard errors", *check.deviation_standard_errors)
                                        : ""));
  }
  for (const UniformityTest& test : c.uniformity) {
    if (test.passed) continue;
    lines.push_back(
        fmt::format("{}: {} of the round is not distributed as the target's own (ordered by {}, p = {:.1e})", where,
                    test.slot == 0 ? "some slot" : fmt::format("slot {}", test.slot),
                    test.order == UniformityTest::Order::by_ratio ? "q/p" : "p", test.p_value.value_or(0)));
  }
  return lines;
}

std::string action_of(const validation::Report& report) {
  const auto all = std::ssize(report.configurations);
  if (report.passed)
    return fmt::format("The algorithm is right: it agrees with the target and with theory in {}.",
                       counted(all, "configuration"));
  const auto wrong = std::ranges::count(report.configurations, false, &Configuration::passed);
  return fmt::format("The algorithm is WRONG in {} of {}: do not use it.", wrong, counted(all, "configuration"));
}

std::string certainty_of(const validation::Report& report) {
  const std::string tokens = fmt::format("{} tokens.", report.tokens);
  if (report.tests > 0)
    return fmt::format("{} {} at level {:.1e}, smallest p {}: a right sampler fails fewer than one run in 1000.", tokens,
                       counted(report.tests, "statistical test"), report.level, p_value(report.smallest_p_value));
  return tokens + (report.planned_tests == 0
                       ? " Greedy decoding leaves nothing to chance: both were compared exactly."
                       : " Too few for any statistical test: the distribution was NOT tested. Give more --tokens.");
}

constexpr char case_legend[] =
    "alpha: mean of sum min(p, q), with its 95% interval: +- half of it, or [its ends]. Tokens per step: Eq. (1) at "
    "alpha, the exact law on this text (replay), and as measured; error: what independent acceptances at alpha miss of "
    "replay in texts of this length. By the clock, in turn with plain decoding: c and v in plain steps; the speedup by "
    "Theorem 3.8 from alpha and c, as expected from replay, c, v and overhead, and as measured, in brackets how far "
    "they are from it. ops: operations per token over plain decoding's. least p: smallest p-value of all tests; "
    "z: steps against the exact law.";

}  // namespace

ordered_json validation_json(const validation::Report& report) {
  ordered_json json = {{"passed", report.passed},
                       {"planned_tests", report.planned_tests},
                       {"test_level", report.level},
                       {"false_alarm_bound", validation::run_level},
                       {"configurations", ordered_json::array()},
                       {"checks", ordered_json::array()},
                       {"distribution_tests", ordered_json::array()}};
  for (const Configuration& c : report.configurations) {
    json["configurations"].push_back(configuration_json(c));
    for (const Check& check : c.checks) json["checks"].push_back(check_json(c, check));
    for (const UniformityTest& test : c.uniformity) json["distribution_tests"].push_back(uniformity_json(c, test));
  }
  return json;
}

Spoken spoken(const validation::Report& report) {
  Spoken answer = said(action_of(report), certainty_of(report));
  std::vector<Configuration> closest = report.configurations;
  std::ranges::stable_sort(closest, {}, [](const Configuration& c) {
    return std::pair(c.passed, c.smallest_p_value.value_or(1));
  });
  answer.table = table_of(closest, true);
  for (const Configuration& c : report.configurations)
    for (const std::string& line : failures(c)) answer.note += wrapped(line, 2) + '\n';
  answer.more = text_of(table_of(report.configurations, false)) + '\n' + wrapped(case_legend) + '\n';
  return answer;
}

}  // namespace specdec::cli
