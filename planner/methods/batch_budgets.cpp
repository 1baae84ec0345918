#include "planner/methods/batch_budgets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/planning/request_laws.hpp"
#include "analysis/theory/verification_budget.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "sim/batch_verification.hpp"
#include "sim/validation/batch_rules.hpp"

namespace specdec::planner {
namespace {

constexpr double largest_batch = 4096;
constexpr double usual_spread = 0.1;
constexpr std::int64_t fewest_simulated_rounds = 200;
constexpr std::int64_t fewest_simulated_steps = 20'000;
constexpr std::int64_t longer_than_simulated = 1 << 20;

void require_budget_question(const BudgetQuestion& q) {
  double last = 0;
  for (const double batch : q.batch) {
    if (!(1 <= batch && batch <= largest_batch && batch == std::floor(batch) && batch > last))
      refuse("--batch", brief(batch), fmt::format("whole numbers that rise, of 1 to {}", largest_batch));
    last = batch;
  }
  if (q.batch.empty()) refuse("--batch", "", "at least one number");
  if (!(1 <= q.gamma && q.gamma <= 64)) refuse("--gamma", fmt::format("{}", q.gamma), "in [1, 64]");
  if (!(q.context >= 0 && std::isfinite(q.context))) refuse("--context", brief(q.context), "0 or more");
  if (q.alpha_spread && !(1e-4 <= *q.alpha_spread && *q.alpha_spread <= 0.5))
    refuse("--alpha-spread", brief(*q.alpha_spread), "in [0.0001, 0.5]");
}

/// The rounds of one batch: its requests' laws, and what a round of it costs.
class Batch {
 public:
  Batch(const std::vector<planning::ConditionalRates>& laws, const Cost& cost, const BudgetQuestion& q)
      : laws_(laws), gamma_(q.gamma) {
    double full_accepts = 0;
    for (const planning::ConditionalRates& law : laws) {
      std::vector<double>& survival = survivals_.emplace_back();
      double product = 1;
      for (const double rate : law) survival.push_back(product *= rate);
      full_accepts += product / static_cast<double>(laws.size());
    }
    for (std::int64_t g = 0; g <= q.gamma; ++g) {
      const cost::RoundPoint at{g, size(), q.context, g > 0 ? full_accepts : 0};
      if (!cost.rounds->parts_known(at))
        throw QuestionError("verification-budget needs the time of the target's pass by itself, which runs do not tell");
      rounds_.push_back(cost.rounds->round(at));
    }
    price_ = [this](std::int64_t, std::int64_t drafted, std::int64_t verified) { return seconds(drafted, verified); };
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  BudgetPoint point() const {
    BudgetPoint point;
    point.batch = std::ssize(laws_);
    theory::VerificationBudget best;
    for (std::int64_t g = 0; g <= gamma_; ++g) {
      point.at_gamma = over_plain(tokens(g), seconds(g, g * point.batch));
      if (point.at_gamma > point.best_fixed) {
        point.best_fixed = point.at_gamma;
        point.best_gamma = g;
      }
      best = theory::best_budget(first_drafts(g), [&](std::int64_t drafts) { return seconds(g, drafts); });
      point.budget = over_plain(best.tokens, best.cost);
      if (point.budget > point.best_budget) {
        point.best_budget = point.budget;
        point.best_drafted = g;
      }
    }
    point.tokens_at_gamma = tokens(gamma_) / size();
    point.tokens_of_budget = best.tokens / size();
    point.drafts_of_budget = static_cast<double>(best.drafts) / size();
    validation::CountingBudgetRule counting(gamma_, price_);
    point.counted = simulated(counting);
    validation::MovingAverageRule moving_average(gamma_);
    point.moving_average = simulated(moving_average);
    return point;
  }

 private:
  double size() const { return static_cast<double>(laws_.size()); }

  double seconds(std::int64_t drafted, std::int64_t verified) const {
    const auto n = std::ssize(laws_);
    const auto whole = static_cast<std::size_t>(verified / n);
    const double part = static_cast<double>(verified % n) / size();
    const double next = part > 0 ? rounds_[whole + 1].target - rounds_[whole].target : 0;
    const cost::RoundTime& drafts = rounds_[static_cast<std::size_t>(drafted)];
    return rounds_[whole].target + part * next + drafts.draft + drafts.overhead;
  }

  theory::Survivals first_drafts(std::int64_t gamma) const {
    theory::Survivals first = survivals_;
    for (std::vector<double>& survival : first) survival.resize(static_cast<std::size_t>(gamma));
    return first;
  }

  /// Expected tokens of a round that verifies so many drafts of each.
  double tokens(std::int64_t gamma) const {
    double sum = size();
    for (const std::vector<double>& survival : survivals_)
      for (std::int64_t k = 0; k < gamma; ++k) sum += survival[static_cast<std::size_t>(k)];
    return sum;
  }

  double over_plain(double tokens, double seconds) const { return tokens / seconds * rounds_.front().total() / size(); }

  double simulated(sim::BatchRule& rule) const {
    std::vector<sim::BatchedText> texts;
    for (const planning::ConditionalRates& law : laws_)
      texts.push_back({.sequence = std::ssize(texts),
                       .tokens = longer_than_simulated,
                       .depths = gamma_,
                       .acceptance = law,
                       .group = std::ssize(texts)});
    std::int64_t left = std::max(fewest_simulated_rounds, fewest_simulated_steps / std::ssize(laws_));
    double tokens = 0, seconds = 0;
    for (const sim::BatchedRun& run :
         sim::decode_in_batches(texts, std::ssize(texts), rule, price_, 1, [&] { return left-- == 0; })) {
      tokens += static_cast<double>(run.tokens);
      seconds += run.cost;
    }
    return over_plain(tokens, seconds);
  }

  const std::vector<planning::ConditionalRates>& laws_;
  std::int64_t gamma_;
  theory::Survivals survivals_;
  std::vector<cost::RoundTime> rounds_;  // of 0 to gamma drafts each
  sim::BatchCost price_;
};

void choose_spread(const Acceptance& acceptance, BatchBudgets& budgets) {
  if (budgets.question.alpha_spread) {
    budgets.alpha_spread = *budgets.question.alpha_spread;
    budgets.spread_source = "user";
  } else if (!acceptance.request_rates.empty()) {
    budgets.alpha_spread = std::sqrt(planning::variance_between(acceptance.request_rates));
    budgets.spread_source = "file";
  } else {
    budgets.alpha_spread = usual_spread;
  }
}

}  // namespace

BatchBudgets batch_budgets(const Acceptance& acceptance, const Cost& cost, const BudgetQuestion& question) {
  require_budget_question(question);
  BatchBudgets budgets{.question = question};
  choose_spread(acceptance, budgets);
  const planning::ConditionalRates pooled = planning::pooled_conditionals(*acceptance.curve, question.gamma);
  const double alpha = pooled.front(), spread = budgets.alpha_spread;
  if (!(alpha > 0 && alpha < 1 && spread * spread < alpha * (1 - alpha)))
    refuse("--alpha-spread", brief(spread),
           fmt::format("of a law of rates of mean {}, the acceptance of the first draft", brief(alpha)));
  for (const double batch : question.batch) {
    const auto requests = static_cast<std::int64_t>(batch);
    const std::vector<planning::RequestRate> rates =
        spread > 0 ? planning::beta_rates(alpha, spread, 0, requests)
                   : std::vector(static_cast<std::size_t>(requests), planning::RequestRate{alpha});
    const std::vector<planning::ConditionalRates> laws = planning::laws_by_request(rates, pooled);
    budgets.points.push_back(Batch(laws, cost, question).point());
  }
  return budgets;
}

}  // namespace specdec::planner
