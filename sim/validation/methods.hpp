#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/validation/method_decoder.hpp"

/// Ways to decode, by name: what docs/methods.md describes. Most are a draft, a verifier and a policy, of which there
/// is a table each; the others are systems of their own. To add one is to add an entry to its table.
///
/// `lacks` says why a source and settings do not allow an entry ("the source has no counted tables"), and nothing where
/// they do; null stands for always: it stands behind the method's name, which it does not repeat. `prepare` is called
/// once a method, before its threads begin. `uses` names the parameters that an entry looks at.
namespace specdec::validation {

/// What one method looks at and another one does not, by its name in MethodSettings; others are refused what they do
/// not look at. Seed, threads and the number of tokens are everybody's.
struct ParametersUsed {
  bool gamma = false;
  bool temperature = false;
  bool lenience = false;
  bool epsilon = false;
  bool delta = false;
  bool threshold = false;
  bool most_drafts = false;
  /// With the batch.
  bool schedule = false;
  bool exit_layer = false;
  bool exit_response = false;
  bool exit_saturation = false;
  bool inner_gamma = false;
  bool edit_share = false;
  bool beams = false;
  bool draft_beams = false;
  bool drafts = false;
  /// Children and depth.
  bool tree = false;
  bool tree_nodes = false;
  bool tree_acceptance = false;
  bool ngram_order = false;
  /// What a step costs.
  bool cost = false;
  /// Of the source: its draft model, be it as the unit of costs, the texts that n-grams are counted in, and what was
  /// trained on its target.
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
  /// Whether it is a language model, so that several drafts can be drawn for one position.
  bool is_model = false;
  ParametersUsed uses = {};
};

/// How far to draft, where a policy says so by what it sees.
struct DraftedLength {
  std::int64_t gamma;
  sim::DraftingPolicy policy = {};
  /// The oracle's: only drafts that stay count as drafted, since it knows which.
  bool in_hindsight = false;
};

struct VerifierKind {
  std::string_view name;
  /// Whether the text has the target's law (at temperature 0 that is: is the greedy text).
  bool lossless;
  MethodDecoderFactory (*prepare)(const MethodContext& context, const DraftBenchFactory& benches,
                                  const DraftedLength& length);
  /// For several drafts of one position, the parents of their tree's nodes; it needs a draft that is a language model,
  /// and no policy but the first.
  std::vector<std::int64_t> (*tree)(const MethodSettings& settings) = nullptr;
  std::string (*lacks)(const MethodContext& context) = nullptr;
  ParametersUsed uses = {};
  /// Whether the text is that of temperature 0, whatever the settings say; `uses` then has no temperature.
  bool greedy_text = false;
};

struct PolicyKind {
  std::string_view name;
  std::string (*lacks)(const MethodContext& context, const VerifierKind& verifier);
  /// Null where `prepare` takes its place.
  DraftedLength (*length)(const MethodSettings& settings);
  /// For policies that know more than a decoder can: decodes in the place of the verifier's own decoder.
  MethodDecoderFactory (*prepare)(const MethodContext& context, const VerifierKind& verifier,
                                  const DraftBenchFactory& benches) = nullptr;
  /// Knows what lies ahead, so that nobody has it (docs/methods.md#hindsight). Needs a draft that is a language model.
  bool in_hindsight = false;
  ParametersUsed uses = {};
};

/// What of the target's output a method leaves as it is.
enum class Keeps {
  law,     ///< the law of the text (at temperature 0 that is: the greedy text)
  beams,   ///< the beams and scores of plain search; the method is held against that search, not plain decoding
  nothing  ///< the text is another model's
};

struct SystemKind {
  std::string_view name;
  Keeps keeps;
  std::string (*lacks)(const MethodContext& context);
  MethodDecoderFactory (*prepare)(const MethodContext& context);
  ParametersUsed uses = {};
};

/// The tables. The first entry of each is what a method has that does not name one; of systems there is no such entry.
std::span<const DraftKind> draft_kinds();
std::span<const VerifierKind> verifier_kinds();
std::span<const PolicyKind> policy_kinds();
std::span<const SystemKind> system_kinds();

/// The parts of verifier_kinds(): of one chain of drafts, and of several drafts at one position.
std::span<const VerifierKind> chain_verifier_kinds();
std::span<const VerifierKind> several_verifier_kinds();

/// Their names: those of --draft, --verifier, --policy and --system.
std::vector<std::string> draft_names();
std::vector<std::string> verifier_names();
std::vector<std::string> policy_names();
std::vector<std::string> system_names();

/// A draft, a verifier and a policy, or a system. Entries of the tables.
struct Method {
  const DraftKind* draft = &draft_kinds().front();
  const VerifierKind* verifier = &verifier_kinds().front();
  const PolicyKind* policy = &policy_kinds().front();
  /// Where there is one, the others are null.
  const SystemKind* system = nullptr;

  Keeps keeps() const;
  bool lossless() const { return keeps() == Keeps::law; }
  friend bool operator==(const Method&, const Method&) = default;
};

/// "DRAFT+VERIFIER+POLICY" without a draft and a policy that are the first: "algorithm1", "block", "copy+algorithm1",
/// "algorithm1+heuristic"; or the system's name.
std::string name_of(const Method& method);

/// The method of a name: a system, or at most one draft, verifier and policy, joined by "+" in any order. Nothing where
/// a part is none of these, or a kind stands twice.
std::optional<Method> method_named(std::string_view name);

/// Why source and settings do not allow the method; empty where they do.
std::string lacking(const Method& method, const MethodContext& context);

/// Whether the method looks at a parameter on this source: uses(method, context, &ParametersUsed::lenience).
bool uses(const Method& method, const MethodContext& context, bool ParametersUsed::*parameter);

/// The names of the entries that look at a parameter, in the order of each table.
struct ParameterUsers {
  std::vector<std::string> drafts, verifiers, policies, systems;
};
ParameterUsers users_of(bool ParametersUsed::*parameter);

/// Systems, every verifier with the first draft, every draft with the first verifier, every policy with both: those
/// that nothing is lacking for.
std::vector<Method> known_methods(const MethodContext& context);

/// What decodes by the method. @throws std::invalid_argument where something is lacking
MethodDecoderFactory prepare(const Method& method, const MethodContext& context);

}  // namespace specdec::validation
