#include "cli/figures/deployment_defaults.hpp"

#include <algorithm>
#include <cstddef>

#include "cli/plan_grammar.hpp"

namespace specdec::cli {
namespace {

template <class Target, class Value, class Shown>
void take(std::vector<Assumption>& taken, std::string name, Target& target, const Value& value, const Shown& shown) {
  if (target) return;
  target = value;
  taken.push_back({std::move(name), shown, "default"});
}
template <class Target, class Value>
void take(std::vector<Assumption>& taken, std::string name, Target& target, const Value& value) {
  take(taken, std::move(name), target, value, value);
}

}  // namespace

std::vector<Assumption> default_deployment(PlanOptions& o) {
  std::vector<Assumption> taken;
  if (!o.cost_files.empty() || !o.bench.empty()) return taken;
  take(taken, "hardware", o.roofline.hardware, "h100-sxm");
  if (o.model) return taken;
  take(taken, "model", o.model, "llama-3.3-70b");
  take(taken, "tensor_parallel", o.roofline.options.tensor_parallel, 4);
  // Another draft has the acceptance that is given, or its prior.
  if (o.draft().model || o.draft().kind) return taken;
  take(taken, "draft model", o.draft().model, "eagle3-llama-3.3-70b");
  o.draft().kind = cost::DraftKind::eagle;
  if (!o.states_acceptance()) {
    take(taken, "acceptance length", o.acceptance_length, "2.88");
    if (!o.at) o.at = 7;
  }
  return taken;
}

void declare_deployment(Options& options, PlanOptions& o) {
  declare(options, o.roofline);
  options.group("Models [llama-3.3-70b with its EAGLE-3 head on 4 H100]");
  options.text("--model", o.model, "NAME|FILE", "target: a preset or a configuration");
  options.text("--draft-model", o.draft().model, "NAME|FILE", "draft, the same");
  declare_draft_kind(options, o.draft().kind);
  declare_lookups(options, o.draft());
}

std::vector<Assumption> default_service(CapacityOptions& o) {
  planner::CapacityQuestion& q = o.question;
  const bool knows_acceptance = o.knows_acceptance();
  std::vector<Assumption> taken = default_deployment(o.shared);
  if (!knows_acceptance && o.knows_acceptance()) {
    if (!q.alpha_spread) {
      q.alpha_spread = 0.05;
      taken.push_back({"requests' acceptance", "of their own, standard deviation 0.05", "default"});
    }
    take(taken, "gamma", q.gamma, std::vector<std::int64_t>{1, 2, 3}, "1-3");
  }
  if (!o.requests) {
    take(taken, "prompt tokens", o.prompt_tokens, sim::LengthLaw{1000, 0.5}, "1000:0.5");
    take(taken, "output tokens", o.output_tokens, sim::LengthLaw{250, 0.5}, "250:0.5");
  }
  if (!q.ttft_ms && !q.tpot_ms) {
    take(taken, "limit on the time to first token, ms", q.ttft_ms, 1000.0);
    take(taken, "limit on the time per output token, ms", q.tpot_ms, 40.0);
  }
  take(taken, "price per GPU hour", q.price, 2.5);
  return taken;
}

std::vector<Assumption> with_defaults(std::vector<Assumption> taken, const std::vector<Assumption>& others) {
  const std::size_t count = taken.size();
  for (const Assumption& other : others) {
    const auto is_named = [&](const Assumption& one) { return one.name == other.name; };
    const auto end = taken.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::none_of(taken.begin(), end, is_named)) taken.push_back(other);
  }
  return taken;
}

}  // namespace specdec::cli
