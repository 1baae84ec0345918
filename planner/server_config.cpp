#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/kv_memory.hpp"
#include "analysis/planning/served_model.hpp"
#include "planner/draft_pairs.hpp"
#include "planner/number_text.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"

/// Checks that the plan would run on a server, and the server's configuration.
namespace specdec::planner {
namespace {

using cost::DraftKind;

/// The caches of a plan's point.
struct Caches {
  double batch = 1, context = 0;
  std::int64_t gamma = 0;
};

Caches caches_of(const planning::PointPlan& point) { return {point.batch, point.context, point.optimal().gamma}; }

double longest_context(const Plan& p) {
  double longest = 0;
  for (const planning::PointPlan& point : p.points()) longest = std::max(longest, point.context);
  return longest;
}

/// Those at the last batch of each stretch of the schedule, at the longest context.
std::vector<Caches> scheduled_caches(const Plan& p) {
  std::vector<Caches> planned;
  const double longest = longest_context(p);
  for (const planning::PlannedStretch& stretch : p.shown_plan().schedule) {
    planned.push_back({static_cast<double>(stretch.batch_high), longest, stretch.gamma});
  }
  return planned;
}

/// What vLLM takes by default, as `capacity` does. Source:   its --gpu-memory-utilization and --max-num-seqs
constexpr double served_memory_share = 0.9;
constexpr std::int64_t served_max_num_seqs = 256;

planning::ReplicaHolds holds_of(const cost::RooflineOptions& options) {
  planning::ReplicaHolds holds;
  holds.memory_bytes_per_gpu = options.hardware.memory_bytes.value;
  holds.utilization = served_memory_share;
  holds.target = options.target;
  holds.draft = options.draft;
  return holds;
}

/// The shortfall of memory: for the weights, or for the first of these caches beside them that do not fit.
std::optional<Note> memory_shortfall(const Plan& p, const std::vector<Caches>& planned) {
  if (!p.has_roofline()) return std::nullopt;
  const cost::RooflineOptions& options = p.drafts[p.shown()].cost.roofline->options();
  planning::ReplicaHolds holds = holds_of(options);
  // The configurations of other engines say nothing of memory.
  const bool takes_share = !p.question.emit || *p.question.emit == planning::Engine::vllm;
  if (!takes_share) {
    holds.utilization = 1;
    holds.reserve_bytes_per_gpu = 0;
  }
  holds.block_size = 1;
  const auto short_of = [&](const char* code, const std::string& what, double bytes) {
    const auto enough = planning::gpus_that_hold(holds);
    const std::string remedy =
        enough ? fmt::format("{} of them would hold that{}", *enough, without_link(options.hardware))
               : std::string("dividing the models over more would not help");
    const std::string memory = brief(holds.memory_bytes_per_gpu / 1e9);
    const std::string has =
        !takes_share
            ? fmt::format("which has {} GB", memory)
            : fmt::format("of whose {} GB {} {}{}", memory, p.question.emit ? "the engine takes" : "servers take",
                          served_memory_share, p.question.emit ? "" : " unless told otherwise");
    return Note{
        code, fmt::format("{} {} GB of each {}, {}; {}", what, brief(bytes / 1e9), options.hardware.name, has, remedy)};
  };
  const planning::KvMemory empty = planning::kv_memory(holds);
  const double weights = empty.target_weight_bytes + empty.draft_weight_bytes;
  if (weights > holds.utilization * holds.memory_bytes_per_gpu)
    return short_of("weights_do_not_fit", "the weights take", weights);
  for (const Caches& caches : planned) {
    const double sequences = std::ceil(caches.batch / static_cast<double>(options.target.data_parallel));
    const double tokens = std::min(sequences, caches.batch) * (caches.context + static_cast<double>(caches.gamma) + 1);
    holds.max_num_seqs = static_cast<std::int64_t>(sequences);
    holds.block_size = static_cast<std::int64_t>(std::ceil(tokens));
    const planning::KvMemory memory = planning::kv_memory(holds);
    if (memory.blocks > 0) continue;
    return short_of("cache_does_not_fit",
                    fmt::format("at batch {} and context {} weights{} take", brief(caches.batch), brief(caches.context),
                                memory.reserve_bytes > 0 ? ", caches and activations" : " and caches"),
                    weights + memory.reserve_bytes + memory.state_bytes + tokens * memory.bytes_per_token);
  }
  return std::nullopt;
}

/// A draft and its target as far as known.
struct DraftAndTarget {
  DraftKind kind = DraftKind::model;
  const cost::ModelSpec* draft = nullptr;
  const cost::ModelSpec* target = nullptr;
};

DraftAndTarget draft_and_target(const Draft& draft, const Plan& p) {
  if (!draft.cost.roofline)
    return {draft.cost.kind, cost::model_preset(draft.cost.draft.model.value_or("")),
            cost::model_preset(p.target_model)};
  const cost::RooflineOptions& placed = draft.cost.roofline->options();
  return {draft.cost.kind, placed.draft ? &placed.draft->model : nullptr, &placed.target.model};
}

/// The pair of the draft that is shown; for runs with their own acceptance that of the runs.
DraftAndTarget shown_pair(const BenchFiles* runs, const Plan& p) {
  if (!p.drafts.empty()) return draft_and_target(p.drafts[p.shown()], p);
  return {p.bench->cost->kind(), cost::model_preset(runs->draft.model.value_or("")), cost::model_preset(p.target_model)};
}

/// The reason why the engine would not accept, or not understand, a draft model with another vocabulary. vLLM and
/// SGLang compare the sizes at start; TensorRT-LLM compares nothing, and a padded vocabulary names the same tokens.
std::string no_other_vocabulary(planning::Engine engine, const DraftAndTarget& pair) {
  constexpr std::int64_t padding = 128;
  if (engine == planning::Engine::vllm || engine == planning::Engine::sglang)
    return fmt::format(", and {} takes no other", title_of(engine));
  const bool is_padded = std::abs(pair.draft->vocabulary - pair.target->vocabulary) <= padding;
  return engine == planning::Engine::trtllm && !is_padded ? ", and TensorRT-LLM compares tokens by number" : "";
}

/// The reason why a server does not start with the pair: none at all, or `engine`; empty if it does, as far as known.
/// @param placed  null if nobody says on which accelerators
std::string why_refused(const DraftAndTarget& pair, const cost::RooflineOptions* placed,
                        const std::optional<planning::Engine>& engine) {
  if (auto unfit = unfit_head(pair.draft, pair.target)) return *std::move(unfit);
  if (!engine) return "";
  if (placed != nullptr && *engine != planning::Engine::llamacpp) {
    std::string uneven = cost::uneven_heads(placed->target);
    if (uneven.empty() && placed->draft) uneven = cost::uneven_heads(*placed->draft);
    if (!uneven.empty()) return uneven;
  }
  const auto note = mismatch(pair.kind, pair.draft, pair.target);
  if (!note || note->code != "vocabularies_differ") return "";
  const std::string why = no_other_vocabulary(*engine, pair);
  return why.empty() ? "" : note->message + why;
}

/// Warns of mismatched models, and of contexts that they cannot read.
void warn_of_models(const DraftAndTarget& shown, Plan& p) {
  const auto warn = [&](const std::optional<Note>& note) {
    if (note) append_new(p.warnings, {*note});
  };
  for (const Draft& draft : p.drafts) {
    const DraftAndTarget pair = draft_and_target(draft, p);
    warn(mismatch(pair.kind, pair.draft, pair.target));
  }
  if (p.drafts.empty()) warn(mismatch(shown.kind, shown.draft, shown.target));
  if (p.misfits.empty()) {
    p.misfits.assign(std::max<std::size_t>(1, p.deployment.drafts.size()),
                     unfit_head(shown.draft, shown.target).value_or(""));
  }
  if (!p.has_roofline()) return;
  const double longest = longest_context(p);
  warn(context_beyond_model("the longest context", longest, *shown.target));
  // A model's own module reads what the model reads.
  if (shown.draft != nullptr && shown.kind != DraftKind::mtp) {
    warn(context_beyond_model("the longest context", longest, *shown.draft));
  }
}

/// Refuses to configure a server that would not start.
void require_it_runs(const DraftAndTarget& shown, const Plan& p, const std::optional<Note>& shortfall) {
  const auto refuse_server = [&](const std::string& why) {
    throw QuestionError(fmt::format("--emit is {}, but {}", name_of(*p.question.emit), why));
  };
  if (shortfall) refuse_server(shortfall->message);
  const cost::RooflineOptions* placed = p.has_roofline() ? &p.drafts[p.shown()].cost.roofline->options() : nullptr;
  if (const std::string why = why_refused(shown, placed, p.question.emit); !why.empty()) refuse_server(why);
  if (shown.target != nullptr && shown.target->idle_parameters > 0) {
    refuse_server(fmt::format("{} has an encoder, and the engine serves decoders alone", shown.target->name));
  }
}

/// The engine's name for a model, with a note if the plan holds for other repositories as well.
std::string model_for(planning::Engine engine, const std::string& asked, std::vector<std::string>& notes) {
  const planning::ServedModel served = planning::served_model(engine, asked);
  if (!served.alike.empty()) {
    notes.push_back(fmt::format("{} stands for {} here; of the same shape {} {}", asked, served.name,
                                served.alike.size() == 1 ? "is" : "are", fmt::join(served.alike, ", ")));
  }
  return served.name;
}

/// Copies the hardware price's assumptions on the server.
void take_placement(const Cost& cost, planning::EngineRequest& request) {
  const cost::RooflineOptions& placed = cost.roofline->options();
  request.tensor_parallel = placed.target.tensor_parallel;
  if (const auto& each = placed.hardware.gpus_per_node) {
    request.gpus_per_node = static_cast<std::int64_t>(each->value);
  }
  if (placed.draft) request.draft_tensor_parallel = placed.draft->tensor_parallel;
  const HardwareOptions& stated = cost.words->options;
  request.weight_type = stated.weight_dtype;
  if (placed.draft) request.draft_weight_type = stated.draft_weight_dtype;
  request.cache_type = stated.kv_cache_dtype;
}

/// @throws QuestionError if nothing is decided
void take_gammas(const Plan& p, planning::EngineRequest& request) {
  if (const std::string refused = p.refused(); !refused.empty()) {
    throw QuestionError(
        fmt::format("--emit is {}, but there is no gamma to configure: {}, and nothing is decided by it",
                    name_of(*p.question.emit), refused));
  }
  const planning::DraftPlan& plan = p.shown_plan();
  request.schedule = plan.schedule;
  request.tree = plan.tree;
}

/// The lengths that servers need to be told: vLLM does not start where a request of the model's own length has no room
/// in the cache; slots of llama.cpp share a cache for what the plan has in it, and for the longest request, whose
/// context halfway through its output is at least half of its length.
void take_lengths(const Plan& p, planning::EngineRequest& request, std::vector<std::string>& notes) {
  // Nine in ten of the caches that engines printed hold at least that share of what is foretold.
  constexpr double sure_share = 0.95;
  constexpr std::int64_t step = 256;
  const double longest = longest_context(p);
  if (longest > 0 && request.max_num_seqs) {
    const double sequences = std::max(2.0, static_cast<double>(*request.max_num_seqs));
    // Of engines that take it in slots, which have one length for all batches.
    const double tokens = sequences * (longest + static_cast<double>(request.schedule.front().gamma) + 1);
    request.cache_tokens = step * static_cast<std::int64_t>(std::ceil(tokens / static_cast<double>(step)));
  }
  if (*p.question.emit != planning::Engine::vllm || !p.has_roofline()) return;
  const cost::RooflineOptions& placed = p.drafts[p.shown()].cost.roofline->options();
  if (!placed.target.model.max_context) return;
  planning::ReplicaHolds holds = holds_of(placed);
  holds.max_num_seqs = request.max_num_seqs.value_or(served_max_num_seqs);
  const double room = sure_share * static_cast<double>(planning::kv_memory(holds).tokens);
  if (room >= static_cast<double>(*placed.target.model.max_context)) return;
  request.max_model_len =
      std::max<std::int64_t>(step, step * static_cast<std::int64_t>(room / static_cast<double>(step)));
  notes.push_back(fmt::format(
      "a request of {} tokens, the longest that {} takes, has no room beside the weights, and the server may not "
      "start: --max-model-len is what 95% of that room hold",
      *placed.target.model.max_context, placed.target.model.name));
}

planning::EngineConfig config_of(const BenchFiles* runs, const DraftAndTarget& shown, const Plan& p) {
  const planning::Engine engine = *p.question.emit;
  planning::EngineRequest request;
  take_gammas(p, request);
  std::vector<std::string> notes;
  request.target_model = model_for(engine, p.target_model, notes);
  request.kind = shown.kind;
  const DraftWords& draft = p.drafts.empty() ? runs->draft : p.drafts[p.shown()].cost.draft;
  request.draft_tensor_parallel = draft.tensor_parallel;
  if (!p.drafts.empty()) {
    const Draft& planned = p.drafts[p.shown()];
    request.rule = planned.acceptance.rule;
    if (planned.cost.roofline) {
      take_placement(planned.cost, request);
      const cost::PlacedModel& target = planned.cost.roofline->options().target;
      if (target.data_parallel > 1 || target.expert_parallel > 1) {
        notes.push_back(
            fmt::format("the plan is for {} groups of accelerators and {} parts of the experts, which are "
                        "settings of the server that stand nowhere here",
                        target.data_parallel, target.expert_parallel));
      }
    }
  } else {
    request.rule = runs->acceptance;
  }
  const bool names_draft =
      request.kind == DraftKind::mtp ? engine == planning::Engine::llamacpp : !cost::looks_up(request.kind);
  if (names_draft && draft.model && !draft.model->empty()) {
    request.draft_model = model_for(engine, *draft.model, notes);
  }
  request.max_num_seqs = p.question.max_num_seqs;
  take_lengths(p, request, notes);
  const std::string lacking = planning::lacks_option(engine, request);
  if (!lacking.empty()) throw QuestionError(fmt::format("--emit is {}, but {}", name_of(engine), lacking));
  if (!p.question.config_file.empty()) request.file = p.question.config_file;
  planning::EngineConfig config = planning::engine_config(engine, request);
  config.notes.insert(config.notes.end(), notes.begin(), notes.end());
  return config;
}

}  // namespace

std::string why_not_served(const Draft& draft, const Plan& plan) {
  const cost::RooflineOptions* placed = draft.cost.roofline ? &draft.cost.roofline->options() : nullptr;
  return why_refused(draft_and_target(draft, plan), placed, plan.question.emit);
}

void conclude(const BenchFiles* runs, Plan& p) {
  if (p.question.emit) p.engine = name_of(*p.question.emit);
  for (const planning::DraftPlan& draft : p.deployment.drafts) {
    const std::string who = p.deployment.drafts.size() > 1 ? draft.name + ": " : "";
    for (const Note& note : draft.notes) p.warnings.push_back({note.code, who + note.message});
  }
  const DraftAndTarget shown = shown_pair(runs, p);
  warn_of_models(shown, p);
  p.impossible = p.cost().impossible();
  if (p.has_roofline() && p.question.context.empty()) {
    p.warnings.push_back({"empty_cache",
                          "without --context rounds are priced with an empty cache, which no server has for long: each "
                          "token that is cached makes plain and speculative steps slower"});
  }
  if (p.question.emit == planning::Engine::llamacpp && shown.kind == DraftKind::model) {
    p.warnings.push_back({"draft_not_mirrored",
                          "llama.cpp's draft model decodes what the target verifies, too, in a pass more of each "
                          "round (mirrored), which these figures leave out"});
  }
  std::optional<Note> shortfall;
  for (const planning::PointPlan& point : p.points()) {
    const std::optional<Note> its_shortfall = memory_shortfall(p, {caches_of(point)});
    p.shortfalls.push_back(its_shortfall ? its_shortfall->message : "");
    if (!shortfall) shortfall = its_shortfall;
  }
  if (!shortfall) shortfall = memory_shortfall(p, scheduled_caches(p));
  if (shortfall) {
    p.warnings.push_back(*shortfall);
    p.shortfall = shortfall->message;
  }
  if (!p.question.emit) return;
  require_it_runs(shown, p, shortfall);
  p.config = config_of(runs, shown, p);
}

}  // namespace specdec::planner
