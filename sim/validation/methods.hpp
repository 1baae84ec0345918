#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/batch_verification.hpp"
#include "sim/validation/method_decoder.hpp"

/// Decoding methods, by name: those of docs/reference/methods.md. Each is a draft, a verifier and a policy, with one table
/// each, or plain decoding. To add one, add an entry to its table.
///
/// `lacks` returns why a source and settings do not allow an entry ("the source has no counted tables"), empty if
/// they do; null means that they always do. The text follows the method's name, which it does not repeat. `prepare` is
/// called once per method, before its threads start. `uses` names the parameters that an entry uses.
namespace specdec::validation {

/// The parameters that some methods use and others do not, by their names in MethodSettings; a method is refused those
/// that it does not use. Seed, threads and the number of tokens are used by all.
struct ParametersUsed {
  bool gamma = false;
  bool temperature = false;
  bool lenience = false;
  bool epsilon = false;
  bool delta = false;
  bool threshold = false;
  bool schedule = false;
  bool batch = false;
  bool exit_layer = false;
  bool drafts = false;
  /// Children and depth.
  bool tree = false;
  bool tree_nodes = false;
  bool tree_acceptance = false;
  /// The cost of a step.
  bool cost = false;
  /// From the source: its draft model, even if only as the unit of costs, the texts in which n-grams are counted, and
  /// the parts trained on its target.
  bool draft_model = false;
  bool texts = false;
  bool eagle_head = false;
  bool parallel_heads = false;
  bool exits = false;
};

struct DraftKind {
  std::string_view name;
  std::string (*lacks)(const MethodContext& context);
  DraftBenchFactory (*prepare)(const MethodContext& context);
  /// True if it is a language model, so that several drafts can be drawn for one position.
  bool is_model = false;
  ParametersUsed uses = {};
};

/// Length of a draft: gamma, or less where a policy ends it by what it sees.
struct DraftedLength {
  std::int64_t gamma;
  sim::DraftingPolicy policy = {};
  /// For the oracle: only accepted drafts count as drafted, since it knows which these are.
  bool in_hindsight = false;
};

struct VerifierKind {
  std::string_view name;
  /// True if the text has the target's law (at temperature 0: is the greedy text).
  bool lossless;
  MethodDecoderFactory (*prepare)(const MethodContext& context, const DraftBenchFactory& benches,
                                  const DraftedLength& length);
  /// For several drafts of one position, the parents of their tree's nodes; requires a draft that is a language model,
  /// and the first policy.
  std::vector<std::int64_t> (*tree)(const MethodSettings& settings) = nullptr;
  std::string (*lacks)(const MethodContext& context) = nullptr;
  ParametersUsed uses = {};
  /// True if the text is that of temperature 0, whatever the settings say; `uses` then has no temperature.
  bool greedy_text = false;
};

struct PolicyKind {
  std::string_view name;
  std::string (*lacks)(const MethodContext& context, const VerifierKind& verifier);
  /// Null if `prepare` or `batch_rule` is used instead.
  DraftedLength (*length)(const MethodSettings& settings);
  /// For policies that know more than a decoder can: decodes in place of the verifier's own decoder.
  MethodDecoderFactory (*prepare)(const MethodContext& context, const VerifierKind& verifier,
                                  const DraftBenchFactory& benches) = nullptr;
  /// Knows the future, so that no engine can use it (docs/reference/methods.md#hindsight). Requires a language model as draft.
  bool in_hindsight = false;
  ParametersUsed uses = {};
  /// For policies that decide for a batch of texts at once; the other three are null. Recordings alone have such
  /// batches, see recorded_methods.hpp. The cost outlives the rule.
  std::unique_ptr<sim::BatchRule> (*batch_rule)(const MethodSettings& settings, const sim::BatchCost& cost) = nullptr;
};

/// The tables. The first entry of each is the default for a method that names none.
std::span<const DraftKind> draft_kinds();
std::span<const VerifierKind> verifier_kinds();
std::span<const PolicyKind> policy_kinds();

/// The parts of verifier_kinds(): of one chain of drafts, and of several drafts at one position.
std::span<const VerifierKind> chain_verifier_kinds();
std::span<const VerifierKind> several_verifier_kinds();

/// Their names, as used by --draft, --verifier and --policy.
std::vector<std::string> draft_names();
std::vector<std::string> verifier_names();
std::vector<std::string> policy_names();

/// A draft, a verifier and a policy, entries of the tables; or plain decoding, with all three null.
struct Method {
  const DraftKind* draft = &draft_kinds().front();
  const VerifierKind* verifier = &verifier_kinds().front();
  const PolicyKind* policy = &policy_kinds().front();

  bool is_plain() const { return verifier == nullptr; }
  bool lossless() const { return is_plain() || verifier->lossless; }
  friend bool operator==(const Method&, const Method&) = default;
};

/// "DRAFT+VERIFIER+POLICY" without the draft or policy that is the default: "algorithm1", "block", "copy+algorithm1",
/// "algorithm1+heuristic"; or "plain".
std::string name_of(const Method& method);

/// The method with a name: "plain", or at most one draft, verifier and policy, joined by "+" in any order. Empty if
/// a part is none of these, or a kind occurs twice.
std::optional<Method> method_named(std::string_view name);

/// The reason why source and settings do not allow the method; empty if they do.
std::string lacking(const Method& method, const MethodContext& context);

/// True if the method uses a parameter on this source: uses(method, context, &ParametersUsed::lenience).
bool uses(const Method& method, const MethodContext& context, bool ParametersUsed::*parameter);

/// The names of the entries that use a parameter, in the order of each table.
struct ParameterUsers {
  std::vector<std::string> drafts, verifiers, policies;
};
ParameterUsers users_of(bool ParametersUsed::*parameter);

/// Plain decoding, every verifier with the first draft, every draft with the first verifier, every policy with both: those
/// that lack nothing.
std::vector<Method> known_methods(const MethodContext& context);

/// Returns the decoder factory of the method. @throws std::invalid_argument if something is lacking
MethodDecoderFactory prepare(const Method& method, const MethodContext& context);

}  // namespace specdec::validation
