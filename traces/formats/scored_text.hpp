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

// Internal header of the library.

/// The sampling settings that an engine states; others stay empty.
struct SampledWith {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p, min_p;
  std::optional<bool> temperature_last;
  /// The tokens that end a text were banned.
  bool bans_ends = false;
  /// Another change of a token's logit: the field that says so, and what it holds.
  struct Bias {
    std::string field, value;
    friend bool operator==(const Bias&, const Bias&) = default;
  };
  std::optional<Bias> bias;
  /// The engine reshapes by default, and does not say how it did here.
  bool cuts_unknown = false;

  friend bool operator==(const SampledWith&, const SampledWith&) = default;
};

/// One model's numbers for one text: a reader appends positions, then finish() gives all lists one length.
class ScoredText {
 public:
  /// The request's own id; empty if it has none that both models' files share.
  std::string id;
  std::int64_t line = 0;
  /// Number of tokens of the text before the first position, if the response states it.
  std::optional<std::int64_t> start;
  /// True if the model itself wrote the text.
  bool generated = false;
  LogprobSpace space = LogprobSpace::unknown;
  SampledWith sampled;

  /// The emitted tokens: ids, or indices into `texts` if ids are not given.
  std::vector<std::int32_t> token;
  /// The tokens' texts while `named_by_text()`; otherwise empty.
  std::vector<std::string_view> texts;
  /// Log-probabilities of the emitted tokens; empty if the response has lists only.
  std::vector<float> logprob;
  /// 0 if unknown. finish() fills in what the lists determine: for a token outside a list of k that is k + 1, its
  /// smallest possible value.
  std::vector<std::int32_t> rank;

  /// The k most probable tokens of each position after finish(). Shape: ids, logprobs (positions, k).
  std::int64_t k = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;
  std::vector<float> tail;

  std::int64_t size() const { return static_cast<std::int64_t>(token.size()); }
  bool named_by_text() const { return !texts.empty(); }

  /// The number of a text that has one, or -1.
  std::int32_t number_of(std::string_view text) const;
  /// The number of a token's text; a new one if it has none yet.
  std::int32_t number_of_text(std::string_view text);

  /// Adds one entry to the list of the current position, in any order.
  void list(std::int32_t listed, float listed_logprob, std::int32_t listed_rank = 0) {
    entries_.push_back({listed, listed_logprob, listed_rank});
  }
  /// As list(), for a token named by its text.
  void list_text(std::string_view text, float listed_logprob);
  /// Completes the position: its token, and the entries listed so far.
  void end_position(std::int32_t token_id, std::optional<float> token_logprob, std::int32_t token_rank = 0);
  /// Keeps the `length` positions from `first` on. Before finish().
  void keep(std::int64_t first, std::int64_t length);

  /// Lists of the most probable tokens alone, or those that may hold the emitted token although it is not among them.
  enum class Lists { most_probable, perhaps_emitted_too };

  /// Sorts the lists and truncates them to the longest k for which each certainly holds the k most probable tokens; the
  /// rest is the tail, whose mass is 1 minus theirs, since log-probabilities are over the whole vocabulary.
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
  std::vector<std::size_t> ends_;  ///< ends of the positions' entries
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

}  // namespace specdec::traces
