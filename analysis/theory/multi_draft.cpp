#include "analysis/theory/multi_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/math/tools/roots.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

constexpr double most_sequences = 1e7;
constexpr std::int64_t most_drafted_tokens = 20;

void require_inputs(std::string_view function, const core::TargetDistribution& p, const core::DraftDistribution& q,
                    std::int64_t k) {
  core::require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
  core::require_in(function, "k", k, 1, most_drafts);
}

double sum_of(std::span<const double> row) {
  return core::sum_of_terms(row.size(), [&](std::size_t x) { return row[x]; });
}

std::vector<double> scaled_to_one(std::span<const double> row) {
  std::vector<double> scaled(row.begin(), row.end());
  const double sum = sum_of(row);
  for (double& value : scaled) value /= sum;
  return scaled;
}

/// 1 - (1 - x)^n.
double at_least_once(double x, std::int64_t n) {
  return -std::expm1(static_cast<double>(n) * std::log1p(-std::min(x, 1.0)));
}

MultiDraftLaw empty_law(std::size_t vocab, std::int64_t k) {
  MultiDraftLaw law;
  law.by_draft.resize(static_cast<std::size_t>(k));
  law.accepted.resize(vocab);
  law.corrected.resize(vocab);
  return law;
}

/// Replaces p by norm(max(0, p - q)). Returns the mass that was left; p is unchanged if that is 0.
double leave_residual(std::vector<double>& p, std::span<const double> q) {
  const double mass = core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - q[x]); });
  if (mass > 0)
    for (std::size_t x = 0; x < p.size(); ++x) p[x] = std::max(0.0, p[x] - q[x]) / mass;
  return mass;
}

/// Calls accepted(i, x, P(draft i is the accepted one and is x)) for i = 0..k-1 and returns the correction, including
/// the mass that is left.
template <class Accepted>
std::vector<double> reject_recursively(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                       std::int64_t k, Accepted accepted) {
  std::vector<double> residual(p.probabilities().begin(), p.probabilities().end());
  double reached = 1;  // P(draft i is examined)
  for (std::int64_t i = 0; i < k && reached > 0; ++i) {
    for (std::size_t x = 0; x < p.size(); ++x) {
      if (const double mass = std::min(residual[x], q[x]); mass > 0) accepted(i, x, reached * mass);
    }
    reached *= leave_residual(residual, q.probabilities());
  }
  for (double& value : residual) value *= reached;
  return residual;
}

/// One draft after the other, each without those rejected before it.
class WithoutReplacement {
 public:
  explicit WithoutReplacement(MultiDraftLaw& law) : law_(law) {}

  void visit(std::size_t i, const std::vector<double>& target, const std::vector<double>& draft, double reached) {
    if (i == law_.by_draft.size() || draft.empty()) {
      for (std::size_t x = 0; x < target.size(); ++x) law_.corrected[x] += reached * target[x];
      return;
    }
    for (std::size_t x = 0; x < target.size(); ++x) {
      const double mass = reached * std::min(target[x], draft[x]);
      law_.accepted[x] += mass;
      law_.by_draft[i] += mass;
    }
    std::vector<double> residual = target;
    if (leave_residual(residual, draft) == 0) return;
    for (std::size_t x = 0; x < target.size(); ++x) {
      if (draft[x] > target[x]) visit(i + 1, residual, without(draft, x), reached * (draft[x] - target[x]));
    }
  }

 private:
  /// Empty if nothing is left to draw.
  static std::vector<double> without(std::vector<double> draft, std::size_t token) {
    draft[token] = 0;
    return sum_of(draft) > 0 ? scaled_to_one(draft) : std::vector<double>();
  }

  MultiDraftLaw& law_;
};

