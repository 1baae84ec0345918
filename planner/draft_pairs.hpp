#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/round_cost.hpp"
#include "planner/named_specs.hpp"
#include "traces/note.hpp"

/// Which model drafts for which, and how.
namespace specdec::planner {

/// What somebody says of a draft beside its acceptance and its cost.
struct DraftWords {
  /// A preset's name, a file or folder, or what an engine calls it.
  std::optional<std::string> model = {};
  /// Empty where the models tell.
  std::optional<cost::DraftKind> kind = {};
  /// Accelerators that share it; those of the target where it is not given.
  std::optional<std::int64_t> tensor_parallel = {};
  /// What it is called among several, for messages; empty for the only one.
  std::string name = {};
};

/// How messages name what is said of the draft: "--c", or "--draft NAME: c" among several.
std::string option_of(const DraftWords& draft, std::string_view key);
/// The same where the only draft's has a longer name: "--draft-kind", or "--draft NAME: kind".
std::string draft_option_of(const DraftWords& draft, std::string_view key);

/// How a draft is made: as stated, else as the models tell: `eagle` for a head that reads its target's states, `mtp`
/// for a model with a module for the next token that is named as its own draft, `model` for others and where neither
/// is known.
/// @param reads  looks into the models' files, where they are files
/// @throws QuestionError for a kind that such a head cannot have: a preset that drafts token by token is no `parallel`
///   draft; traces::FileError
cost::DraftKind draft_kind(const DraftWords& draft, const std::optional<std::string>& target, const NamedSpecs& known,
                           bool reads);

/// The draft step's share of a target step that this kind of draft can have: c; empty where it makes no step, for which
/// 0 may be given.
/// @throws QuestionError for another number there
std::optional<double> c_of_kind(cost::DraftKind kind, const std::optional<double>& c, const DraftWords& draft);

/// What does not go together: "head_of_another_target" where a head was trained for other states than the target's,
/// "vocabularies_differ" where a draft model has other tokens than the target; nothing where a model is not known.
std::optional<Note> mismatch(cost::DraftKind kind, const cost::ModelSpec* draft, const cost::ModelSpec* target);

/// Why a head cannot read the target's states or name its tokens, with the presets that were made for it; nothing where
/// it can, or where a model is not known. No server starts with such a pair.
std::optional<std::string> unfit_head(const cost::ModelSpec* draft, const cost::ModelSpec* target);

/// "context_beyond_model" where `longest` ("the mean request with its answer") has more tokens than the model's
/// configuration names; nothing where it names no longest context.
std::optional<Note> context_beyond_model(std::string_view longest, double tokens, const cost::ModelSpec& model);

}  // namespace specdec::planner
