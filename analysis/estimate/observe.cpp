#include "analysis/estimate/observe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/observing.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::estimate {

using namespace observing;

namespace {

std::string sampling_text(const TraceMetadata& metadata) {
  const core::Standardisation sampling = sampling_of(metadata);
  std::string text = fmt::format("temperature {}", sampling.temperature);
  if (sampling.top_k > 0) text += fmt::format(", top-k {}", sampling.top_k);
  if (sampling.top_p < 1) text += fmt::format(", top-p {}", sampling.top_p);
  if (sampling.min_p > 0) text += fmt::format(", min-p {}", sampling.min_p);
  return text;
}

/// The reason why the rule cannot be evaluated; empty if it can.
std::optional<std::string> reason_against(const TraceMetadata& metadata, Tier tier, AcceptanceRule rule,
                                          const ObserveOptions& options) {
  if (at_temperature_zero(metadata)) return std::nullopt;
  if (tier == Tier::accepted_length) {
    if (metadata.acceptance.value_or(rule) == rule) return std::nullopt;
    return fmt::format("accepted lengths are those of the recorded rule, {}, and do not tell acceptance by {}",
                       name_of(*metadata.acceptance), name_of(rule));
  }
  if (stored_as_sampled(metadata, options)) return std::nullopt;
  const bool raw = metadata.logprob_space == LogprobSpace::raw;
  if (tier == Tier::full) {
    if (raw || (options.target && options.draft)) return std::nullopt;
    return fmt::format(
        "the text was sampled at {}, and the recording does not say whether its rows are those before or after that; "
        "set the metadata key logprob_space to raw or processed, or pass --assume-processed",
        sampling_text(metadata));
  }
  if (rule != AcceptanceRule::rejection) return std::nullopt;
  return fmt::format(
      "acceptance by {} needs the probabilities that were sampled from, but the text was sampled at {} and the "
      "recorded log-probabilities are {}; their normaliser is lost. Record full rows, or processed log-probabilities "
      "(vLLM: --logprobs-mode processed_logprobs), or text sampled at temperature 1 without top-k, top-p and min-p; "
      "--assume-processed takes the numbers as they are",
      name_of(rule), sampling_text(metadata), raw ? "raw" : "of unknown space");
}

/// Drafts that read their own states: their probabilities depend on the depth in the round.
bool reads_own_states(const std::string& draft_kind) {
  const std::string kind = traces::lower_case(draft_kind);
  constexpr std::array kinds{"eagle", "mtp", "medusa", "hydra", "multi-token", "multi_token"};
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const char* name) { return kind.find(name) != std::string::npos; });
}

void copy_keys(const PositionBatch& batch, Observations& out) {
  out.first = batch.first;
  out.size = batch.size;
  out.tier = batch.tier;
  out.sequence = batch.sequence;
  out.place = batch.place;
  out.token = batch.token;
  out.task = batch.task;
  out.prompt = batch.prompt;
}

}  // namespace

core::Standardisation sampling_of(const TraceMetadata& metadata) {
  return {.temperature = metadata.temperature.value_or(1),
          .top_k = metadata.top_k.value_or(0),
          .top_p = metadata.top_p.value_or(1),
          .min_p = metadata.min_p.value_or(0),
          .temperature_last = metadata.temperature_last.value_or(false)};
}

AcceptanceRule effective_rule(const TraceMetadata& metadata, const ObserveOptions& options) {
  return options.rule.value_or(metadata.acceptance.value_or(AcceptanceRule::rejection));
}

void require_rule_defined(const TraceMetadata& metadata, Tier tier, AcceptanceRule rule,
                          const ObserveOptions& options) {
  if (const auto reason = reason_against(metadata, tier, rule, options)) throw RuleUndefined(*reason);
}

Observer::Observer(TraceMetadata metadata, ObserveOptions options)
    : metadata_(std::move(metadata)), options_(std::move(options)), rule_(effective_rule(metadata_, options_)) {
  core::require_in("Observer", "threads", options_.threads, std::int64_t{1}, std::int64_t{1024});
  if (options_.tolerance) core::require_in("Observer", "tolerance", *options_.tolerance, 0, 1);
  core::require_in("Observer", "confidence_bins", options_.confidence_bins, std::int64_t{0}, std::int64_t{1024});
  for (const double lenience : options_.lenience) {
    core::require_in("Observer", "lenience", lenience, std::numeric_limits<double>::min(), 1);
  }
  const core::Standardisation sampling =
      stored_as_sampled(metadata_, options_) ? core::Standardisation{} : sampling_of(metadata_);
  target_ = options_.target.value_or(sampling);
  draft_ = options_.draft.value_or(sampling);
  require_valid(target_);
  require_valid(draft_);
  found_.lenience_tells = rule_of_lenience(metadata_, rule_) != AcceptanceRule::greedy;
  for (std::int64_t i = 0; i < options_.threads; ++i) workspaces_.push_back(std::make_unique<Workspace>());
}

