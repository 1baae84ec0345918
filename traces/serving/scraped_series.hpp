#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// The quantity that a series of an engine counts.
enum class ScrapedMetric {
  rounds,            ///< counter, verification rounds with a draft
  drafted,           ///< counter, drafted tokens
  accepted,          ///< counter, accepted drafts
  emitted,           ///< counter, tokens put out
  tokens_per_round,  ///< gauge, of the last interval of the engine
  draft_steps,       ///< gauge, how deep drafts go now
  verified_tokens,   ///< gauge, tokens that a round verifies now, the root included
  times,             ///< counter, times between two outputs of a request
  time_seconds,      ///< counter, their sum
  iterations,        ///< counter, iterations of the engine
  first_tokens,      ///< counter, requests that put out their first token
  accepted_at,       ///< counter by position in the draft
  drafted_at,        ///< counter by position in the draft
  times_up_to,       ///< counter by upper edge in seconds
};

/// A series that is read:
///
///   vllm:spec_decode_num_drafts_total, _num_draft_tokens_total, _num_accepted_tokens_total,
///     _num_accepted_tokens_per_pos_total{position="0"}; and where times are wanted (CountsSink::plain_windows)
///     vllm:inter_token_latency_seconds_sum, _count and _bucket{le="0.01"}, vllm:iteration_tokens_total_count and
///     vllm:time_to_first_token_seconds_count
///   llamacpp:, lmdeploy:  the same names
///   sglang:spec_verify_calls_total, generation_tokens_total, and the gauges spec_accept_length, spec_num_steps and
///     spec_num_draft_tokens; not spec_accept_rate, whose denominator depends on the release
///   trtllm_spec_decode_num_draft_tokens_total, _num_accepted_tokens_total, _drafted_tokens_total{token_position="0"},
///     _accepted_tokens_total{token_position="0"}
///   rapid_mlx_spec_decode_verify_calls_total, _attempts_total (drafted tokens), _accepts_total,
///     _drafted_by_depth_total{depth="1"}, _accepted_by_depth_total{depth="1"}
struct ScrapedName {
  std::string_view engine;
  ScrapedMetric metric;
  /// Name of the label that holds the position; empty for series without.
  std::string_view position_label;
  /// What that label calls the first position.
  std::int64_t first_position = 0;
};

/// Empty for every other series.
std::optional<ScrapedName> scraped_name(std::string_view metric);

/// One sample of a series, with the place that messages name.
struct ScrapedSample {
  std::filesystem::path file;
  std::int64_t line = 0;
  std::string_view metric;
  /// Without the metric's name.
  std::vector<CountLabel> labels;
  double value = 0;
  /// Unix seconds.
  std::optional<double> time_s;
};

/// Collects samples and hands over, for each set of labels without the position: its counts as a total where it was
/// scraped once, else the differences of consecutive scrapes as windows, those without a round left out.
///
/// A counter that went down was set to 0 by a restart: the window is then what it counted since, and a warning says so.
/// Series that SGLang's tensor-, pipeline- and expert-parallel ranks repeat are read from the lowest rank; its gauges
/// go to the counters whose labels do not contradict theirs. A draft whose length differs between two scrapes is none
/// that their window has. Counters of TensorRT-LLM that stand under different labels count the same rounds: they are
/// joined where no label contradicts.
class ScrapedSeries {
 public:
  explicit ScrapedSeries(std::string_view format) : format_(format) {}

  /// Samples that follow belong to a later scrape, but for those with a time of their own.
  void begin_scrape() { ++scrape_; }
  /// @throws FileError if the value is none that a counter can have, or the series occurs twice in one scrape
  void add(const ScrapedSample& sample);
  /// Counts a sample that was passed over.
  void count_other() { ++others_; }
  /// @throws FileError naming `file` if there is nothing to hand over, or if counts contradict each other
  void hand_over(const std::filesystem::path& file, const CountsSink& sink);

 private:
  /// A counter's value and the line that it stands on.
  struct Value {
    double value = 0;
    std::int64_t line = 0;
  };
  /// By metric, and by position or upper edge where it has them; at 0 where it has none.
  using Values = std::map<std::pair<ScrapedMetric, double>, Value>;
  /// Untimed samples of one scrape belong together, and samples of one time.
  using SnapshotKey = std::pair<std::int64_t, double>;
  struct Snapshot {
    std::size_t file = 0;
    std::int64_t line = 0;
    std::int64_t scrape = 0;
    std::optional<double> time_s;
    Values values;

    /// Null if it is not there.
    const Value* find(ScrapedMetric metric, double at = 0) const;
    /// The first at a place or behind it, of this metric or another; the first of all.
    Values::const_iterator begin_of(ScrapedMetric metric, double at = 0) const {
      return values.lower_bound({metric, at});
    }
    bool has(ScrapedMetric metric) const;
  };
  struct LabelSet {
    std::string_view engine;
    std::vector<CountLabel> labels;
    std::map<SnapshotKey, Snapshot> snapshots;

    bool has(ScrapedMetric metric) const;
    bool speculates() const;
    bool times_rounds() const { return has(ScrapedMetric::times); }
    /// Some series is in both.
    bool shares_metric(const LabelSet& other) const;
    /// Makes the other set's series and labels its own.
    void take(LabelSet part);
  };

  /// A counter that went down, from which value to which.
  struct Fall {
    ScrapedMetric metric;
    double before = 0;
    Value now;
  };

  class Window;
  using Metric = ScrapedMetric;

  /// "series" for one that the engine has not.
  static std::string_view metric_name(std::string_view engine, Metric metric);
  static bool is_gauge(Metric metric);
  static bool is_of_times(Metric metric);
  static bool is_by_position(Metric metric);
  static std::string labels_text(const std::vector<CountLabel>& labels);
  static std::string number(double value);

  LabelSet& label_set(std::string_view engine, std::vector<CountLabel> labels);
  Snapshot& snapshot(LabelSet& set, const ScrapedSample& sample);
  void drop_repeating_ranks(const CountsSink& sink);
  void join_emitted(const CountsSink& sink);
  void join_gauges();
  void join_positions(const CountsSink& sink);
  std::vector<Snapshot> in_order(LabelSet& set, const CountsSink& sink) const;
  bool hand_over(const LabelSet& set, const std::vector<Snapshot>& snapshots, const CountsSink& sink) const;
  const std::filesystem::path& file_of(const Snapshot& snapshot) const { return files_[snapshot.file]; }
  std::string place(const Snapshot& snapshot) const;

  std::string_view format_;
  std::int64_t scrape_ = 0;
  std::int64_t others_ = 0;
  std::vector<std::filesystem::path> files_;
  std::map<std::string, std::size_t> index_;
  std::vector<LabelSet> sets_;
};

}  // namespace specdec::traces
