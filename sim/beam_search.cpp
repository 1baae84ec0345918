#include "sim/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

using Beams = std::vector<Beam>;

/// Rows after many texts, by a model that holds one at a time: it rolls back to the prefix shared with the next one.
class RowsOfBeams {
 public:
  RowsOfBeams(LanguageModelRef model, std::span<const Token> prompt)
      : model_(model), prompt_(prompt.size()), text_(prompt.begin(), prompt.end()) {
    model_.roll_back(0);
  }

  std::int64_t vocab_size() const { return model_.vocab_size(); }
  double operations(std::int64_t positions) const {
    return model_.operations_per_token() * static_cast<double>(positions);
  }

  /// Number of tokens of the prompt and the beam that the model already holds.
  std::size_t held_of(const Beam& beam) const {
    const auto held = static_cast<std::size_t>(model_.length());
    std::size_t common = std::min(held, prompt_);
    if (common < prompt_) return common;
    while (common < held && common - prompt_ < beam.tokens.size() && text_[common] == beam.tokens[common - prompt_])
      ++common;
    return common;
  }

  /// Writes the row after the prompt and the beam.
  void score(const Beam& beam, std::span<double> row) {
    std::size_t common = held_of(beam);
    text_.resize(prompt_);
    text_.insert(text_.end(), beam.tokens.begin(), beam.tokens.end());
    // The last token is scored for its row.
    common = std::min(common, text_.size() - 1);
    model_.roll_back(static_cast<std::int64_t>(common));
    model_.score(std::span(text_).subspan(common), row);
  }

 private:
  LanguageModelRef model_;
  std::size_t prompt_;
  /// The prompt and the last beam, of which the model holds some beginning.
  std::vector<Token> text_;
};

bool all_ended(const Beams& beams) {
  return std::all_of(beams.begin(), beams.end(), [](const Beam& beam) { return beam.ended; });
}

std::int64_t open_beams(const Beams& beams) {
  return std::count_if(beams.begin(), beams.end(), [](const Beam& beam) { return !beam.ended; });
}

