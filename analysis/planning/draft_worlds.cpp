#include "analysis/planning/draft_worlds.hpp"

#include <algorithm>
#include <boost/math/tools/roots.hpp>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {

DraftWorlds::DraftWorlds(const DeploymentDraft& draft, const DeploymentQuestion& question) : draft_(&draft) {
  std::vector<std::int64_t> gammas;
  if (draft.tree) {
    gammas = {draft.tree->depth};
  } else {
    for (std::int64_t gamma = 1; gamma <= question.max_gamma; ++gamma) gammas.push_back(gamma);
  }
  extrapolated_.push_back(false);
  for (const std::int64_t gamma : gammas) {
    try {
      const estimate::TokensPerStep tokens = draft.acceptance->tokens_per_step(gamma);
      options_.gammas.push_back(gamma);
      options_.full_accepts.push_back(tokens.full_accepts);
      extrapolated_.push_back(tokens.extrapolated);
    } catch (const std::domain_error& error) {
      limit_ = error.what();
      break;
    }
  }
  const std::int64_t last = options_.gammas.back();
  by_context_.push_back({0, draft.acceptance->draw(last, question.draws)});
  for (const ContextAcceptance& part : draft.by_context)
    by_context_.push_back({part.from, part.acceptance->draw(last, question.draws)});
}

std::size_t DraftWorlds::find(std::int64_t gamma) const {
  return static_cast<std::size_t>(std::find(options_.gammas.begin(), options_.gammas.end(), gamma) -
                                  options_.gammas.begin());
}

cost::RoundPoint DraftWorlds::point(std::size_t option, double batch, double context) const {
  return {options_.gammas[option], batch, context, options_.full_accepts[option]};
}

const estimate::TokenWorlds& DraftWorlds::tokens_at(double context) const {
  const estimate::TokenWorlds* found = &by_context_.front().tokens;
  for (const AtContext& part : by_context_)
    if (part.from <= context) found = &part.tokens;
  return *found;
}

worlds::PricedWorlds DraftWorlds::price(double batch, double context) const {
  return worlds::price(tokens_at(context), *draft_->cost, options_, batch, context);
}

PriceBasis DraftWorlds::basis(double batch, double context) const {
  const cost::RoundCost& cost = *draft_->cost;
  if (cost.extrapolates({0, batch, context, 0})) return PriceBasis::extrapolated;
  if (cost.origin() == cost::CostOrigin::stated) return PriceBasis::stated;
  if (cost.origin() == cost::CostOrigin::modelled) return PriceBasis::modelled;
  for (std::size_t option = 1; option < options_.gammas.size(); ++option)
    if (!cost.extrapolates(point(option, batch, context))) return PriceBasis::measured;
  return options_.gammas.size() > 1 && cost.replicates() > 0 ? PriceBasis::extrapolated : PriceBasis::measured;
}

std::vector<bool> DraftWorlds::measured(double batch, double context, std::size_t options) const {
  const bool plain_was = !draft_->cost->extrapolates({0, batch, context, 0});
  std::vector<bool> was_measured;
  for (std::size_t option = 0; option < options; ++option) {
    was_measured.push_back(plain_was && !extrapolated_[option] &&
                           !draft_->cost->extrapolates(point(option, batch, context)));
  }
  return was_measured;
}

std::optional<double> break_even_alpha(const cost::RoundCost& cost, double batch, double context, std::size_t gammas) {
  const double plain = cost.round({0, batch, context, 0}).total();
  double smallest = 1;
  for (std::size_t place = 1; place < gammas; ++place) {
    const auto gamma = static_cast<std::int64_t>(place);
    const auto round = [&](double full_accepts) { return cost.round({gamma, batch, context, full_accepts}).total(); };
    const double none = round(0);
    if (none <= plain) return 0;
    const bool same = round(1) == none;
    const auto gain = [&](double alpha) {
      const core::AcceptanceRate rate(alpha);
      const double time = same ? none : round(rate.power(gamma));
      return theory::expected_tokens(rate, gamma) * plain - time;
    };
    const double highest = gain(smallest);
    if (highest <= 0) continue;
    std::uintmax_t steps = 100;
    const auto root = boost::math::tools::toms748_solve(gain, 0.0, smallest, plain - none, highest,
                                                        boost::math::tools::eps_tolerance<double>(50), steps);
    smallest = (root.first + root.second) / 2;
  }
  if (smallest == 1) return std::nullopt;
  return smallest;
}

}  // namespace specdec::planning
