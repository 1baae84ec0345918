#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/estimate/alternatives.hpp"
#include "analysis/estimate/lookup_curve.hpp"
#include "analysis/planning/request_laws.hpp"
#include "planner/load/asked_capacity.hpp"
#include "planner/model_names.hpp"
#include "planner/number_text.hpp"

namespace specdec::planner {
namespace {

/// Worlds of each alternative.
constexpr std::size_t capacity_worlds = 200;

std::vector<sim::RequestAcceptance> request_acceptances(const std::vector<planning::ConditionalRates>& laws) {
  std::vector<sim::RequestAcceptance> acceptances;
  for (const planning::ConditionalRates& law : laws) acceptances.push_back({law});
  return acceptances;
}

/// What is stated of rounds; null where it is of drafts alone, of which a hit rate says how many there are.
const StatedAcceptance* stated_of_rounds(const Acceptance& acceptance) {
  const bool of_drafts = std::dynamic_pointer_cast<const estimate::LookupCurve>(acceptance.curve) != nullptr;
  return acceptance.stated && !of_drafts ? &*acceptance.stated : nullptr;
}

bool is_one_rate(const Acceptance& acceptance) {
  const StatedAcceptance* const stated = stated_of_rounds(acceptance);
  return stated != nullptr && !stated->typed;
}

std::vector<planning::RequestRate> rates_of(const CapacityQuestion& q, const Acceptance& acceptance,
                                            std::int64_t max_gamma) {
  if (!q.alpha_spread) return acceptance.request_rates;
  if (acceptance.request_rates.size() > 1) {
    throw QuestionError("--alpha-spread is given, but the files hold the rates of single requests");
  }
  const double alpha = acceptance.alpha.value_or(0);
  if (!(alpha > 0 && alpha < 1 && *q.alpha_spread * *q.alpha_spread < alpha * (1 - alpha))) {
    refuse("--alpha-spread", fmt::format("{}", *q.alpha_spread),
           fmt::format("below {}, the largest that a rate of {} can have",
                       brief(std::sqrt(std::max(0.0, alpha * (1 - alpha)))), brief(alpha)));
  }
  return planning::beta_rates(alpha, *q.alpha_spread, max_gamma);
}

/// At least one, the first from context 0 on.
using CurvesByContext = std::vector<planning::ContextAcceptance>;

CurvesByContext curves_of(const Acceptance& acceptance) {
  return acceptance.by_context.empty() ? CurvesByContext{{0, acceptance.curve}} : acceptance.by_context;
}

/// With what others have from a context on.
void add_from_context(double context, std::vector<sim::RequestAcceptance> laws,
                      std::vector<sim::RequestAcceptance>& into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].from_contexts.push_back({std::llround(std::ceil(context)), std::move(laws[i].conditional)});
  }
}

/// The laws of requests, from their acceptance together.
class RequestLaws {
 public:
  RequestLaws(const CapacityQuestion& q, const Acceptance& acceptance, std::int64_t max_gamma)
      : question_(q),
        acceptance_(acceptance),
        max_gamma_(max_gamma),
        rates_(rates_of(q, acceptance, max_gamma)),
        curves_(curves_of(acceptance)) {}

  std::vector<sim::RequestAcceptance> estimate() const {
    return by_context([&](std::size_t part) {
      std::vector<double> tokens = {1};
      for (std::int64_t gamma = 1; gamma <= max_gamma_; ++gamma)
        tokens.push_back(curves_[part].acceptance->tokens_per_step(gamma).value);
      return tokens;
    });
  }

  /// capacity_worlds of each alternative.
  std::vector<sim::CapacityWorld> worlds() const {
    std::vector<estimate::WorldsByAlternative> parts;
    std::size_t alternatives = 1, each = 1;
    for (const planning::ContextAcceptance& part : curves_) {
      parts.emplace_back(
          part.acceptance->draw(max_gamma_, {capacity_worlds, static_cast<std::uint64_t>(question_.seed)}));
      alternatives = std::max(alternatives, parts.back().worlds.size());
      each = std::max(each, parts.back().most());
    }
    std::vector<sim::CapacityWorld> worlds;
    for (std::size_t alternative = 0; alternative < alternatives; ++alternative) {
      const std::size_t first = worlds.size();
      for (std::size_t w = 0; w < each; ++w) {
        const auto tokens_of = [&](std::size_t part) {
          std::vector<double> tokens;
          for (std::size_t gamma = 0; gamma < parts[part].tokens.size(); ++gamma)
            tokens.push_back(parts[part].at(gamma, alternative, w));
          return tokens;
        };
        worlds.push_back({{}, by_context(tokens_of), static_cast<int>(alternative)});
      }
      for (std::size_t w = each; w < capacity_worlds; ++w) worlds.push_back(worlds[first + w % each]);
    }
    return worlds;
  }

 private:
  /// @param tokens_of  tokens per step of gammas 0, 1, ... of a numbered part of the curves
  template <class TokensOf>
  std::vector<sim::RequestAcceptance> by_context(const TokensOf& tokens_of) const {
    std::vector<sim::RequestAcceptance> laws;
    for (std::size_t part = 0; part < curves_.size(); ++part) {
      std::vector<sim::RequestAcceptance> here = with(planning::conditionals_of(tokens_of(part)));
      if (part == 0) {
        laws = std::move(here);
      } else {
        add_from_context(curves_[part].from, std::move(here), laws);
      }
    }
    return laws;
  }

  std::vector<sim::RequestAcceptance> with(const planning::ConditionalRates& pooled) const {
    if (rates_.size() < 2) return request_acceptances({pooled});
    if (!is_one_rate(acceptance_)) return request_acceptances(planning::laws_by_request(rates_, pooled));
    // A world's rate may be too near to 0 or 1 to be spread so far.
    if (*question_.alpha_spread * *question_.alpha_spread >= pooled.front() * (1 - pooled.front()))
      return request_acceptances({pooled});
    std::vector<planning::ConditionalRates> constant;
    for (const planning::RequestRate& rate : planning::beta_rates(pooled.front(), *question_.alpha_spread, max_gamma_))
      constant.push_back({rate.rate});
    return request_acceptances(constant);
  }

  const CapacityQuestion& question_;
  const Acceptance& acceptance_;
  std::int64_t max_gamma_;
  std::vector<planning::RequestRate> rates_;
  CurvesByContext curves_;
};

}  // namespace

void take_replicates(Capacity& c) {
  if (c.worlds.empty()) c.worlds.resize(capacity_worlds);
  const std::size_t replicates = c.simulation.cost->replicates();
  for (std::size_t w = 0; replicates > 0 && w < c.worlds.size(); ++w)
    c.worlds[w].version = 1 + w % capacity_worlds % replicates;
}

void take_laws(const Acceptance& acceptance, std::int64_t max_gamma, const std::vector<std::string>& model_names,
               Capacity& c) {
  const RequestLaws laws(c.question, acceptance, max_gamma);
  c.acceptance = acceptance.text;
  c.is_range = acceptance.stated && acceptance.stated->is_range();
  c.engine = acceptance.engine.value_or("");
  c.simulation.acceptance = laws.estimate();
  c.acceptance_laws = c.simulation.acceptance.size();
  c.worlds = laws.worlds();
  take_sources(acceptance, c);
  if (auto warning = other_model(acceptance.model, model_names)) c.warnings.push_back(*warning);
}

}  // namespace specdec::planner
