#include "planner/checkup/first_acceptance.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "analysis/core/bisection.hpp"
#include "analysis/estimate/request_population.hpp"

namespace specdec::planner {
namespace {

using cost::DraftKind;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Mean of a rate whose log-odds are N(middle, spread^2), by the probit that is nearest to a logit: within .01.
double mean_rate(double middle, double spread) {
  return logistic(middle / std::sqrt(1 + M_PI / 8 * spread * spread));
}

/// mu's mean and deviation, and sigma.
struct Published {
  double mu, deviation, sigma;

  explicit Published(std::optional<DraftKind> kind) {
    const estimate::PopulationPrior prior = estimate::population_prior(kind.value_or(DraftKind::model));
    mu = prior.mean[0];
    deviation = std::sqrt(prior.covariance[0][0]);
    // Where the file does not say the kind, a draft may be far smaller than any that was published.
    constexpr double of_any_draft = 1.25;
    if (!kind) deviation *= of_any_draft;
    sigma = std::exp(prior.mean[1]);
  }
};

/// P(X <= successes) of a binomial law, whose successes need not be whole.
double binomial_tail(double successes, double trials, double probability) {
  if (successes >= trials) return 1;
  return boost::math::ibetac(successes + 1, trials - successes, probability);
}

double as_rare(const FirstDrafts& drafts, const Published& published) {
  const double requests = std::max(1.0, drafts.requests);
  const double spread = std::sqrt(published.deviation * published.deviation + published.sigma * published.sigma / requests);
  const double within = published.sigma * std::sqrt(1 - 1 / requests);
  constexpr int nodes = 240;
  constexpr double reach = 6;
  double sum = 0, weights = 0;
  for (int i = 0; i < nodes; ++i) {
    const double z = reach * (2 * (i + 0.5) / nodes - 1);
    const double weight = std::exp(-z * z / 2);
    weights += weight;
    sum += weight * binomial_tail(drafts.accepted, drafts.rounds, mean_rate(published.mu + spread * z, within));
  }
  return sum / weights;
}

}  // namespace

double as_rare_as_published(const FirstDrafts& drafts, std::optional<DraftKind> kind) {
  return as_rare(drafts, Published(kind));
}

double as_rare_beside(const FirstDrafts& drafts, std::optional<DraftKind> kind, double rate_of_others) {
  Published published(kind);
  published.deviation = 0;
  const double rate = std::clamp(rate_of_others, 0.01, 0.99);
  published.mu = std::log(rate / (1 - rate)) * std::sqrt(1 + M_PI / 8 * published.sigma * published.sigma);
  return as_rare(drafts, published);
}

double least_published(std::optional<DraftKind> kind) {
  constexpr double one_in_100 = 2.326;
  const Published published(kind);
  return mean_rate(published.mu - one_in_100 * published.deviation, published.sigma);
}

std::optional<double> shown_below(const FirstDrafts& drafts, std::optional<DraftKind> kind, double p_value) {
  FirstDrafts few = drafts;
  const auto shows = [&](double accepted) {
    few.accepted = accepted;
    return as_rare_as_published(few, kind) < p_value;
  };
  if (!shows(0)) return std::nullopt;
  double low = 0, high = drafts.rounds;
  for (int i = 0; i < 30 && high - low > 0.5; ++i) {
    const double middle = (low + high) / 2;
    (shows(middle) ? low : high) = middle;
  }
  if (low < 1) return 1 - std::pow(0.9, 1 / drafts.rounds);
  // The rate at which nine of ten counts lie below that.
  const auto nine_of_ten = [&](double rate) { return binomial_tail(std::floor(low), drafts.rounds, rate) >= 0.9; };
  return core::bisected(0, low / drafts.rounds, nine_of_ten, 30).first;
}

}  // namespace specdec::planner
