#include "planner/methods/method_parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <type_traits>

#include "planner/question_error.hpp"
#include "sim/validation/independent_rounds.hpp"

namespace specdec::planner {
namespace {

using validation::Method;
using validation::ParametersUsed;

constexpr std::int64_t largest_bigram_vocab = 4096;

/// A member of the question. Numbers have a range; a member that some methods use and others do not has the place where
/// they say so.
struct Parameter {
  const char* option;
  bool (*is_given)(const MethodQuestion& question);
  void (*require_range)(const MethodQuestion& question, const Parameter& parameter);
  bool ParametersUsed::*used;
  LegalRange range;
};

void require_range(const Parameter& parameter, const auto& given) {
  if constexpr (requires { require_in(parameter.option, given, parameter.range); })
    require_in(parameter.option, given, parameter.range);
}

template <class Value>
bool has_value(const std::optional<Value>& member) {
  return member.has_value();
}
bool has_value(const std::vector<std::string>& member) { return !member.empty(); }
bool has_value(std::int64_t) { return true; }
bool has_value(bool given) { return given; }

/// @tparam Member  of the question, or of its cost
template <auto Member>
const auto& member_of(const MethodQuestion& question) {
  if constexpr (std::is_invocable_v<decltype(Member), const MethodQuestion&>) {
    return question.*Member;
  } else {
    return question.cost.*Member;
  }
}

template <auto Member>
constexpr Parameter parameter(const char* option, bool ParametersUsed::*used = nullptr,
                              LegalRange range = {.hi = unbounded}) {
  return {option, [](const MethodQuestion& question) { return has_value(member_of<Member>(question)); },
          [](const MethodQuestion& question, const Parameter& its) { require_range(its, member_of<Member>(question)); },
          used, range};
}

using Q = MethodQuestion;
using Used = ParametersUsed;

/// The usual upper end leaves room for any ratio.
constexpr LegalRange ratio = {0, 1e9};
constexpr LegalRange share = {0, 1};
constexpr LegalRange positive_share = {0, 1, true};

constexpr Parameter parameters[] = {
    parameter<&Q::target>("--target"),
    parameter<&Q::prompts>("--prompts"),
    parameter<&Q::tasks>("--tasks"),
    parameter<&Q::laws>("--laws"),
    parameter<&Q::vocab>("--vocab", nullptr, {2, 1 << 20}),
    parameter<&Q::noise>("--noise", nullptr, {0, 100}),
    parameter<&Q::alpha>("--alpha", nullptr, share),
    parameter<&Q::trace>("--trace"),
    parameter<&Q::gamma>("--gamma", &Used::gamma, {1, 1024}),
    parameter<&Q::temperature>("--temperature", &Used::temperature, {0, 1000}),
    parameter<&Q::lenience>("--lenience", &Used::lenience, positive_share),
    parameter<&Q::epsilon>("--epsilon", &Used::epsilon, share),
    parameter<&Q::delta>("--delta", &Used::delta, share),
    parameter<&Q::threshold>("--threshold", &Used::threshold, share),
    parameter<&Q::schedule>("--schedule", &Used::schedule),
    parameter<&Q::batch>("--batch", &Used::batch, {1, 1 << 16}),
    parameter<&Q::drafts>("--drafts", &Used::drafts, {1, 64}),
    parameter<&Q::tree>("--tree", &Used::tree),
    parameter<&Q::tree_nodes>("--tree-nodes", &Used::tree_nodes, {2, 1024}),
    parameter<&Q::tree_acceptance>("--tree-acceptance", &Used::tree_acceptance),
    parameter<&Q::ngram_text>("--ngram-text", &Used::texts),
    parameter<&Q::exit_layer>("--exit-layer", &Used::exit_layer, {1, 1024}),
    parameter<&StepTimes::c>("--c", &Used::cost, ratio),
    parameter<&StepTimes::verify_factor>("--verify-factor", &Used::cost),
    parameter<&StepTimes::overhead>("--overhead", &Used::cost, ratio),
    parameter<&Q::draft_model>("--draft-model", &Used::draft_model),
    parameter<&Q::eagle_head>("--eagle-head", &Used::eagle_head),
    parameter<&Q::parallel_heads>("--parallel-heads", &Used::parallel_heads),
    parameter<&Q::exits>("--exits", &Used::exits),
    parameter<&Q::tokens>("--tokens", nullptr, {1, 1e12}),
    parameter<&Q::until_error>("--until-error", nullptr, positive_share),
    parameter<&Q::max_new_tokens>("--max-new-tokens", nullptr, {2, 1'000'000}),
    parameter<&Q::end_token>("--end-token", nullptr, {0, 1 << 30}),
    parameter<&Q::timed>("--timed"),
    parameter<&Q::seed>("--seed"),
    parameter<&Q::threads>("--threads", nullptr, {1, 1024}),
};

const Parameter& parameter_of(std::string_view option) {
  for (const Parameter& one : parameters)
    if (one.option == option) return one;
  throw std::out_of_range(std::string(option));
}

/// "--verifier lenient, typical; --policy threshold", in `compare` without dashes: what looks at a parameter, at most 6
/// of a kind. Policies only where a method has one that could be another.
std::string other_users(bool ParametersUsed::*used, const std::vector<Method>& methods, bool by_options) {
  constexpr std::size_t most_named = 6;
  std::string text;
  const auto add = [&](const char* kind, std::vector<std::string> names) {
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), most_named);
    names.resize(names.size() - more);
    text += fmt::format("{}{}{} {}", text.empty() ? "" : "; ", by_options ? "--" : "", kind, fmt::join(names, ", "));
    if (more > 0) text += fmt::format(" and {} more", more);
  };
  const validation::ParameterUsers users = validation::users_of(used);
  const auto is_tree = [](const Method& method) { return !method.is_plain() && method.verifier->tree != nullptr; };
  add("draft", users.drafts);
  add("verifier", users.verifiers);
  if (!std::ranges::all_of(methods, is_tree)) add("policy", users.policies);
  return text;
}