MultiDraftLaw recursive_rejection_without_replacement(const core::TargetDistribution& p,
                                                      const core::DraftDistribution& q, std::int64_t k) {
  const auto drafted = static_cast<double>(p.size());
  double sequences = 1;
  for (std::int64_t i = 0; i < k; ++i) sequences *= std::max(1.0, drafted - static_cast<double>(i));
  if (!(sequences <= most_sequences))
    throw std::domain_error(
        fmt::format("recursive_rejection: {} drafts without replacement from {} tokens are {:.3g} sequences, but must "
                    "be at most {:.0e}",
                    k, p.size(), sequences, most_sequences));
  MultiDraftLaw law = empty_law(p.size(), k);
  WithoutReplacement(law).visit(0, scaled_to_one(p.probabilities()), scaled_to_one(q.probabilities()), 1);
  return law;
}

double overlap_at(const core::TargetDistribution& p, const core::DraftDistribution& q, double rho) {
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return std::min(p[x] / rho, q[x]); });
}

/// (1 - (1 - b)^k) / b: how often a draft that would be accepted is taken.
double taken_per_overlap(double b, std::int64_t k) { return b > 0 ? at_least_once(b, k) / b : static_cast<double>(k); }

/// Corrected probabilities are >= 0 up to rounding.
bool is_lossless(double b, double rho, std::int64_t k) { return taken_per_overlap(b, k) <= rho * (1 + 4e-16); }

/// max_H Q(H)^k - P(H) over the initial segments H of the tokens in descending order of q/p.
double transport_rejection_with(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k) {
  std::vector<std::size_t> tokens;
  for (std::size_t x = 0; x < p.size(); ++x)
    if (q[x] > 0) tokens.push_back(x);
  std::sort(tokens.begin(), tokens.end(), [&](std::size_t a, std::size_t b) { return q[a] / p[a] > q[b] / p[b]; });
  core::CompensatedSum target;
  core::CompensatedSum draft;
  double rejection = 0;
  for (const std::size_t x : tokens) {
    target.add(p[x]);
    draft.add(q[x]);
    rejection = std::max(rejection, std::pow(std::min(draft.value(), 1.0), static_cast<double>(k)) - target.value());
  }
  return rejection;
}

/// The same over all sets H of the tokens that can be drafted; sets are bit masks.
double transport_rejection_without(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                   std::int64_t k) {
  std::vector<double> target;
  std::vector<double> draft;
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (q[x] == 0) continue;
    target.push_back(p[x]);
    draft.push_back(q[x]);
  }
  core::require_in("transport_acceptance", "tokens with q > 0, drawn without replacement,",
                   static_cast<std::int64_t>(draft.size()), 1, most_drafted_tokens);
  const std::size_t tokens = draft.size();
  const auto drawn = static_cast<int>(std::min(k, static_cast<std::int64_t>(tokens)));
  const std::size_t sets = std::size_t{1} << tokens;
  std::vector<double> target_mass(sets, 0.0);
  std::vector<double> draft_mass(sets, 0.0);
  for (std::size_t set = 1; set < sets; ++set) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(set));
    target_mass[set] = target_mass[set & (set - 1)] + target[lowest];
    draft_mass[set] = draft_mass[set & (set - 1)] + draft[lowest];
  }
  // P(the first |S| drafts are the set S), summed over the choices of the last one; then over the sets within each set.
  std::vector<double> within(sets, 0.0);
  within[0] = 1;
  for (std::size_t set = 1; set < sets; ++set) {
    if (std::popcount(set) > drawn) continue;
    for (std::size_t x = 0; x < tokens; ++x) {
      const std::size_t before = set & ~(std::size_t{1} << x);
      if (before != set) within[set] += within[before] * draft[x] / draft_mass[(sets - 1) & ~before];
    }
  }
  for (std::size_t set = 0; set < sets; ++set)
    if (std::popcount(set) != drawn) within[set] = 0;
  for (std::size_t x = 0; x < tokens; ++x)
    for (std::size_t set = 0; set < sets; ++set)
      if (set >> x & 1) within[set] += within[set & ~(std::size_t{1} << x)];
  double rejection = 0;
  for (std::size_t set = 0; set < sets; ++set) rejection = std::max(rejection, within[set] - target_mass[set]);
  return rejection;
}

