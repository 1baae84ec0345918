#include "analysis/estimate/population_posterior.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "analysis/cost/replicate_draws.hpp"

namespace specdec::estimate {
namespace {

using cost::ReplicateDraws;
using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr std::uint32_t proposal_stream = 50, world_stream = 51;
/// Degrees of freedom of proposals, whose tails are wider than those of what they stand for.
constexpr int freedom = 5;
/// Draws of a proposal that adapts, and how often it does.
constexpr std::size_t adapting_draws = 300;
constexpr int adapting_rounds = 4;
/// The prior weight of drops at depths that the evidence covers, of all together, and the most depths of them.
constexpr double drops_within = 0.05;
constexpr std::int64_t most_depths = 6;
/// Drops of log-odds, equally likely.
constexpr double drops[] = {1.2, 2.5, 4.5};
/// The share of the prior's weight on a wider law, and how much wider it is.
constexpr double share_wide = 0.2, times_wider = 2.5;

/// A law of (mu, ln sigma, delta) by mean and covariance.
class Law3 {
 public:
  Law3(const Vector3d& mean, const Matrix3d& covariance) : mean_(mean), factor_(covariance.llt().matrixL()) {
    const Eigen::Matrix2d shapes = covariance.bottomRightCorner<2, 2>();
    shape_factor_ = shapes.llt().matrixL();
  }

  Vector3d at(const Vector3d& standard) const { return mean_ + factor_ * standard; }
  /// (ln sigma, delta) alone, from the last two.
  Vector3d shape_at(const Vector3d& standard) const {
    Vector3d place = mean_;
    place.tail<2>() += shape_factor_ * standard.tail<2>();
    return place;
  }
  double log_normal(const Vector3d& x) const { return -squares(x) / 2 - std::log(factor_.diagonal().prod()); }
  double log_normal_of_shape(const Vector3d& x) const {
    const Eigen::Vector2d off = shape_factor_.triangularView<Eigen::Lower>().solve((x - mean_).tail<2>());
    return -off.squaredNorm() / 2 - std::log(shape_factor_.diagonal().prod());
  }
  double log_student(const Vector3d& x) const {
    return -(freedom + 3) / 2.0 * std::log1p(squares(x) / freedom) - std::log(factor_.diagonal().prod());
  }

 private:
  double squares(const Vector3d& x) const {
    return factor_.triangularView<Eigen::Lower>().solve(x - mean_).squaredNorm();
  }

  Vector3d mean_;
  Matrix3d factor_;
  Eigen::Matrix2d shape_factor_;
};

double log_mixed(double narrow, double wide) {
  const double most = std::max(narrow, wide);
  return most + std::log((1 - share_wide) * std::exp(narrow - most) + share_wide * std::exp(wide - most));
}

/// The prior's densities: mostly as it is, the rest wider.
class PriorLaw {
 public:
  explicit PriorLaw(const PopulationPrior& prior)
      : narrow_(mean_of(prior), covariance_of(prior)), wide_(mean_of(prior), times_wider * times_wider * covariance_of(prior)) {}

  const Law3& drawn(double uniform) const { return uniform < share_wide ? wide_ : narrow_; }
  double log(const Vector3d& x) const { return log_mixed(narrow_.log_normal(x), wide_.log_normal(x)); }
  double log_of_shape(const Vector3d& x) const {
    return log_mixed(narrow_.log_normal_of_shape(x), wide_.log_normal_of_shape(x));
  }

 private:
  static Vector3d mean_of(const PopulationPrior& prior) { return Vector3d::Map(prior.mean.data()); }
  static Matrix3d covariance_of(const PopulationPrior& prior) {
    Matrix3d covariance;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k)
        covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k)) = prior.covariance[i][k];
    return covariance;
  }

  Law3 narrow_, wide_;
};

/// The random numbers of one draw, the same for every proposal.
struct StandardDraw {
  Vector3d normals;
  /// Of Student's law: normals times this.
  double scale = 1;
  double uniform = 0.5;
};