/// Refuses a temperature that the methods' text does not have; true if it is the one that it has.
bool is_of_greedy_text(const std::vector<Method>& methods, double temperature) {
  const auto greedy = std::ranges::find_if(
      methods, [](const Method& method) { return !method.is_plain() && method.verifier->greedy_text; });
  if (greedy == methods.end()) return false;
  if (temperature == 0) return true;
  throw QuestionError(fmt::format("--temperature is {}, but must be 0: the text of {} is that of temperature 0",
                                  temperature, name_of(*greedy)));
}

}  // namespace

std::vector<std::string> method_sources() { return {"pair", "synthetic", "trace"}; }
std::vector<std::string> synthetic_laws() { return {"bigram", "fixed", "iid"}; }

LegalRange range_of_parameter(std::string_view option) { return parameter_of(option).range; }

std::vector<NamedMethod> methods_named(std::string_view option, const std::vector<std::string>& names) {
  std::vector<NamedMethod> methods;
  for (const std::string& name : names) {
    const std::optional<Method> method = validation::method_named(name);
    if (!method)
      refuse(option, name,
             fmt::format("a draft, a verifier and a policy joined by +, each at most once: one of {}; of {}; of {}; or plain",
                         fmt::join(validation::draft_names(), ", "), fmt::join(validation::verifier_names(), ", "),
                         fmt::join(validation::policy_names(), ", ")));
    if (std::ranges::find(methods, *method, &NamedMethod::method) != methods.end()) refuse(option, name, "given once");
    methods.push_back({name, *method});
  }
  return methods;
}

void require_word(std::string_view option, const std::optional<std::string>& word,
                  const std::vector<std::string>& words) {
  if (word && std::ranges::find(words, *word) == words.end())
    refuse(option, *word, fmt::format("one of {}", fmt::join(words, ", ")));
}

std::string source_of_question(const MethodQuestion& question) { return question.source.value_or("pair"); }

std::string laws_of(const MethodQuestion& question) {
  if (question.laws) return *question.laws;
  if (question.alpha) return "iid";
  return question.vocab.value_or(default_vocab) > largest_bigram_vocab ? "fixed" : "bigram";
}

