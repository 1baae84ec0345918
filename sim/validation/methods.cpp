#include "sim/validation/methods.hpp"
#include "sim/validation/method_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/decoding.hpp"
#include "sim/validation/independent_rounds.hpp"
#include "sim/validation/recorded_methods.hpp"

namespace specdec::validation {
namespace {

template <class Kind>
std::vector<std::string> names_in(std::span<const Kind> kinds) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

template <class Kind>
const Kind* find_named(std::span<const Kind> kinds, std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &Kind::name);
  return found == kinds.end() ? nullptr : &*found;
}

/// Sets `value` to the kind with this name; false if there is none, or if it is already set.
template <class Kind>
bool take(const Kind*& value, std::span<const Kind> kinds, std::string_view name) {
  const Kind* const found = find_named(kinds, name);
  if (found == nullptr || value != nullptr) return false;
  value = found;
  return true;
}

template <class Kind, class... More>
std::string lack_of(const Kind& kind, const MethodContext& context, const More&... more) {
  return kind.lacks == nullptr ? std::string() : kind.lacks(context, more...);
}

template <class Kind>
std::vector<std::string> names_using(bool ParametersUsed::*parameter, std::span<const Kind> kinds) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds)
    if (kind.uses.*parameter) names.emplace_back(kind.name);
  return names;
}

constexpr std::string_view plain_name = "plain";
constexpr Method plain{nullptr, nullptr, nullptr};

/// The target alone: every token is a step.
class PlainDecoder final : public MethodDecoder {
 public:
  explicit PlainDecoder(const MethodContext& context) : context_(context), target_(context.target()) {}

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    sim::Generation text = sim::decode_autoregressively(*target_, prompt, context_.decoding(), uniforms);
    text.steps.resize(text.tokens.size());
    text.counters.steps = text.counters.tokens;
    return context_.run_of(std::move(text), {}, nullptr);
  }

 private:
  const MethodContext& context_;
  sim::OwnedModel target_;
};

}  // namespace

std::span<const VerifierKind> verifier_kinds() {
  static const std::vector<VerifierKind> kinds = [] {
    const std::span<const VerifierKind> chains = chain_verifier_kinds();
    const std::span<const VerifierKind> several = several_verifier_kinds();
    std::vector<VerifierKind> all(chains.begin(), chains.end());
    all.insert(all.end(), several.begin(), several.end());
    return all;
  }();
  return kinds;
}

std::vector<std::string> draft_names() { return names_in(draft_kinds()); }
std::vector<std::string> verifier_names() { return names_in(verifier_kinds()); }
std::vector<std::string> policy_names() { return names_in(policy_kinds()); }

std::string name_of(const Method& method) {
  if (method.is_plain()) return std::string(plain_name);
  std::string name;
  if (method.draft != &draft_kinds().front()) name.append(method.draft->name).append("+");
  name.append(method.verifier->name);
  if (method.policy != &policy_kinds().front()) name.append("+").append(method.policy->name);
  return name;
}

std::optional<Method> method_named(std::string_view name) {
  Method method = plain;
  if (name == plain_name) return method;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('+', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!take(method.draft, draft_kinds(), part) && !take(method.verifier, verifier_kinds(), part) &&
        !take(method.policy, policy_kinds(), part))
      return std::nullopt;
    begin = end + 1;
  }
  if (method.draft == nullptr) method.draft = &draft_kinds().front();
  if (method.verifier == nullptr) method.verifier = &verifier_kinds().front();
  if (method.policy == nullptr) method.policy = &policy_kinds().front();
  return method;
}

std::string lacking(const Method& method, const MethodContext& context) {
  if (context.source().recording) return lacking_in_recording(method, context);
  if (context.source().alpha && !runs_in_rounds(method, context))
    return fmt::format("of independent acceptances there are rounds of algorithm1 alone, of a fixed gamma up to {}",
                       most_independent_drafts);
  if (method.is_plain()) return "";
  if (std::string lack = lack_of(*method.draft, context); !lack.empty()) return lack;
  if (std::string lack = lack_of(*method.verifier, context); !lack.empty()) return lack;
  if (method.verifier->tree != nullptr && !method.draft->is_model)
    return fmt::format("several drafts are drawn from one row, which {} has not", method.draft->name);
  if (method.verifier->tree != nullptr && method.policy != &policy_kinds().front())
    return fmt::format("{} does not shape a tree of drafts", method.policy->name);
  if (method.policy->in_hindsight && !method.draft->is_model)
    return fmt::format("hindsight needs a draft of one call and one row a token, which {} is not", method.draft->name);
  return lack_of(*method.policy, context, *method.verifier);
}

bool uses(const Method& method, const MethodContext& context, bool ParametersUsed::*parameter) {
  if (parameter == &ParametersUsed::cost && context.source().recording && !recording_tells_drafts(method)) return false;
  if (method.is_plain()) return parameter == &ParametersUsed::temperature;
  // A tree has the shape that its verifier determines.
  const bool has_policy = method.verifier->tree == nullptr;
  return method.draft->uses.*parameter || method.verifier->uses.*parameter ||
         (has_policy && method.policy->uses.*parameter);
}

ParameterUsers users_of(bool ParametersUsed::*parameter) {
  return {names_using(parameter, draft_kinds()), names_using(parameter, verifier_kinds()),
          names_using(parameter, policy_kinds())};
}

std::vector<Method> known_methods(const MethodContext& context) {
  std::vector<Method> methods = {plain};
  for (const VerifierKind& verifier : verifier_kinds()) methods.push_back({.verifier = &verifier});
  for (const DraftKind& draft : draft_kinds().subspan(1)) methods.push_back({.draft = &draft});
  for (const PolicyKind& policy : policy_kinds().subspan(1)) methods.push_back({.policy = &policy});
  methods.erase(
      std::remove_if(methods.begin(), methods.end(), [&](const Method& m) { return !lacking(m, context).empty(); }),
      methods.end());
  return methods;
}

MethodDecoderFactory prepare(const Method& method, const MethodContext& context) {
  if (const std::string lack = lacking(method, context); !lack.empty())
    throw std::invalid_argument(fmt::format("compare: {} does not exist here: {}", name_of(method), lack));
  if (method.is_plain()) return [&context] { return std::make_unique<PlainDecoder>(context); };
  DraftBenchFactory benches = method.draft->prepare(context);
  if (context.clock() != nullptr)
    benches = [&context, untimed = std::move(benches)](const core::Standardisation& standardisation,
                                                       sim::Proposing proposing) {
      return context.clock()->timed(untimed(standardisation, proposing));
    };
  if (method.policy->prepare != nullptr) return method.policy->prepare(context, *method.verifier, benches);
  return method.verifier->prepare(context, benches, method.policy->length(context.settings()));
}

}  // namespace specdec::validation