std::vector<StandardDraw> standard_draws(std::size_t count, std::uint64_t seed) {
  std::vector<StandardDraw> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ReplicateDraws draws(seed, proposal_stream, static_cast<std::uint32_t>(i));
    for (Eigen::Index k = 0; k < 3; ++k) all[i].normals[k] = draws.standard_normal(static_cast<std::uint64_t>(k));
    const double last = draws.standard_normal(3);
    const double squares = 2 * (draws.exponential(4) + draws.exponential(5)) + last * last;
    all[i].scale = std::sqrt(freedom / squares);
    all[i].uniform = draws.uniform(6);
  }
  return all;
}

struct Samples {
  std::vector<PopulationLaw> laws;
  std::vector<double> log_weights;

  void add(const PopulationLaw& law, double log_weight) {
    laws.push_back(law);
    log_weights.push_back(std::isfinite(log_weight) ? log_weight : -std::numeric_limits<double>::max());
  }
  double largest() const { return *std::max_element(log_weights.begin(), log_weights.end()); }
  /// Of all laws, with a sum of 1.
  std::vector<double> weights(double temper = 1) const {
    std::vector<double> weights;
    double sum = 0;
    for (const double one : log_weights) sum += weights.emplace_back(std::exp(temper * (one - largest_)));
    for (double& weight : weights) weight /= sum;
    return weights;
  }
  void complete() { largest_ = largest(); }
  /// ln of the mean weight.
  double log_evidence() const {
    double sum = 0;
    for (const double one : log_weights) sum += std::exp(one - largest_);
    return largest_ + std::log(sum / static_cast<double>(laws.size()));
  }

 private:
  double largest_ = 0;
};

double effective_draws(const std::vector<double>& weights) {
  return 1 / std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
}

Vector3d place_of(const PopulationLaw& law) { return {law.mu, std::log(law.sigma), law.delta}; }
PopulationLaw law_at(const Vector3d& place, const Cliff& cliff) {
  return {place[0], std::exp(place[1]), place[2], cliff};
}

/// Draws of populations with one drop, or with none.
class DropSampler {
 public:
  DropSampler(const PopulationEvidence& evidence, const PriorLaw& prior, const std::vector<StandardDraw>& draws,
              const Cliff& cliff)
      : evidence_(evidence),
        prior_(prior),
        draws_(draws),
        cliff_(cliff),
        anchor_(evidence.anchor()),
        most_(static_cast<double>(anchor_.gamma) + 1) {}

