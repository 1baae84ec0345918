#include "sim/synthetic_worlds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/variates.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view world_function = "synthetic_trace";

/// Worlds are drawn from sequence numbers that no text has.
RandomStream world_stream(std::uint64_t seed, std::uint64_t number) { return {seed, std::uint64_t{1} << 63U | number}; }

void require_valid(const PairWorld& law) {
  core::require_in(world_function, "alpha", law.alpha, 0, 1);
  core::require_in(world_function, "vocab", law.vocab, 2, std::int64_t{1} << 24U);
  core::require_in(world_function, "contexts", law.contexts, 1, std::int64_t{1} << 20U);
  core::require_in(world_function, "vocab times contexts", law.vocab * law.contexts, 2, std::int64_t{1} << 27U);
}

[[noreturn]] void refuse_alpha(double alpha, double least) {
  throw std::domain_error(fmt::format("{}: alpha is {}, but must be in [{:.4g}, 1]", world_function, alpha, least));
}

/// log sum_x exp(logits[x]).
double log_normaliser(std::span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - highest);
  return highest + std::log(sum);
}

double overlap_of_logits(std::span<const float> p, std::span<const float> q) {
  const double p_normaliser = log_normaliser(p);
  const double q_normaliser = log_normaliser(q);
  core::CompensatedSum sum;
  for (std::size_t x = 0; x < p.size(); ++x) sum.add(std::exp(std::min(p[x] - p_normaliser, q[x] - q_normaliser)));
  return sum.value();
}

double overlap_of_probabilities(std::span<const float> p, std::span<const float> q) {
  core::CompensatedSum sum;
  for (std::size_t x = 0; x < p.size(); ++x) sum.add(std::min(p[x], q[x]));
  return sum.value();
}

/// The mean of value(context), summed in the order of the contexts.
template <class Value>
double mean_over_contexts(std::int64_t contexts, std::int64_t threads, const Value& value) {
  std::vector<double> values(static_cast<std::size_t>(contexts));
  core::for_each_index(contexts, threads, [&](std::int64_t context, std::int64_t) {
    values[static_cast<std::size_t>(context)] = value(context);
  });
  core::CompensatedSum sum;
  for (const double v : values) sum.add(v);
  return std::min(1.0, sum.value() / static_cast<double>(contexts));
}

/// The scale at which the decreasing alpha_of(scale) is alpha; 0 if rounding leaves alpha_of(0) below it.
template <class AlphaOf>
double scale_for(double alpha, const AlphaOf& alpha_of) {
  if (alpha >= alpha_of(0)) return 0;
  constexpr double largest = 0x1p20;
  double high = 1;
  while (high < largest && alpha_of(high) > alpha) high *= 2;
  const double least = alpha_of(high);
  if (least > alpha) refuse_alpha(alpha, least);
  const auto excess = [&](double scale) { return alpha_of(scale) - alpha; };
  std::uintmax_t evaluations = 60;
  const auto bracket =
      boost::math::tools::toms748_solve(excess, 0.0, high, boost::math::tools::eps_tolerance<double>(40), evaluations);
  return (bracket.first + bracket.second) / 2;
}

void fill_dirichlet(std::span<double> row, double shape, Variates variates) {
  for (double& x : row) x = variates.log_gamma(shape);
  const double highest = *std::max_element(row.begin(), row.end());
  core::CompensatedSum sum;
  for (double& x : row) {
    x = std::exp(x - highest);
    sum.add(x);
  }
  for (double& x : row) x /= sum.value();
}

}  // namespace

SyntheticWorld::SyntheticWorld(const PairWorld& law, traces::RowSpace space)
    : vocab_(law.vocab), contexts_(law.contexts), space_(space) {
  require_valid(law);
  target_.resize(static_cast<std::size_t>(vocab_ * contexts_));
  draft_.resize(target_.size());
  cumulative_.resize(target_.size());
}

