#include "render/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using validation::MethodResult;

std::string with_interval_or_dash(const std::optional<estimate::Estimate>& value, int digits) {
  return value ? render::with_interval(*value, digits) : "-";
}

/// Also that of a lossy method whose parameters leave nothing to lose, such as lenience 1.
bool keeps_the_law(const MethodResult& r) {
  constexpr double rounding = 1e-12;
  return r.method.lossless() || r.total_variation_per_token < rounding;
}

std::string law_of(const MethodResult& r) {
  return keeps_the_law(r) ? "yes" : fmt::format("TV {:.3f}", r.total_variation_per_token);
}

std::string long_law_of(const MethodResult& r) {
  if (r.method.lossless()) return "yes";
  return keeps_the_law(r) ? "yes, with these parameters"
                          : fmt::format("no, total variation {:.4f} per token", r.total_variation_per_token);
}

/// What the clock says of each method, and what was foretold; empty if nothing was timed.
std::string timing_table(const std::vector<MethodResult>& results) {
  std::vector<MethodResult> rows;
  std::ranges::copy_if(results, std::back_inserter(rows), [](const MethodResult& r) { return r.timing.has_value(); });
  if (rows.empty()) return "";
  const Table table = make_table(
      rows, {{"method",
              {Align::left},
              [](const auto& r) { return r.task.empty() ? name_of(r.method) : "  " + r.task; }},
             {"alpha", [](const auto& r) { return r.acceptance ? fixed(r.acceptance->value, 3) : "-"; }},
             {"c", [](const auto& r) { return fixed(r.timing->c, 3); }},
             {"v", [](const auto& r) { return fixed(verify_factor_of(*r.timing), 2); }},
             {"overhead", [](const auto& r) { return fixed(r.timing->overhead, 3); }},
             {"tokens/s", [](const auto& r) { return fixed(r.timing->measured / r.timing->plain_step_seconds, 1); }},
             {"Theorem 3.8", [](const auto& r) { return with_error(r.timing->theorem, r.timing->measured); }},
             {"expected", [](const auto& r) { return with_error(r.timing->expected, r.timing->measured); }},
             {"measured", [](const auto& r) { return fixed(r.timing->measured, 2); }}});
  return '\n' + text_of(table) +
         wrapped(
             "By the clock, in turn with plain decoding: c, v and overhead in plain steps, v of the rounds that score "
             "most tokens. Speedups: by Theorem 3.8 from alpha and c; expected from the closed form's tokens per step, "
             "c, v and overhead; measured. In brackets how far they are from the measured one.") +
         '\n';
}

/// The table of `compare`, or of the tasks of one method.
/// @param is_brief  without what theory says and what was called
Table table_of(const std::vector<MethodResult>& results, bool by_task, bool is_brief) {
  const ColumnLook of_theory = {.shown = !is_brief};
  std::vector<MethodResult> rows;
  std::copy_if(results.begin(), results.end(), std::back_inserter(rows),
               [&](const MethodResult& r) { return r.task.empty() != by_task; });
  return make_table(
      rows, {{by_task ? "task" : "method",
              {Align::left},
              [=](const auto& r) { return by_task ? r.task : name_of(r.method); }},
             {"lossless", {Align::left}, law_of},
             {"tokens/step", [](const auto& r) { return render::with_interval(r.tokens_per_step, 2); }},
             {"closed", of_theory, [](const auto& r) { return fixed(r.closed_form_tokens_per_step, 2); }},
             {"z", of_theory, [](const auto& r) { return fixed(r.deviation_standard_errors, 1); }},
             {"target", of_theory, [](const auto& r) { return fixed(r.target_calls_per_token, 2); }},
             {"draft", of_theory, [](const auto& r) { return fixed(r.draft_calls_per_token, 2); }},
             {"ops", of_theory, [](const auto& r) { return fixed(r.operations_factor, 2); }},
             {"mem", of_theory, [](const auto& r) { return fixed(r.memory_factor, 2); }},
             {"speedup", [](const auto& r) { return with_interval_or_dash(r.speedup, 2); }}});
}

/// Speedup, or without one tokens per step.
double rate_of(const MethodResult& r) { return r.speedup ? r.speedup->value : r.tokens_per_step.value; }

/// "1.66x plain decoding (1.61 to 1.71), "; empty without a speedup.
std::string speed_text(const MethodResult& r) {
  return r.speedup ? speed_with_range(r.speedup->value, r.speedup->ci95) + ", " : "";
}

/// Policies that know what will be accepted bound the others, and nobody can run them.
bool sees_future(const MethodResult& r) {
  const std::string_view policy = r.method.policy == nullptr ? "" : r.method.policy->name;
  return policy == "oracle" || policy == "known-beta";
}

std::string closed_form_text(const MethodResult& r) {
  if (!r.closed_form_tokens_per_step) return "no closed form.";
  return fmt::format("the closed form gives {} tokens per step{}.", brief(*r.closed_form_tokens_per_step, 3),
                     r.deviation_standard_errors
                         ? fmt::format(", {:+.1f} standard errors away", *r.deviation_standard_errors)
                         : "");
}