/// P(i of n chains draft x) for i = 0..n.
std::vector<double> copies_of(double probability, std::int64_t n) {
  std::vector<double> copies(static_cast<std::size_t>(n) + 1, 0.0);
  copies[0] = 1;
  for (std::size_t chain = 1; chain < copies.size(); ++chain) {
    for (std::size_t i = chain; i > 0; --i) copies[i] = copies[i] * (1 - probability) + copies[i - 1] * probability;
    copies[0] *= 1 - probability;
  }
  return copies;
}

}  // namespace

core::AcceptanceRate MultiDraftLaw::acceptance() const {
  return core::AcceptanceRate::from_masses(sum_of(accepted), sum_of(corrected));
}

std::vector<double> MultiDraftLaw::output() const {
  std::vector<double> law(accepted.size());
  for (std::size_t x = 0; x < law.size(); ++x) law[x] = accepted[x] + corrected[x];
  return law;
}

MultiDraftLaw recursive_rejection(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k,
                                  Replacement replacement) {
  require_inputs("recursive_rejection", p, q, k);
  if (replacement == Replacement::without) return recursive_rejection_without_replacement(p, q, k);
  MultiDraftLaw law = empty_law(p.size(), k);
  law.corrected = reject_recursively(p, q, k, [&](std::int64_t i, std::size_t x, double mass) {
    law.accepted[x] += mass;
    law.by_draft[static_cast<std::size_t>(i)] += mass;
  });
  return law;
}

double recursive_acceptance_of(const core::TargetDistribution& p, const core::DraftDistribution& q,
                               std::span<const std::int64_t> drafts, Replacement replacement) {
  constexpr std::string_view function = "recursive_acceptance_of";
  require_inputs(function, p, q, static_cast<std::int64_t>(drafts.size()));
  std::vector<double> target(p.probabilities().begin(), p.probabilities().end());
  std::vector<double> draft(q.probabilities().begin(), q.probabilities().end());
  double rejected = 1;
  for (const std::int64_t token : drafts)
    core::require_in(function, "draft", token, std::int64_t{0}, static_cast<std::int64_t>(p.size()) - 1);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const auto x = static_cast<std::size_t>(drafts[i]);
    rejected *= std::max(0.0, draft[x] - target[x]) / (draft[x] > 0 ? draft[x] : 1);
    if (rejected == 0 || i + 1 == drafts.size() || leave_residual(target, draft) == 0) break;
    if (replacement == Replacement::with) continue;
    draft[x] = 0;
    const double left = sum_of(draft);
    if (!(left > 0)) break;
    for (double& probability : draft) probability /= left;
  }
  return 1 - rejected;
}

double k_seq_least_rho(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k) {
  require_inputs("k_seq_least_rho", p, q, k);
  const double most = static_cast<double>(k);
  // 1 - (1 - b)^k - rho b, computed from the complements, since the terms may agree in all their digits.
  const auto f = [&](double rho) {
    const double missing =
        core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - rho * q[x]); });
    const double rejected =
        core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, q[x] - p[x] / rho); });
    return missing - std::pow(rejected, most);
  };
  const double at_least = f(1);
  if (overlap_at(p, q, 1) == 0 || at_least <= 0) return 1;
  const double at_most = f(most);
  if (at_most >= 0) return most;
  // If f is nearly flat on one side of the root, interpolation may approach it from the other side alone.
  boost::math::tools::eps_tolerance<double> is_narrow;
  std::uintmax_t interpolations = 20;
  const auto [below, above] =
      boost::math::tools::toms748_solve(f, 1.0, most, at_least, at_most, is_narrow, interpolations);
  return is_narrow(below, above) ? above : boost::math::tools::bisect(f, below, above, is_narrow).second;
}