  /// The shape by the prior, mu by the anchor.
  Samples from_anchor(std::size_t count) const {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
      const StandardDraw& draw = draws_[i];
      PopulationLaw law = law_at(prior_.drawn(draw.uniform).shape_at(draw.normals), cliff_);
      double log_weight = log_prior_of(law) - prior_.log_of_shape(place_of(law));
      double tokens = std::exp(anchor_.log_tokens + anchor_.error * draw.normals[0]);
      // Reflected at the ends.
      if (tokens > most_) tokens = 2 * most_ - tokens;
      if (tokens < 1) tokens = 2 - tokens;
      law.solve(anchor_.gamma, inside(tokens));
      if (!evidence_.is_one_length()) {
        log_weight += evidence_.log_likelihood(law) + draw.normals[0] * draw.normals[0] / 2 + std::log(anchor_.error);
      }
      samples.add(law, is_met(law) ? log_weight : -std::numeric_limits<double>::infinity());
    }
    samples.complete();
    return samples;
  }

  Samples from_student(const Law3& proposal, std::size_t count) const {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
      const Vector3d place = proposal.at(draws_[i].scale * draws_[i].normals);
      const PopulationLaw law = law_at(place, cliff_);
      samples.add(law, log_prior_of(law) + std::log(law.slope(anchor_.gamma)) + evidence_.log_likelihood(law) -
                           proposal.log_student(place));
    }
    samples.complete();
    return samples;
  }

  /// After the proposal has come near.
  Samples adapted(std::size_t count) const {
    Samples samples = from_anchor(adapting_draws);
    for (int round = 0; round < adapting_rounds; ++round) {
      const bool is_last = round + 1 == adapting_rounds;
      samples = from_student(about(samples), is_last ? count : adapting_draws);
    }
    return samples;
  }

 private:
  double inside(double tokens) const {
    const double margin = 1e-6 * most_;
    return std::clamp(tokens, 1 + margin, most_ - margin);
  }
  /// Requests that differ beyond measure give no length but those of all or none accepted.
  static bool is_met(const PopulationLaw& law) {
    constexpr double nearly = 0.99;
    return std::abs(law.mu) < nearly * PopulationLaw::largest_mu;
  }
  /// Per ln(tokens per step): that of the law's shape where it makes what was measured. How much is accepted is what
  /// was measured, as far as that is known: a prior of it would draw few rounds away from their own figure.
  double log_prior_of(PopulationLaw law) const {
    const double slope = law.solve(anchor_.gamma, inside(std::exp(anchor_.log_tokens)));
    return is_met(law) ? prior_.log(place_of(law)) - std::log(slope) : -std::numeric_limits<double>::infinity();
  }
  /// The mean and covariance of samples; tempered where few of them weigh.
  static Law3 about(const Samples& samples) {
    constexpr double enough = 30;
    double temper = 1;
    std::vector<double> weights = samples.weights();
    while (effective_draws(weights) < enough && temper > 1e-3) weights = samples.weights(temper *= 0.7);
    Vector3d mean = Vector3d::Zero();
    for (std::size_t i = 0; i < weights.size(); ++i) mean += weights[i] * place_of(samples.laws[i]);
    Matrix3d covariance = Matrix3d::Identity() * 1e-6;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Vector3d off = place_of(samples.laws[i]) - mean;
      covariance += weights[i] * off * off.transpose();
    }
    constexpr double wider = 1.3;
    return {mean, wider * covariance};
  }

  const PopulationEvidence& evidence_;
  const PriorLaw& prior_;
  const std::vector<StandardDraw>& draws_;
  Cliff cliff_;
  LengthObservation anchor_;
  double most_;
};

struct WeightedCliff {
  Cliff cliff;
  double weight = 1;
};

/// The drops on which the evidence says something, and none.
std::vector<WeightedCliff> cliffs_within(const PopulationEvidence& evidence) {
  const std::int64_t within = evidence.longest() - 1;
  std::vector<WeightedCliff> all = {{{}, 1}};
  if (evidence.is_one_length() || within < 1) return all;
  const std::int64_t depths = std::min(within, most_depths);
  const double here = drops_within / static_cast<double>(depths);
  for (std::int64_t i = 0; i < depths; ++i) {
    const std::int64_t depth = depths < 2 ? within : 1 + i * (within - 1) / (depths - 1);
    for (const double drop : drops) all.push_back({{depth, drop}, here / std::size(drops)});
  }
  for (std::size_t i = 1; i < all.size(); ++i) all.front().weight -= all[i].weight;
  return all;
}

/// Draws of all drops, with the shares of each.
Samples weighted_draws(const PopulationEvidence& evidence, const PriorLaw& prior, const DrawOptions& options) {
  // A third is about what effective draws are of them.
  const std::size_t count = evidence.is_one_length() ? 2 * options.worlds : std::max<std::size_t>(options.worlds, 500);
  const std::vector<StandardDraw> draws = standard_draws(std::max(count, adapting_draws), options.seed);
  Samples all;
  double best = -std::numeric_limits<double>::infinity();
  for (const auto& [cliff, weight] : cliffs_within(evidence)) {
    const DropSampler sampler(evidence, prior, draws, cliff);
    if (cliff.depth > 0) {
      constexpr double negligible = -7;
      if (sampler.from_anchor(100).log_evidence() + std::log(weight) < best + negligible) continue;
    }
    const Samples its = evidence.is_one_length() ? sampler.from_anchor(count) : sampler.adapted(count);
    best = std::max(best, its.log_evidence() + std::log(weight));
    for (std::size_t i = 0; i < its.laws.size(); ++i) all.add(its.laws[i], its.log_weights[i] + std::log(weight));
  }
  all.complete();
  return all;
}