/// The smallest probability among the best `width` tokens of a row, lowered to include any with the same logarithm by
/// rounding.
double least_to_keep(std::span<const double> row, std::size_t width) {
  if (width >= row.size()) return 0;
  constexpr std::greater<> least_first;
  std::vector<double> best(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
  std::ranges::make_heap(best, least_first);
  for (const double p : row.subspan(width)) {
    if (p <= best.front()) continue;
    std::ranges::pop_heap(best, least_first);
    best.back() = p;
    std::ranges::push_heap(best, least_first);
  }
  return best.front() * (1 - 1e-9);
}

/// One step of a search: the best continuations of the beams, with ended ones unchanged.
Beams continued(const Beams& beams, RowsOfBeams& model, std::int64_t width, const std::optional<Token>& end_token) {
  struct Continuation {
    double log_probability;
    std::size_t beam;
    Token token;
  };
  std::vector<Continuation> candidates;
  std::vector<std::size_t> open;
  for (std::size_t b = 0; b < beams.size(); ++b) {
    if (beams[b].ended) {
      candidates.push_back({beams[b].log_probability, b, 0});
    } else {
      open.push_back(b);
    }
  }
  std::vector<double> row(static_cast<std::size_t>(model.vocab_size()));
  while (!open.empty()) {
    // The one for which the model has to read least.
    const auto next = std::ranges::max_element(open, {}, [&](std::size_t b) { return model.held_of(beams[b]); });
    const std::size_t b = *next;
    open.erase(next);
    model.score(beams[b], row);
    const double least = least_to_keep(row, static_cast<std::size_t>(width));
    for (std::size_t x = 0; x < row.size(); ++x)
      if (row[x] > 0 && row[x] >= least)
        candidates.push_back({beams[b].log_probability + std::log(row[x]), b, static_cast<Token>(x)});
  }
  const auto kept = std::min(static_cast<std::size_t>(width), candidates.size());
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(candidates.begin(), end, candidates.end(), [](const Continuation& a, const Continuation& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  });
  Beams next;
  for (auto best = candidates.begin(); best != end; ++best) {
    next.push_back(beams[best->beam]);
    if (next.back().ended) continue;
    next.back().tokens.push_back(best->token);
    next.back().log_probability = best->log_probability;
    next.back().ended = best->token == end_token;
  }
  return next;
}

/// True if the target can continue: every beam that continues is among the drafted ones.
bool covers(const Beams& drafted, const Beams& beams) {
  return std::all_of(beams.begin(), beams.end(), [&](const Beam& beam) {
    return beam.ended ||
           std::any_of(drafted.begin(), drafted.end(), [&](const Beam& other) { return other.tokens == beam.tokens; });
  });
}

/// The distinct texts without their last tokens, of beams that continue.
std::int64_t parents_of(const Beams& beams) {
  std::set<std::vector<Token>> parents;
  for (const Beam& beam : beams)
    if (!beam.ended) parents.insert({beam.tokens.begin(), beam.tokens.end() - 1});
  return static_cast<std::int64_t>(parents.size());
}

class SpeculativeSearch {
 public:
  SpeculativeSearch(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                    const BeamSearchOptions& options, const BeamDrafting& drafting)
      : target_(target, prompt),
        draft_(draft, prompt),
        options_(options),
        drafting_(drafting),
        found_{{Beam{}}, {}, {}} {}

  BeamSearch finish() {
    Counters& counters = found_.counters;
    while (!done()) {
      draft_ahead();
      follow();
    }
    counters.operations = target_.operations(counters.target_positions) + draft_.operations(counters.draft_positions);
    return std::move(found_);
  }

 private:
  bool done() const { return found_.counters.tokens == options_.max_new_tokens || all_ended(found_.beams); }

  void draft_ahead() {
    Counters& counters = found_.counters;
    const std::int64_t gamma = std::min(drafting_.gamma, options_.max_new_tokens - counters.tokens - 1);
    counters.steps += 1;
    counters.target_calls += 1;
    found_.calls.push_back({.scored = open_beams(found_.beams)});
    BeamCall& call = found_.calls.back();
    levels_.clear();
    while (static_cast<std::int64_t>(levels_.size()) < gamma) {
      const Beams& last = levels_.empty() ? found_.beams : levels_.back();
      if (all_ended(last)) break;
      counters.draft_calls += 1;
      counters.draft_positions += open_beams(last) + (levels_.empty() ? unread_ : 0);
      Beams next = continued(last, draft_, drafting_.width, options_.end_token);
      call.scored += open_beams(next);
      levels_.push_back(std::move(next));
    }
    call.drafted = static_cast<std::int64_t>(levels_.size());
    counters.target_positions += call.scored;
  }

  /// The target's search, as far as there are rows. The rows are those of one call over all beams.
  void follow() {
    Counters& counters = found_.counters;
    std::size_t kept = 0;
    while (true) {
      found_.beams = continued(found_.beams, target_, options_.width, options_.end_token);
      counters.tokens += 1;
      if (kept == levels_.size() || !covers(levels_[kept], found_.beams)) break;
      ++kept;
      if (all_ended(found_.beams)) break;
    }
    found_.calls.back().kept = static_cast<std::int64_t>(kept);
    counters.drafted += static_cast<std::int64_t>(levels_.size());
    counters.accepted += static_cast<std::int64_t>(kept);
    counters.drafted_at.resize(std::max(counters.drafted_at.size(), levels_.size()));
    counters.accepted_at.resize(counters.drafted_at.size());
    for (std::size_t j = 0; j < levels_.size(); ++j) counters.drafted_at[j] += 1;
    for (std::size_t j = 0; j < kept; ++j) counters.accepted_at[j] += 1;
    unread_ = kept > 0 && kept == levels_.size() ? parents_of(found_.beams) : 0;
  }

  RowsOfBeams target_;
  RowsOfBeams draft_;
  const BeamSearchOptions& options_;
  const BeamDrafting& drafting_;
  BeamSearch found_;
  /// The draft's beams after each of its steps.
  std::vector<Beams> levels_;
  /// Prefixes that the draft has not scored because all of its steps were kept.
  std::int64_t unread_ = 0;
};

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

void require_valid_search(std::string_view function, const LanguageModelRef& model, std::span<const Token> prompt,
                          const BeamSearchOptions& options) {
  require_room_for_text(function, model.max_length(), prompt, options.max_new_tokens);
  core::require_in(function, "width", options.width, 1, unlimited);
}

}  // namespace

BeamSearch search_beams(LanguageModelRef target, std::span<const Token> prompt, const BeamSearchOptions& options) {
  require_valid_search("search_beams", target, prompt, options);
  RowsOfBeams rows(target, prompt);
  BeamSearch found{{Beam{}}, {}, {}};
  Counters& counters = found.counters;
  while (counters.tokens < options.max_new_tokens && !all_ended(found.beams)) {
    counters.tokens += 1;
    counters.target_calls += 1;
    counters.target_positions += open_beams(found.beams);
    found.calls.push_back({.scored = open_beams(found.beams)});
    found.beams = continued(found.beams, rows, options.width, options.end_token);
  }
  counters.operations = rows.operations(counters.target_positions);
  return found;
}

BeamSearch search_beams_speculatively(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                                      const BeamSearchOptions& options, const BeamDrafting& drafting) {
  constexpr std::string_view function = "search_beams_speculatively";
  require_one_vocabulary(function, target.vocab_size(), draft.vocab_size());
  require_valid_search(function, target, prompt, options);
  require_valid_search(function, draft, prompt, options);
  core::require_in(function, "drafted width", drafting.width, options.width, unlimited);
  core::require_in(function, "gamma", drafting.gamma, 0, unlimited);
  return SpeculativeSearch(target, draft, prompt, options, drafting).finish();
}

}  // namespace specdec::sim
