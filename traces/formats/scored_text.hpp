#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/trace_metadata.hpp"

namespace specdec::traces {

// A header of the library's own sources.

/// What an engine says that a text was sampled with; what it does not say stays empty.
struct SampledWith {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p, min_p;
  std::optional<bool> temperature_last;
  /// Some tokens' logits were changed first: an end token that is ignored, for instance.
  bool changes_logits = false;

  friend bool operator==(const SampledWith&, const SampledWith&) = default;
};

/// What one model said of one text: a reader appends positions, then finish() brings the lists to one length.
class ScoredText {
 public:
  /// The request's own id, empty where it has none that both models' files share.
  std::string id;
  std::int64_t line = 0;
  /// Tokens of the text before the first position, where the response says it.
  std::optional<std::int64_t> start;
  /// Whether the model itself wrote the text.
  bool generated = false;
  LogprobSpace space = LogprobSpace::unknown;
  SampledWith sampled;

  /// The emitted tokens: ids, or numbers of `texts` where ids are not given; -1 where neither is.
  std::vector<std::int32_t> token;
  /// Empty, or the tokens as long as `named_by_text()`.
  std::vector<std::string_view> texts;
  /// Of the emitted tokens; empty where the response has lists only.
  std::vector<float> logprob;
  /// 0 where unknown. finish() fills in what the lists tell: for a token outside of a list of k that is k + 1, the
  /// least that it can be.
  std::vector<std::int32_t> rank;

  /// The k most probable tokens of each position after finish(). Shape: ids, logprobs (positions, k).
  std::int64_t k = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;
  std::vector<float> tail;

  std::int64_t size() const { return static_cast<std::int64_t>(token.size()); }
  bool named_by_text() const { return !texts.empty(); }

  /// Forgets everything but the memory.
  void clear();
  /// The number of a text that has one, or -1.
  std::int32_t number_of(std::string_view text) const;
  /// The number of a token's text, a new one if it has none yet.
  std::int32_t number_of_text(std::string_view text);

  /// One entry of the list of the position that is being read, in any order.
  void list(std::int32_t listed, float listed_logprob, std::int32_t listed_rank = 0) {
    entries_.push_back({listed, listed_logprob, listed_rank});
  }
  /// As list(), for a token that is named by its text.
  void list_text(std::string_view text, float listed_logprob);
  /// The position is complete: its token, and what has been listed.
  void end_position(std::int32_t token_id, std::optional<float> token_logprob, std::int32_t token_rank = 0);
  /// Keeps the `length` positions from `first` on. Before finish().
  void keep(std::int64_t first, std::int64_t length);

  /// Which lists may hold the emitted token although it is not among the most probable.
  enum class Lists { most_probable, perhaps_emitted_too };

  /// Sorts the lists and cuts them to the longest k for which each surely holds the k most probable tokens; the rest is
  /// the tail, whose mass is 1 minus theirs, since log-probabilities are over the whole vocabulary.
  /// @return the first position whose k probabilities sum to more than 1 + 1e-3, if any
  std::optional<std::int64_t> finish(Lists lists);

 private:
  struct Entry {
    std::int32_t id;
    float logprob;
    std::int32_t rank;
  };
  std::span<Entry> entries_of(std::size_t position);
  std::size_t longest_sure_list(Lists lists);

  std::vector<Entry> entries_;
  std::vector<std::size_t> ends_;  ///< of the positions' entries
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

}  // namespace specdec::traces