Observer::~Observer() = default;
Observer::Observer(Observer&&) noexcept = default;
Observer& Observer::operator=(Observer&&) noexcept = default;

void Observer::merge(const Observer& other) {
  const Found& more = other.found_;
  text_source_.merge(other.text_source_);
  found_.largest_sum_error = std::max(found_.largest_sum_error, more.largest_sum_error);
  found_.lenience_tells = found_.lenience_tells || more.lenience_tells;
  found_.not_greedy += more.not_greedy;
  found_.underflowed += more.underflowed;
  found_.one_depth_of_stateful_draft = found_.one_depth_of_stateful_draft || more.one_depth_of_stateful_draft;
  found_.unused_depths = std::max(found_.unused_depths, more.unused_depths);
}

bool Observer::proposes_one_token() const { return rule_at_temperature(metadata_, rule_) != AcceptanceRule::rejection; }

std::int64_t Observer::replayed_depths(std::int64_t depths, std::int64_t max_gamma) const {
  if (depths == traces::every_depth) return max_gamma;
  return proposes_one_token() ? 1 : depths;
}

bool Observer::forgives_impossible_tokens() const {
  return metadata_.path == traces::TextSource::other || options_.target.has_value();
}

Observations Observer::observe(const PositionSource& source, const PositionBatch& batch) {
  require_rule_defined(metadata_, batch.tier, rule_, options_);
  Observations out;
  copy_keys(batch, out);
  out.rule = rule_;
  switch (batch.tier) {
    case Tier::full:
      observe_full(source, batch, out);
      break;
    case Tier::top_k:
      observe_top_k(source, batch, out);
      break;
    case Tier::scalar:
      observe_scalar(source, batch, out);
      break;
    case Tier::accepted_length:
      observe_accepted_length(batch, out);
      break;
  }
  const bool one_depth = batch.tier != Tier::accepted_length && !out.acceptance.empty() && out.depths == 1;
  if (one_depth && reads_own_states(metadata_.draft_kind)) found_.one_depth_of_stateful_draft = true;
  if (one_depth) found_.unused_depths = std::max(found_.unused_depths, batch.depths);
  for (const auto& workspace : workspaces_) {
    found_.largest_sum_error = std::max(found_.largest_sum_error, workspace->largest_sum_error);
    found_.lenience_tells |= workspace->lenience_tells;
  }
  if (!options_.target) text_source_.add(out);
  return out;
}

void Observer::observe_accepted_length(const PositionBatch& batch, Observations& out) const {
  out.accepted_length = batch.accepted_length;
  out.acceptance.lower = column(batch.size);
  for (std::int64_t i = 0; i < batch.size; ++i) {
    out.acceptance.lower[index(i)] = batch.accepted_length[index(i)] > 1 ? 1 : 0;
  }
}

std::vector<Note> Observer::notes() const {
  std::vector<Note> notes;
  const TextSourceResult text = text_source();
  if (text.suspicious()) notes.push_back({"text_not_from_target", text.warning()});
  if (found_.largest_sum_error > traces::row_sum_tolerance(traces::ElementType::f32)) {
    notes.push_back({"row_sums", fmt::format("sums of rows differ from 1 by up to {:.2g}; what is missing stays out of "
                                             "every sum, so acceptance at a position is uncertain by half of that",
                                             found_.largest_sum_error)});
  }
  if (found_.not_greedy > 0) {
    notes.push_back({"not_greedy_text",
                     fmt::format("{} tokens of a text of temperature 0 are not the target's first by rank; they count "
                                 "as rejected",
                                 found_.not_greedy)});
  }
  if (found_.underflowed > 0) {
    notes.push_back(
        {"underflowed_tokens",
         fmt::format("{} emitted tokens have probability 0 in rows of F16, which round what lies below 3e-8 "
                     "to 0; their acceptance by rejection is taken for unknown",
                     found_.underflowed)});
  }
  if (found_.one_depth_of_stateful_draft) {
    notes.push_back({"approximate_replay",
                     fmt::format("a draft of kind \"{}\" reads its own states, but its acceptance is seen at one depth "
                                 "only: replay is approximate; record q.token_logprob as [positions, depths], "
                                 "without rows, for the rule rejection",
                                 metadata_.draft_kind)});
  }
  if (found_.unused_depths > 1) {
    notes.push_back({"unused_depths",
                     fmt::format("q.token_logprob has {} depths, but whole rows, lists of top tokens and ranks are "
                                 "replayed at one",
                                 found_.unused_depths)});
  }
  return notes;
}

}  // namespace specdec::estimate
