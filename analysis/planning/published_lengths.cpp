#include "analysis/planning/published_lengths.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analysis/cost/preset_names.hpp"
#include "analysis/estimate/group_shrinkage.hpp"
#include "analysis/planning/preset_files.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

using estimate::GroupValue;
using nlohmann::json;

/// Kinds of drafts that figures were published of, and the methods of each.
struct HeadKind {
  std::string_view name;
  cost::DraftKind kind;
  std::set<std::string_view> methods;
};

const std::array<HeadKind, 3>& head_kinds() {
  static const std::array<HeadKind, 3> kinds = {
      {{"eagle3", cost::DraftKind::eagle, {"eagle3"}},
       {"mtp", cost::DraftKind::mtp, {"mtp"}},
       {"parallel", cost::DraftKind::parallel, {"dflash", "dfly", "dspark"}}}};
  return kinds;
}

/// A member of a setting, or else that of its file.
template <class Value>
std::optional<Value> member(const json& setting, const json& document, const char* key) {
  const json& holder = setting.contains(key) ? setting : document;
  if (!holder.contains(key) || holder.at(key).is_null()) return std::nullopt;
  return holder.at(key).get<Value>();
}

PublishedLength read_length(const json& setting, const json& document) {
  PublishedLength read;
  read.method = member<std::string>(setting, document, "method").value();
  read.target_model = setting.at("target");
  read.draft_model = setting.at("draft");
  read.task = setting.at("task");
  read.temperature = member<double>(setting, document, "temperature");
  for (const auto& [gamma, length] : setting.at("lengths").items()) {
    read.tokens_per_step.emplace(std::strtoll(gamma.c_str(), nullptr, 10), length.get<double>());
  }
  const char* const how = setting.contains("where") ? "where" : "measured";
  read.where = member<std::string>(setting, document, how).value();
  read.source = member<std::string>(setting, document, "source").value();
  return read;
}

std::vector<PublishedLength> read_all_lengths() {
  std::vector<PublishedLength> all;
  for (const core::EmbeddedFile& file : published_length_files()) {
    const json document = json::parse(file.content);
    for (const json& setting : document.at("settings")) all.push_back(read_length(setting, document));
  }
  return all;
}