SyntheticWorld::SyntheticWorld(const LogitNoiseLaw& law, std::uint64_t seed, std::uint64_t number, std::int64_t threads)
    : SyntheticWorld(law, traces::RowSpace::logits) {
  core::require_in(world_function, "exponent", law.exponent, 0, 1000);
  const RandomStream stream = world_stream(seed, number);
  std::vector<float> noise(target_.size());
  core::for_each_index(contexts_, threads, [&](std::int64_t context, std::int64_t) {
    Variates variates(stream, context);
    const double share = std::exp(variates.normal() / 2);
    for (std::int64_t v = 0; v < vocab_; ++v) {
      const auto x = static_cast<std::size_t>(context * vocab_ + v);
      target_[x] = static_cast<float>(variates.normal() - law.exponent * std::log(static_cast<double>(v + 1)));
      noise[x] = static_cast<float>(share * variates.normal());
    }
    accumulate(context);
  });
  const auto alpha_of = [&](double scale) {
    return mean_over_contexts(contexts_, threads, [&](std::int64_t context) {
      const auto begin = static_cast<std::size_t>(context * vocab_);
      for (std::size_t x = begin; x < begin + static_cast<std::size_t>(vocab_); ++x)
        draft_[x] = static_cast<float>(target_[x] + scale * noise[x]);
      return overlap_of_logits(target_row(context), draft_row(context));
    });
  };
  alpha_ = alpha_of(scale_for(law.alpha, alpha_of));
}

SyntheticWorld::SyntheticWorld(const DirichletLaw& law, std::uint64_t seed, std::uint64_t number, std::int64_t threads)
    : SyntheticWorld(law, traces::RowSpace::probabilities) {
  core::require_in(world_function, "concentration", law.concentration, 1e-6, 1e9);
  const RandomStream stream = world_stream(seed, number);
  const double shape = law.concentration / static_cast<double>(vocab_);
  // Each row has a round of its own. draft_ holds the row that is mixed in until its weight is known.
  core::for_each_index(contexts_, threads, [&](std::int64_t context, std::int64_t) {
    std::vector<double> row(static_cast<std::size_t>(vocab_));
    for (std::vector<float>* const rows : {&target_, &draft_}) {
      fill_dirichlet(row, shape, Variates(stream, 2 * context + (rows == &draft_ ? 1 : 0)));
      std::transform(row.begin(), row.end(), rows->begin() + context * vocab_,
                     [](double x) { return static_cast<float>(x); });
    }
    accumulate(context);
  });
  const auto overlap = [&](std::int64_t context) {
    return overlap_of_probabilities(target_row(context), draft_row(context));
  };
  const double least = mean_over_contexts(contexts_, threads, overlap);
  if (law.alpha < least) refuse_alpha(law.alpha, least);
  const double weight = law.alpha >= 1 ? 0 : (1 - law.alpha) / (1 - least);
  for (std::size_t x = 0; x < draft_.size(); ++x)
    draft_[x] = static_cast<float>((1 - weight) * target_[x] + weight * draft_[x]);
  alpha_ = mean_over_contexts(contexts_, threads, overlap);
}

void SyntheticWorld::accumulate(std::int64_t context) {
  const std::span<const float> p = target_row(context);
  const double highest = *std::max_element(p.begin(), p.end());
  double* cumulative = cumulative_.data() + context * vocab_;
  double sum = 0;
  for (const float x : p) *cumulative++ = sum += space_ == traces::RowSpace::logits ? std::exp(x - highest) : x;
}

Token SyntheticWorld::sample(std::int64_t context, double u) const {
  const auto begin = cumulative_.begin() + context * vocab_;
  const auto end = begin + vocab_;
  const double total = *(end - 1);
  // If u times the total rounds to the total, the last possible token.
  const auto last_possible = std::lower_bound(begin, end, total);
  const auto found = std::upper_bound(begin, end, u * total);
  return static_cast<Token>(std::min(found, last_possible) - begin);
}

}  // namespace specdec::sim
