#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/round_cost.hpp"
#include "planner/assumption.hpp"
#include "planner/named_specs.hpp"
#include "traces/note.hpp"

/// The pairing of draft and target models.
namespace specdec::planner {

/// The settings of a draft besides its acceptance and its cost.
struct DraftWords {
  /// A preset's name, a file or folder, or the name that an engine uses.
  std::optional<std::string> model = {};
  /// If empty, it follows from the models.
  std::optional<cost::DraftKind> kind = {};
  /// Accelerators that share it; those of the target if not given.
  std::optional<std::int64_t> tensor_parallel = {};
  /// For drafts that are looked up: the share of rounds in which something is found, [0, 1], and how many tokens it has
  /// on average, >= 1; see core::LookupLaw.
  std::optional<double> hit_rate = {};
  std::optional<double> mean_draft_length = {};
  /// True if llama.cpp drafts with it, whose draft models decode what the target verifies, too: `mirrored` unless
  /// `kind` says otherwise.
  bool of_llamacpp = false;
  /// True if SGLang drafts with it, which verifies gamma + 1 tokens in every step of a lookup, whatever it finds.
  bool of_sglang = false;
  /// Its name among several drafts, for messages; empty if it is the only one.
  std::string name = {};

  /// False where the kind of drafts is a guess.
  bool tells_kind() const { return kind || model; }
  /// True if they state how often and how much is found.
  bool states_lookups() const { return hit_rate || mean_draft_length; }
};

/// The name in messages of a draft's setting: "--c", or "--draft NAME: c" if there are several drafts.
std::string option_of(const DraftWords& draft, std::string_view key);
/// The same for an only draft with a longer option name: "--draft-kind", or "--draft NAME: kind".
std::string draft_option_of(const DraftWords& draft, std::string_view key);

/// The kind of a draft: as stated, else by the models: `eagle` for a head that reads its target's states, `mtp`
/// for a model with a module for the next token that is named as its own draft, `model`, or `mirrored` of llama.cpp,
/// for others and if neither is known.
/// @param reads  looks into the models' files, if they are files
/// @throws QuestionError for a kind that such a head cannot have: a preset that drafts token by token is not a
///   `parallel` draft; traces::FileError
cost::DraftKind draft_kind(const DraftWords& draft, const std::optional<std::string>& target, const NamedSpecs& known,
                           bool reads);

/// The kind as an assumption where it is neither stated nor `model`.
std::optional<Assumption> assumed_kind(const DraftWords& draft, cost::DraftKind kind);

/// The share of a target step, c, that a draft step of this kind can have; empty if it makes no step, for which
/// 0 may be given.
/// @throws QuestionError if another number is given there
std::optional<double> c_of_kind(cost::DraftKind kind, const std::optional<double>& c, const DraftWords& draft);

/// Reasons why a pair does not match: "head_of_another_target" if a head was trained for other states than the
/// target's, "vocabularies_differ" if a draft model has other tokens than the target; empty if a model is unknown.
std::optional<Note> mismatch(cost::DraftKind kind, const cost::ModelSpec* draft, const cost::ModelSpec* target);

/// The reason why a head cannot read the target's states or name its tokens, with the presets that were made for it;
/// empty if it can, or if a model is unknown. No server starts with such a pair.
std::optional<std::string> unfit_head(const cost::ModelSpec* draft, const cost::ModelSpec* target);

/// "context_beyond_model" if `longest` ("the mean request with its answer") has more tokens than the longest context
/// in the model's configuration; empty if that names none.
std::optional<Note> context_beyond_model(std::string_view longest, double tokens, const cost::ModelSpec& model);

}  // namespace specdec::planner