/// The log-odds of the one rate that gives the length nearest to a gamma.
double log_odds_near(const PublishedLength& figure, std::int64_t gamma) {
  const auto distance = [&](const auto& point) { return std::pair(std::abs(point.first - gamma), point.first); };
  const auto nearest = std::min_element(figure.tokens_per_step.begin(), figure.tokens_per_step.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const core::AcceptanceRate rate = theory::alpha_from_acceptance_length(nearest->second, nearest->first);
  return std::log(rate.alpha() / rate.rejection());
}

/// Figures of a kind by target and deployment.
using Deployments = std::map<std::string, std::vector<const PublishedLength*>>;
using Targets = std::map<std::string, Deployments>;

Targets targets_of(const HeadKind& kind) {
  Targets targets;
  for (const PublishedLength& figure : published_lengths()) {
    if (kind.methods.count(figure.method) == 0) continue;
    targets[figure.target_model][figure.draft_model + ' ' + figure.source].push_back(&figure);
  }
  return targets;
}

/// The parts of the log-odds of a kind near a gamma.
struct Spreads {
  double task_variance = 0, deployment_variance = 0;
  /// In the order of the targets.
  std::vector<GroupValue> targets = {};
};

double pooled_task_variance(const Targets& targets, std::int64_t gamma) {
  double squares = 0, degrees = 0;
  for (const auto& [target, deployments] : targets) {
    for (const auto& [deployment, figures] : deployments) {
      double mean = 0;
      for (const PublishedLength* figure : figures) mean += log_odds_near(*figure, gamma);
      mean /= static_cast<double>(figures.size());
      for (const PublishedLength* figure : figures) squares += std::pow(log_odds_near(*figure, gamma) - mean, 2);
      degrees += static_cast<double>(figures.size()) - 1;
    }
  }
  return squares / degrees;
}

Spreads spreads_of(const Targets& targets, std::int64_t gamma) {
  Spreads spreads;
  spreads.task_variance = pooled_task_variance(targets, gamma);
  std::vector<std::vector<GroupValue>> strata;
  for (const auto& [target, deployments] : targets) {
    std::vector<GroupValue>& stratum = strata.emplace_back();
    for (const auto& [deployment, figures] : deployments) {
      const auto count = static_cast<double>(figures.size());
      double sum = 0;
      for (const PublishedLength* figure : figures) sum += log_odds_near(*figure, gamma);
      stratum.push_back({sum / count, spreads.task_variance / count});
    }
  }
  spreads.deployment_variance = estimate::variance_between(strata);
  for (const std::vector<GroupValue>& stratum : strata) {
    double weights = 0, sum = 0;
    for (const GroupValue& deployment : stratum) {
      const double weight = 1 / (deployment.variance + spreads.deployment_variance);
      weights += weight;
      sum += weight * deployment.value;
    }
    spreads.targets.push_back({sum / weights, 1 / weights});
  }
  return spreads;
}

PriorLength length_of(const estimate::NormalMixture& log_odds, std::int64_t gamma) {
  const auto tokens = [&](double value) {
    return theory::expected_tokens(core::AcceptanceRate(1 / (1 + std::exp(-value))), gamma);
  };
  const estimate::Interval ends = log_odds.central95();
  return {gamma, tokens(log_odds.quantile(0.5)), {tokens(ends.lo), tokens(ends.hi)}};
}

void add_figures(const Deployments& deployments, PublishedPrior& prior) {
  for (const auto& [deployment, figures] : deployments) {
    ++prior.deployments;
    for (const PublishedLength* figure : figures) {
      prior.figures.push_back(figure);
      if (std::find(prior.sources.begin(), prior.sources.end(), figure->source) == prior.sources.end()) {
        prior.sources.push_back(figure->source);
      }
    }
  }
}

/// The priors of a kind: of any target, then of each target.
std::vector<PublishedPrior> priors_of(const HeadKind& kind) {
  const Targets targets = targets_of(kind);
  PublishedPrior any;
  any.name = any.kind = kind.name;
  any.targets_of_kind = targets.size();
  for (const auto& [target, deployments] : targets) add_figures(deployments, any);
  any.figures_of_kind = any.figures.size();
  any.deployments_of_kind = any.deployments;
  std::vector<PublishedPrior> priors = {any};
  for (const auto& [target, deployments] : targets) {
    PublishedPrior& own = priors.emplace_back(any);
    own.name += '-' + target;
    own.target_model = target;
    own.figures.clear();
    own.sources.clear();
    own.deployments = 0;
    add_figures(deployments, own);
  }
  for (const std::int64_t gamma : prior_gammas) {
    const Spreads spreads = spreads_of(targets, gamma);
    const estimate::GroupShrinkage pooled(spreads.targets);
    const double within = spreads.task_variance + spreads.deployment_variance;
    for (std::size_t i = 0; i < priors.size(); ++i) {
      const estimate::NormalMixture law = i == 0 ? pooled.new_group() : pooled.group(i - 1);
      priors[i].lengths.push_back(length_of(law.with_variance(within), gamma));
      if (gamma != prior_gammas[0]) continue;
      priors[i].task_spread = std::sqrt(spreads.task_variance);
      priors[i].deployment_spread = std::sqrt(spreads.deployment_variance);
      priors[i].target_spread = pooled.spread();
    }
  }
  return priors;
}

std::vector<PublishedPrior> all_priors() {
  std::vector<PublishedPrior> all;
  for (const HeadKind& kind : head_kinds()) {
    for (PublishedPrior& prior : priors_of(kind)) all.push_back(std::move(prior));
  }
  return all;
}

}  // namespace

std::span<const PublishedLength> published_lengths() {
  static const std::vector<PublishedLength> all = read_all_lengths();
  return all;
}

cost::DraftKind kind_of(const PublishedPrior& prior) {
  const auto& kinds = head_kinds();
  return std::find_if(kinds.begin(), kinds.end(), [&](const HeadKind& one) { return one.name == prior.kind; })->kind;
}

std::span<const PublishedPrior> published_priors() {
  static const std::vector<PublishedPrior> all = all_priors();
  return all;
}

const PublishedPrior* published_prior(std::string_view name) {
  const std::string key = cost::preset_key(name);
  for (const PublishedPrior& prior : published_priors()) {
    if (cost::preset_key(prior.name) == key) return &prior;
  }
  return nullptr;
}

const PublishedPrior* prior_of(cost::DraftKind kind, const std::optional<std::string>& target) {
  const PublishedPrior* of_any = nullptr;
  for (const HeadKind& heads : head_kinds()) {
    if (heads.kind == kind) of_any = published_prior(heads.name);
  }
  if (of_any == nullptr || !target) return of_any;
  const PublishedPrior* const own = published_prior(of_any->name + '-' + *target);
  return own != nullptr ? own : of_any;
}

}  // namespace specdec::planning
