#include "planner/draft_pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <filesystem>
#include <vector>

#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using cost::DraftKind;
using cost::ModelSpec;

std::optional<ModelSpec> known_model(const std::optional<std::string>& name, const NamedSpecs& known, bool reads) {
  if (!name) return std::nullopt;
  if (const ModelSpec* const preset = cost::model_preset(*name)) return *preset;
  if (const auto spec = known.models.find(*name); spec != known.models.end()) return spec->second;
  if (!reads || !std::filesystem::exists(*name)) return std::nullopt;
  return cost::read_model_spec(*name);
}

}  // namespace

std::string option_of(const DraftWords& draft, std::string_view key) {
  return draft.name.empty() ? fmt::format("--{}", key) : fmt::format("--draft {}: {}", draft.name, key);
}

std::string draft_option_of(const DraftWords& draft, std::string_view key) {
  return draft.name.empty() ? fmt::format("--draft-{}", key) : fmt::format("--draft {}: {}", draft.name, key);
}

DraftKind draft_kind(const DraftWords& draft, const std::optional<std::string>& target, const NamedSpecs& known,
                     bool reads) {
  const auto refuse_head = [&](bool parallel) {
    refuse(draft_option_of(draft, "kind"), name_of(*draft.kind),
           fmt::format("{}: {} is a head that drafts {}, from its target's states", parallel ? "parallel" : "eagle",
                       *draft.model, parallel ? "all tokens in one pass" : "one token after the other"));
  };
  // A file may hold a head that was trained to draft in parallel and does not say it.
  const ModelSpec* const preset = draft.model ? cost::model_preset(*draft.model) : nullptr;
  const bool parallel_head = preset != nullptr && preset->drafts_in_parallel;
  if (draft.kind == DraftKind::parallel && preset != nullptr && preset->target_width > 0 && !parallel_head)
    refuse_head(false);
  if (draft.kind == DraftKind::eagle && parallel_head) refuse_head(true);
  if (draft.kind == DraftKind::eagle && preset != nullptr && preset->target_width == 0) {
    refuse(draft_option_of(draft, "kind"), name_of(*draft.kind),
           fmt::format("model: {} is a whole model, and no head that reads its target's states", *draft.model));
  }
  const bool looks_up = draft.kind && cost::looks_up(*draft.kind);
  if (draft.kind == DraftKind::eagle || draft.kind == DraftKind::parallel || looks_up) {
    return *draft.kind;
  }
  const std::optional<ModelSpec> spec = known_model(draft.model, known, reads);
  if (spec && spec->target_width > 0) {
    if (!draft.kind) return spec->drafts_in_parallel ? DraftKind::parallel : DraftKind::eagle;
    refuse_head(spec->drafts_in_parallel);
  }
  if (draft.kind) return *draft.kind;
  const DraftKind whole_model = draft.of_llamacpp ? DraftKind::mirrored : DraftKind::model;
  if (!spec || spec->next_token_layers.empty()) return whole_model;
  const std::optional<ModelSpec> of_target = known_model(target, known, reads);
  return of_target && of_target->name == spec->name ? DraftKind::mtp : whole_model;
}

std::optional<Assumption> assumed_kind(const DraftWords& draft, DraftKind kind) {
  if (draft.kind || kind == DraftKind::model) return std::nullopt;
  return Assumption{"draft_kind", name_of(kind), kind == DraftKind::mirrored ? "default" : "preset"};
}

std::optional<double> c_of_kind(DraftKind kind, const std::optional<double>& c, const DraftWords& draft) {
  if (!c || cost::draft_passes(kind, 1) > 0) return c;
  if (*c == 0) return std::nullopt;
  throw QuestionError(fmt::format("{} is {}, but must be 0: a draft of this kind ({}) makes no draft step",
                                  option_of(draft, "c"), *c, name_of(kind)));
}

std::optional<std::string> unfit_head(const ModelSpec* draft, const ModelSpec* target) {
  if (draft == nullptr || target == nullptr || draft->target_width == 0 || !has_shape(*target)) return std::nullopt;
  std::string why;
  if (draft->target_width != target->width) {
    why = fmt::format("{} reads states of width {}, and those of {} have {}", draft->name, draft->target_width,
                      target->name, target->width);
  } else if (draft->vocabulary != target->vocabulary) {
    why = fmt::format("{} drafts for a vocabulary of {} tokens, and {} has {}", draft->name, draft->vocabulary,
                      target->name, target->vocabulary);
  } else {
    return std::nullopt;
  }
  std::vector<std::string> fitting;
  for (const ModelSpec& head : cost::model_presets()) {
    const bool is_alike = head.drafts_in_parallel == draft->drafts_in_parallel;
    if (is_alike && head.target_width == target->width && head.target == target->name) fitting.push_back(head.name);
  }
  return fitting.empty() ? why : fmt::format("{}; made for it is {}", why, fmt::join(fitting, ", "));
}

std::optional<Note> mismatch(DraftKind kind, const ModelSpec* draft, const ModelSpec* target) {
  if (draft == nullptr || target == nullptr || !has_shape(*draft) || !has_shape(*target)) return std::nullopt;
  if (draft->target_width > 0) {
    const bool other_preset = !draft->target.empty() && !target->sources.empty() && draft->target != target->name;
    const bool other_width = draft->target_width != target->width;
    if (!other_preset && !other_width && draft->vocabulary == target->vocabulary) return std::nullopt;
    const std::string own = draft->target.empty() ? "another target" : draft->target;
    const std::string widths =
        other_width ? fmt::format(", of width {} instead of {}", draft->target_width, target->width) : "";
    return Note{"head_of_another_target", fmt::format("{} reads the states of {}{}: {} needs a head of its own",
                                                      draft->name, own, widths, target->name)};
  }
  if (kind != DraftKind::model && kind != DraftKind::mirrored) return std::nullopt;
  if (draft->vocabulary == target->vocabulary) return std::nullopt;
  return Note{"vocabularies_differ",
              fmt::format("the vocabulary of {} has {} tokens, that of {} {}: a draft model needs its target's",
                          draft->name, draft->vocabulary, target->name, target->vocabulary)};
}

std::optional<Note> context_beyond_model(std::string_view longest, double tokens, const ModelSpec& model) {
  if (!model.max_context || tokens <= static_cast<double>(*model.max_context)) return std::nullopt;
  return Note{"context_beyond_model",
              fmt::format("{} has {} tokens, but {} reads {} at most", longest, brief(tokens, 7),
                          model.name.empty() ? "the model" : model.name, *model.max_context)};
}

}  // namespace specdec::planner