/// Lossless methods that are not told apart from the best one, and what losing the law would gain.
std::string certainty_of(const std::vector<MethodResult>& ranked, const MethodResult& best) {
  const auto interval = [](const MethodResult& r) { return r.speedup ? r.speedup->ci95 : r.tokens_per_step.ci95; };
  std::vector<std::string> rivals;
  const MethodResult* lossy = nullptr;
  for (const MethodResult& r : ranked) {
    if (&r == &best || sees_future(r)) continue;
    if (!keeps_the_law(r)) {
      if (lossy == nullptr && rate_of(r) > rate_of(best)) lossy = &r;
    } else if (interval(r) && interval(best) && interval(r)->hi >= interval(best)->lo) {
      rivals.push_back(name_of(r.method));
    }
  }
  constexpr std::size_t named = 3;
  const std::string more = rivals.size() > named ? fmt::format(" and {} more", rivals.size() - named) : "";
  if (rivals.size() > named) rivals.resize(named);
  std::string text = rivals.empty() ? "Sure: the interval of no other lossless method reaches it."
                                    : fmt::format("Not told apart from {}{}; more --tokens would.",
                                                  fmt::join(rivals, ", "), more);
  if (lossy != nullptr)
    text += fmt::format(" Faster, but not lossless: {}, {} at a total variation of {} per token.",
                        name_of(lossy->method), factor_text(rate_of(*lossy)), brief(lossy->total_variation_per_token, 2));
  return text;
}

/// Plain decoding, the fastest lossy method, and the lossless ones that can be run.
std::vector<MethodResult> shown_of(const std::vector<MethodResult>& ranked) {
  std::vector<MethodResult> lossless, shown;
  bool has_lossy = false;
  for (const MethodResult& r : ranked) {
    if (r.method.is_plain() || (!keeps_the_law(r) && !has_lossy)) {
      has_lossy = has_lossy || !keeps_the_law(r);
      shown.push_back(r);
    } else if (keeps_the_law(r) && !sees_future(r)) {
      lossless.push_back(r);
    }
  }
  shown.insert(shown.end(), lossless.begin(), lossless.end());
  return shown;
}

constexpr char method_legend[] =
    "lossless: yes, or the mean total variation per token between the law from which it came and the target's. "
    "closed: tokens per step by the rule's closed form at the prefixes that were met; z: the measured ones from it, "
    "in standard errors. target, draft: calls per token; ops, mem: operations, and weights read, per token over plain "
    "decoding's. speedup: over plain decoding, at these costs.";

}  // namespace

std::string with_error(const std::optional<double>& speedup, double measured) {
  return speedup ? fmt::format("{:.2f} ({:+.0f}%)", *speedup, 100 * (*speedup / measured - 1)) : "-";
}

std::optional<double> verify_factor_of(const validation::MethodTiming& timing) {
  return timing.verification.empty() ? std::nullopt : std::optional(timing.verification.back().factor);
}

Spoken spoken(const planner::Simulation& simulation) {
  const std::vector<MethodResult>& results = simulation.results;
  const MethodResult& r = results.front();
  Spoken answer = said(fmt::format("{}: {}{} tokens per step.", name_of(r.method), speed_text(r),
                                   with_range(r.tokens_per_step.value, r.tokens_per_step.ci95)),
                       fmt::format("Lossless: {}. {} tokens in {}; {}", long_law_of(r), r.counters.tokens,
                                   counted(r.sequences, "sequence"), closed_form_text(r)));
  if (results.size() > 1) answer.table = table_of(results, true, true);
  std::string text = fmt::format("{} steps of {}\n", r.counters.steps, counted(r.sequences, "sequence"));
  const auto line = [&](const char* what, const std::string& value) {
    text += fmt::format("  {:<24}{}\n", what, value);
  };
  line("lossless", long_law_of(r));
  line("tokens per step", render::with_interval(r.tokens_per_step, 3));
  if (r.closed_form_tokens_per_step) {
    line("  by the closed form",
         fixed(r.closed_form_tokens_per_step, 3) +
             (r.deviation_standard_errors ? fmt::format(", {:+.1f} standard errors away", *r.deviation_standard_errors)
                                          : ""));
  }
  if (r.acceptance) line("acceptance of a draft", render::with_interval(*r.acceptance, 3));
  if (const std::vector<double> shares = r.acceptance_by_position(); !shares.empty())
    line("  stays at position", fmt::format("{:.3f}", fmt::join(shares, " ")));
  for (const validation::PlannedTree& tree : simulation.trees)
    line("tree",
         fmt::format(
             "{} nodes, {} levels{}", tree.parents.size(), tree.depth,
             tree.expected_tokens ? fmt::format("; planned tokens per step {:.3f}", *tree.expected_tokens) : ""));
  line("target calls per token", fixed(r.target_calls_per_token, 3));
  line("draft calls per token", fixed(r.draft_calls_per_token, 3));
  if (r.operations_factor) line("operations factor", fixed(r.operations_factor, 3));
  if (r.memory_factor) line("memory factor", fixed(r.memory_factor, 3));
  if (r.speedup) line("speedup", render::with_interval(*r.speedup, 3));
  text += timing_table(results);
  if (results.size() > 1)
    text += fmt::format("\n{}\n{}\n", text_of(table_of(results, true, false)), wrapped(method_legend));
  answer.more = text;
  return answer;
}

Spoken spoken(const planner::Comparison& comparison) {
  std::vector<MethodResult> ranked;
  for (const MethodResult& r : comparison.results)
    if (r.task.empty()) ranked.push_back(r);
  std::ranges::stable_sort(ranked, std::greater<>(), rate_of);
  Spoken answer;
  const auto best = std::ranges::find_if(ranked, [](const MethodResult& r) { return keeps_the_law(r) && !sees_future(r); });
  if (best != ranked.end()) {
    answer.decision.action = fmt::format("Use {}: {}{} tokens per step, lossless.", name_of(best->method),
                                         speed_text(*best), brief(best->tokens_per_step.value, 3));
    answer.decision.certainty = certainty_of(ranked, *best);
  } else {
    answer.decision.action = "No lossless method was compared.";
  }
  answer.table = table_of(shown_of(ranked), false, true);
  answer.more = fmt::format("{}\n{}\n{}", text_of(table_of(comparison.results, false, false)), wrapped(method_legend),
                            timing_table(comparison.results));
  return answer;
}

}  // namespace specdec::render
