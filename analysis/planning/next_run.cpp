#include "analysis/planning/next_run.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/planning/draft_worlds.hpp"
#include "analysis/worlds/run_value.hpp"

namespace specdec::planning {
namespace {

constexpr std::uint32_t noise_stream = 52;
/// Options that are the best in a smaller share of worlds are not run.
constexpr double least_share_of_best = 0.02;

/// [option]: true if it is the best in some share of the worlds; plain decoding is always a candidate.
std::vector<bool> candidates_of(const worlds::Table& speedups, double min_gain) {
  std::vector<double> best_in(speedups.options.size());
  for (std::size_t world = 0; world < speedups.worlds(); ++world) {
    std::size_t best = 0;
    double most = 1 + min_gain;
    for (std::size_t option = 1; option < speedups.options.size(); ++option) {
      if (speedups.options[option][world] <= most) continue;
      most = speedups.options[option][world];
      best = option;
    }
    best_in[best] += 1;
  }
  std::vector<bool> candidates;
  for (const double worlds : best_in)
    candidates.push_back(worlds >= least_share_of_best * static_cast<double>(speedups.worlds()));
  candidates.front() = true;
  return candidates;
}

/// The logarithms of what a run measures in every world, with its error.
std::vector<double> measured(const std::vector<double>& figures, double error, std::uint64_t figure) {
  std::vector<double> logs;
  for (std::size_t world = 0; world < figures.size(); ++world) {
    const cost::ReplicateDraws draws(0, noise_stream, static_cast<std::uint32_t>(world));
    logs.push_back(std::log(figures[world]) + error * draws.standard_normal(figure));
  }
  return logs;
}

}  // namespace

RunValues run_values(const NextRunQuestion& question) {
  if (question.points.empty()) throw std::invalid_argument("run_values: points is empty");
  core::require_in("run_values", "run_error", question.run_error, core::least_positive, 1);
  core::require_in("run_values", "output_tokens", question.output_tokens, core::least_positive, core::largest_double);
  const DraftWorlds draft(question.draft, question.plan);
  std::vector<worlds::PricedWorlds> priced;
  std::vector<worlds::Table> speedups;
  for (const PlanPoint& point : question.points) {
    priced.push_back(draft.price(point.batch, point.context));
    speedups.push_back(priced.back().speedups);
  }
  const double min_gain = question.plan.min_gain;
  const worlds::RunValues values(speedups, min_gain);
  RunValues answer{values.regret(), {}};
  for (std::size_t at = 0; at < priced.size(); ++at) {
    const std::vector<bool> candidates = candidates_of(speedups[at], min_gain);
    const std::size_t count = question.lacks_plain_run ? 1 : candidates.size();
    for (std::size_t option = 0; option < count; ++option) {
      if (!candidates[option]) continue;
      const std::vector<double>&rounds = priced[at].rounds.options[option], &tokens = priced[at].tokens.options[option];
      std::vector<std::vector<double>> outcomes = {measured(rounds, question.run_error, 0)};
      if (question.tells_acceptance && option > 0) outcomes.push_back(measured(tokens, question.run_error, 1));
      const double saved = values.saved_by(outcomes);
      const double per_token = worlds::spread_of(rounds, speedups[at].alternative).middle /
                               worlds::spread_of(tokens, speedups[at].alternative).middle;
      const double minutes = server_start_minutes + benchmark_waves * question.output_tokens * per_token / 60;
      if (saved < regret_that_matters / 10) continue;
      const PlanPoint& point = question.points[at];
      answer.runs.push_back(
          {draft.options().gammas[option], point.batch, point.context, minutes, answer.regret - saved});
    }
  }
  const auto worth = [&](const NextRun& run) { return (answer.regret - run.regret_after) / run.minutes; };
  std::stable_sort(answer.runs.begin(), answer.runs.end(),
                   [&](const NextRun& a, const NextRun& b) { return worth(a) > worth(b); });
  return answer;
}

}  // namespace specdec::planning