/// [world]: the place of each in [0, 1), one in each of equal parts, in random order.
std::vector<double> stratified(const DrawOptions& options) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t world = 0; world < options.worlds; ++world)
    order.emplace_back(ReplicateDraws(options.seed, world_stream, static_cast<std::uint32_t>(world)).uniform(0), world);
  std::sort(order.begin(), order.end());
  std::vector<double> places(options.worlds);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const ReplicateDraws draws(options.seed, world_stream, static_cast<std::uint32_t>(rank));
    places[order[rank].second] = (static_cast<double>(rank) + draws.uniform(1)) / static_cast<double>(options.worlds);
  }
  return places;
}

std::vector<PopulationLaw> resampled(const Samples& samples, const DrawOptions& options) {
  std::vector<double> up_to = samples.weights();
  std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
  std::vector<PopulationLaw> laws;
  for (const double place : stratified(options)) {
    const auto found = std::upper_bound(up_to.begin(), up_to.end(), place);
    laws.push_back(samples.laws[std::min<std::size_t>(static_cast<std::size_t>(found - up_to.begin()),
                                                      samples.laws.size() - 1)]);
  }
  return laws;
}

std::vector<PopulationLaw> by_prior(const PriorLaw& prior, const DrawOptions& options) {
  std::vector<PopulationLaw> laws;
  for (const StandardDraw& draw : standard_draws(options.worlds, options.seed))
    laws.push_back(law_at(prior.drawn(draw.uniform).at(draw.normals), {}));
  return laws;
}

/// Of the first laws, the one to which the evidence is most likely.
const PopulationLaw& nearest_of(const std::vector<PopulationLaw>& laws, const PopulationEvidence& evidence) {
  constexpr std::size_t tried = 50;
  std::size_t nearest = 0;
  double most = evidence.log_likelihood(laws.front());
  for (std::size_t i = 1; i < std::min(tried, laws.size()); ++i) {
    const double its = evidence.log_likelihood(laws[i]);
    if (its > most) std::tie(nearest, most) = std::pair(i, its);
  }
  return laws[nearest];
}

}  // namespace

std::vector<PopulationLaw> draw_populations(PopulationEvidence& evidence, const DrawOptions& options) {
  const PriorLaw prior(evidence.prior());
  std::vector<PopulationLaw> laws;
  if (evidence.empty()) {
    laws = by_prior(prior, options);
  } else {
    laws = resampled(weighted_draws(evidence, prior, options), options);
    if (evidence.allow_for(nearest_of(laws, evidence))) laws = resampled(weighted_draws(evidence, prior, options), options);
  }
  for (std::size_t world = 0; world < laws.size(); ++world) {
    const ReplicateDraws draws(options.seed, world_stream, static_cast<std::uint32_t>(world));
    evidence.drift(laws[world], draws.standard_normal(4));
  }
  if (evidence.empty()) return laws;
  // Nothing is told of a drop where the drafts of the evidence end.
  for (std::size_t world = 0; world < laws.size(); ++world) {
    const ReplicateDraws draws(options.seed, world_stream, static_cast<std::uint32_t>(world));
    if (laws[world].cliff.depth > 0 || draws.uniform(2) >= evidence.prior().cliff) continue;
    laws[world].cliff = {evidence.longest(), drops[draws.below(3, std::size(drops))]};
  }
  return laws;
}

}  // namespace specdec::estimate
