#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/acceptance.hpp"
#include "planner/cost.hpp"

/// The gain of a budget of verified drafts, for which the requests of a batch compete.
namespace specdec::planner {

/// Members have the names of the options of `specdec plot verification-budget`.
struct BudgetQuestion {
  /// Whole numbers of requests decoded together, rising, each in [1, 4096].
  std::vector<double> batch = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  /// Tokens in the cache per request, >= 0.
  double context = 0;
  /// Drafted tokens of each request, [1, 64].
  std::int64_t gamma = 7;
  /// Standard deviation of a Beta law of the acceptance over requests, [1e-4, 0.5]; if not given that of the requests
  /// of counters or of a recording, and else 0.1.
  std::optional<double> alpha_spread = {};
};

/// Speedups over plain decoding of the same batch.
struct BudgetPoint {
  std::int64_t batch = 1;
  /// gamma drafts of each request are verified.
  double at_gamma = 1;
  /// The best number of drafts, up to gamma, if it is the same for all; 0 is plain decoding.
  double best_fixed = 1;
  std::int64_t best_gamma = 0;
  /// The best budget of one that knows the rates of its requests (theory::best_budget), if gamma tokens are drafted for
  /// each, as engines do, and at the best number of drafted tokens up to gamma; 0 is plain decoding.
  double budget = 1;
  double best_budget = 1;
  std::int64_t best_drafted = 0;
  /// Simulated: the budget of one that drafts gamma and counts what was accepted of each request, and SGLang's moving
  /// average.
  double counted = 1;
  double moving_average = 1;
  /// Expected tokens per step of a request, and verified drafts, of gamma for all and of `budget`.
  double tokens_at_gamma = 1;
  double tokens_of_budget = 1;
  double drafts_of_budget = 0;
};

struct BatchBudgets {
  BudgetQuestion question = {};
  /// The standard deviation that was taken, and what it is from: "user", "file" or "default".
  double alpha_spread = 0;
  const char* spread_source = "default";
  std::vector<BudgetPoint> points = {};
};

/// The requests of a batch have rates at equal shares of a Beta law, and together the acceptance by position that is
/// given (planning::laws_by_request). A round over n requests and B verified drafts takes
///
///   draft(gamma) + target(1 + B / n) + overhead(gamma)
///
/// with target linear between whole numbers of tokens per request.
/// Source:   docs/theory.md#verification-within-a-budget
/// @throws QuestionError if a member is out of range, the acceptance is 0 or 1, or the cost knows no parts of a round
BatchBudgets batch_budgets(const Acceptance& acceptance, const Cost& cost, const BudgetQuestion& question);

}  // namespace specdec::planner
