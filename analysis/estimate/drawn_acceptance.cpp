#include "analysis/estimate/drawn_acceptance.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"

namespace specdec::estimate {

DrawnAcceptance::DrawnAcceptance(TokenWorlds drawn, std::shared_ptr<const AcceptanceCurve> source)
    : drawn_(std::move(drawn)), source_(std::move(source)) {
  if (drawn_.worlds() == 0) throw std::invalid_argument("DrawnAcceptance: there are no worlds");
  for (std::size_t gamma = 0; gamma < drawn_.tokens.size(); ++gamma) {
    std::vector<double> sorted = drawn_.tokens[gamma];
    std::sort(sorted.begin(), sorted.end());
    TokensPerStep tokens;
    if (source_) tokens = source_->tokens_per_step(static_cast<std::int64_t>(gamma));
    tokens.value = core::sorted_quantile(sorted, 0.5);
    tokens.ci95 = {core::sorted_quantile(sorted, 0.025), core::sorted_quantile(sorted, 0.975)};
    tokens.bracket.reset();
    const double before = gamma == 0 ? 0.0 : values_.back().value;
    if (!source_) tokens.full_accepts = std::clamp(tokens.value - before, 0.0, 1.0);
    values_.push_back(tokens);
  }
}

TokensPerStep DrawnAcceptance::tokens_per_step(std::int64_t gamma) const {
  core::require_in("DrawnAcceptance::tokens_per_step", "gamma", gamma, 0,
                   static_cast<std::int64_t>(values_.size()) - 1);
  return values_[static_cast<std::size_t>(gamma)];
}

TokenWorlds DrawnAcceptance::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  std::vector<std::size_t> worlds(drawn_.worlds() == 1 ? 1 : options.worlds);
  for (std::size_t i = 0; i < worlds.size(); ++i) worlds[i] = i % drawn_.worlds();
  TokenWorlds all = chosen_worlds(drawn_, worlds);
  all.tokens.resize(std::min(all.tokens.size(), static_cast<std::size_t>(max_gamma) + 1));
  return all;
}

TokenWorlds chosen_worlds(const TokenWorlds& from, std::span<const std::size_t> worlds) {
  TokenWorlds taken;
  taken.alternative.assign(worlds.size(), 0);
  for (const std::vector<double>& of_gamma : from.tokens) {
    std::vector<double>& its = taken.tokens.emplace_back();
    for (const std::size_t world : worlds) its.push_back(of_gamma[world]);
  }
  return taken;
}

}  // namespace specdec::estimate