MultiDraftLaw k_seq(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k, double rho) {
  require_inputs("k_seq", p, q, k);
  core::require_in("k_seq", "rho", rho, 1, std::numeric_limits<double>::max());
  const double b = overlap_at(p, q, rho);
  if (b > 0 && !is_lossless(b, rho, k))
    core::require_in("k_seq", "rho", rho, k_seq_least_rho(p, q, k), std::numeric_limits<double>::max());
  MultiDraftLaw law = empty_law(p.size(), k);
  double first = b;
  for (double& probability : law.by_draft) {
    probability = first;
    first *= 1 - std::min(b, 1.0);
  }
  const double taken = taken_per_overlap(b, k);
  for (std::size_t x = 0; x < p.size(); ++x) {
    law.accepted[x] = std::min(p[x] / rho, q[x]) * taken;
    law.corrected[x] = std::max(0.0, p[x] - law.accepted[x]);
  }
  return law;
}

core::AcceptanceRate transport_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                          std::int64_t k, Replacement replacement) {
  require_inputs("transport_acceptance", p, q, k);
  const double rejection =
      replacement == Replacement::with ? transport_rejection_with(p, q, k) : transport_rejection_without(p, q, k);
  return core::AcceptanceRate::from_rejection(std::min(rejection, 1.0));
}

core::AcceptanceRate distinct_drafts_acceptance(const core::TargetDistribution& p,
                                                std::span<const std::int64_t> drafts) {
  std::set<std::int64_t> named;
  core::CompensatedSum accepted;
  for (const std::int64_t token : drafts) {
    core::require_in("distinct_drafts_acceptance", "draft", token, 0, static_cast<std::int64_t>(p.size()) - 1);
    if (!named.insert(token).second)
      throw std::domain_error(fmt::format("distinct_drafts_acceptance: draft {} is named twice", token));
    accepted.add(p[static_cast<std::size_t>(token)]);
  }
  // The tokens between the named ones.
  core::CompensatedSum rejected;
  std::size_t first = 0;
  const auto add_up_to = [&](std::size_t end) {
    rejected.add(core::sum_of_terms(end - first, [&](std::size_t i) { return p[first + i]; }));
    first = end + 1;
  };
  for (const std::int64_t token : named) add_up_to(static_cast<std::size_t>(token));
  if (first < p.size()) add_up_to(p.size());
  return core::AcceptanceRate::from_masses(accepted.value(), rejected.value());
}

std::vector<double> surviving_chains(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                     std::int64_t k) {
  require_inputs("surviving_chains", p, q, k);
  std::vector<double> survive(static_cast<std::size_t>(k) + 1, 0.0);
  const auto accepted = [&](std::int64_t i, std::size_t x, double mass) {
    // An earlier copy of x was not rejected: rejected tokens have no residual. Later chains are still independent.
    const std::vector<double> later = copies_of(std::min(q[x], 1.0), k - i - 1);
    for (std::size_t copies = 0; copies < later.size(); ++copies) survive[copies + 1] += mass * later[copies];
  };
  survive[0] = sum_of(reject_recursively(p, q, k, accepted));
  return survive;
}

double chains_expected_tokens(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k,
                              std::int64_t gamma) {
  require_inputs("chains_expected_tokens", p, q, k);
  core::require_in("chains_expected_tokens", "gamma", gamma, 0, longest_chain);
  std::vector<std::vector<double>> survive;  // by number of chains alive
  for (std::int64_t m = 1; m <= k; ++m) survive.push_back(surviving_chains(p, q, m));
  std::vector<double> alive(static_cast<std::size_t>(k) + 1, 0.0);  // law of the number of chains alive at a level
  alive.back() = 1;
  core::CompensatedSum tokens;
  tokens.add(1);
  for (std::int64_t level = 0; level < gamma; ++level) {
    std::vector<double> next(alive.size(), 0.0);
    double any = 0;
    for (std::size_t m = 1; m < alive.size(); ++m) {
      for (std::size_t s = 1; s <= m; ++s) {
        const double mass = alive[m] * survive[m - 1][s];
        next[s] += mass;
        any += mass;
      }
    }
    tokens.add(any);
    alive = std::move(next);
  }
  return tokens.value();
}

}  // namespace specdec::theory