void require_ranges(const MethodQuestion& question) {
  for (const Parameter& one : parameters) one.require_range(question, one);
}

void require_source(const MethodQuestion& question) {
  require_word("--source", question.source, method_sources());
  require_word("--laws", question.laws, synthetic_laws());
  const std::string source = source_of_question(question);
  const auto is_given = [&](const char* option) { return parameter_of(option).is_given(question); };
  const auto refuse_with = [&](const char* choice, const std::string& chosen, bool fits,
                               std::initializer_list<const char*> options) {
    for (const char* const option : options)
      if (!fits && is_given(option))
        throw QuestionError(fmt::format("{} does not go with {} {}", option, choice, chosen));
  };
  refuse_with("--source", source, source == "pair",
              {"--target", "--draft-model", "--prompts", "--tasks", "--ngram-text", "--eagle-head", "--parallel-heads",
               "--exits", "--end-token", "--timed"});
  const auto require_source_of = [&](const std::string& its_source, std::initializer_list<const char*> options) {
    for (const char* const option : options)
      if (is_given(option) && !question.source)
        throw QuestionError(fmt::format("{} needs --source {}", option, its_source));
    refuse_with("--source", source, source == its_source, options);
  };
  require_source_of("synthetic", {"--vocab", "--noise", "--laws", "--alpha"});
  require_source_of("trace", {"--trace"});
  refuse_with("--source", source, source != "trace",
              {"--tokens", "--until-error", "--temperature", "--max-new-tokens"});
  if (source == "trace" && !question.trace) throw QuestionError("--source trace needs --trace, a recording");
  if (source != "synthetic") return;
  const std::string laws = laws_of(question);
  if (laws == "iid" && !question.alpha) throw QuestionError("--laws iid needs --alpha, the acceptance of every draft");
  refuse_with("--laws", laws, laws == "iid", {"--alpha"});
  refuse_with("--laws", laws, laws != "iid", {"--vocab", "--noise", "--temperature"});
  if (laws == "bigram" && question.vocab > largest_bigram_vocab)
    refuse("--vocab", fmt::format("{}", *question.vocab),
           fmt::format("at most {} for --laws bigram", largest_bigram_vocab));
}

void require_used(const MethodQuestion& question, const std::vector<Method>& methods,
                  const validation::MethodContext& context, bool by_options) {
  const bool drafts = std::ranges::any_of(methods, [&](const Method& method) {
    return uses(method, context, &Used::draft_model);
  });
  if (drafts && question.target && !question.draft_model)
    throw QuestionError("--target needs --draft-model beside it, a draft of the same vocabulary");
  std::vector<std::string> names;
  for (const Method& method : methods) names.push_back(name_of(method));
  for (const Parameter& one : parameters) {
    if (one.used == nullptr || !one.is_given(question)) continue;
    // A target of the user's own needs a draft model beside it, whoever drafts.
    if (one.used == &Used::draft_model && question.target) continue;
    const bool used =
        std::ranges::any_of(methods, [&](const Method& method) { return uses(method, context, one.used); });
    if (!used && one.used == &Used::cost && context.source().recording)
      throw QuestionError(
          fmt::format("{} is given, but a recording does not tell how far {} {} behind a rejected token", one.option,
                      fmt::join(names, ", "), names.size() == 1 ? "drafts" : "draft"));
    if (used || (one.used == &Used::temperature && is_of_greedy_text(methods, *question.temperature))) continue;
    throw QuestionError(fmt::format("{} is given, but {} {} not use it; what does: {}", one.option,
                                    fmt::join(names, ", "), names.size() == 1 ? "does" : "do",
                                    other_users(one.used, methods, by_options)));
  }
  const auto in_rounds = [&](const Method& method) { return runs_in_rounds(method, context); };
  if (question.max_new_tokens && std::ranges::all_of(methods, in_rounds))
    throw QuestionError(fmt::format("--max-new-tokens is given, but {} {} in rounds without texts on --laws {}",
                                    fmt::join(names, ", "), names.size() == 1 ? "runs" : "run", laws_of(question)));
}

}  // namespace specdec::planner
