#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/serving/scraped_series.hpp"

namespace specdec::traces {

/// The counts of one label set between two scrapes, or until one where there is none before it.
class ScrapedSeries::Window {
 public:
  /// The counter that went down between two scrapes, with its values; null where none did. One process counts all
  /// series of a set, so that they restart together.
  static std::optional<Fall> fall_between(const Snapshot& before, const Snapshot& now) {
    for (const auto& [series, old] : before.values) {
      const auto [metric, at] = series;
      if (is_gauge(metric) || metric == Metric::times_up_to) continue;
      const Value* const found = now.find(metric, at);
      const bool is_gone = found == nullptr && is_by_position(metric) && now.has(metric);
      if (is_gone) return Fall{metric, old.value, {0, now.line}};
      if (found != nullptr && found->value < old.value) return Fall{metric, old.value, *found};
    }
    return std::nullopt;
  }

  Window(const ScrapedSeries& series, const LabelSet& set, const Snapshot* before, const Snapshot& now,
         const CountsSink& sink)
      : series_(series), set_(set), before_(before), now_(now), sink_(sink) {}

  ServingCounts counts() {
    require_all_series();
    read_counters();
    infer_shape();
    if (sink_.plain_windows) read_times();
    return std::move(counts_);
  }

 private:
  std::string_view name(Metric metric) const { return metric_name(set_.engine, metric); }

  [[noreturn]] void refuse(std::int64_t line, std::string field, std::string found, std::string expected) const {
    if (before_ != nullptr) field += " since the scrape before";
    throw FileError(series_.file_of(now_), FileError::line(line), std::move(field), std::move(found),
                    std::move(expected));
  }

  void warn(std::string code, std::string_view message) const {
    sink_.warn({std::move(code), fmt::format("{}: {}", series_.place(now_), message)});
  }

  /// A scrape that was cut off between two lines lacks those behind the cut.
  void require_all_series() const {
    if (before_ == nullptr) return;
    for (const auto& [series, value] : before_->values) {
      const Metric metric = series.first;
      if (is_gauge(metric) || is_of_times(metric) || is_by_position(metric) || now_.has(metric)) continue;
      refuse(now_.line, std::string(name(metric)), "missing", fmt::format("given, as by {}", series_.place(*before_)));
    }
  }

  /// Absent where a scrape lacks the series.
  std::optional<double> change(Metric metric) const {
    const Value* const now = now_.find(metric);
    if (now == nullptr || (before_ != nullptr && !before_->has(metric))) return std::nullopt;
    return now->value - before(metric);
  }

  /// The value in the scrape before; 0 where it lacks the series.
  double before(Metric metric, double at = 0) const {
    const Value* const old = before_ == nullptr ? nullptr : before_->find(metric, at);
    return old == nullptr ? 0 : old->value;
  }

  std::vector<double> changes(Metric metric) const {
    std::vector<double> result;
    for (auto one = now_.begin_of(metric); one != now_.values.end() && one->first.first == metric; ++one) {
      const double position = one->first.second;
      // These make a position's series when they first count there.
      const bool begins_late = set_.engine == "tensorrt-llm" || set_.engine == "rapid-mlx";
      if (position != static_cast<double>(result.size()) && !begins_late) {
        refuse(one->second.line, std::string(name(metric)), fmt::format("missing at position {}", result.size()),
               fmt::format("given for all positions up to {}", position));
      }
      result.resize(static_cast<std::size_t>(position));
      result.push_back(one->second.value - before(metric, position));
    }
    return result;
  }

  void read_counters() {
    counts_.file = series_.file_of(now_);
    counts_.line = now_.line;
    counts_.engine = set_.engine;
    counts_.format = series_.format_;
    counts_.labels = set_.labels;
    counts_.end_s = now_.time_s;
    counts_.rounds = change(Metric::rounds);
    counts_.drafted = change(Metric::drafted);
    counts_.accepted = change(Metric::accepted);
    counts_.emitted = change(Metric::emitted);
    if (counts_.rounds) counts_.steps = change(Metric::times);
    counts_.accepted_at = changes(Metric::accepted_at);
    counts_.drafted_at = changes(Metric::drafted_at);
    if (!counts_.drafted_at.empty()) {
      counts_.accepted_at.resize(std::max(counts_.accepted_at.size(), counts_.drafted_at.size()));
      if (!counts_.rounds) counts_.rounds = counts_.drafted_at.front();
    }
    const Value* const mean = now_.find(Metric::tokens_per_round);
    if (mean == nullptr || !(mean->value > 0)) return;
    if (counts_.rounds && counts_.emitted) return state_mean(mean->value);
    counts_.tokens_per_round = mean->value;
    counts_.from_rates = true;
  }

  /// The gauge is of the last interval of the engine, which need not be like the window.
  void state_mean(double now) {
    constexpr double of_another_moment = 1.5;
    const bool known = before_ != nullptr && before_->has(Metric::tokens_per_round);
    const double then = known ? before(Metric::tokens_per_round) : now;
    counts_.stated.push_back({"tokens per step", fmt::format("{}, {:g}", name(Metric::tokens_per_round), now),
                              std::min(now, then) / of_another_moment, std::max(now, then) * of_another_moment});
  }

  /// A gauge that is the same at both ends of the window; 0 where it is not, and where there is none.
  std::int64_t constant_gauge(Metric metric) const {
    const Value* const now = now_.find(metric);
    if (now == nullptr || (before_ != nullptr && before(metric) != now->value)) return 0;
    return static_cast<std::int64_t>(now->value);
  }

  /// The times of rounds, and how many iterations they are of. An engine of another release lacks series of them.
  void read_times() {
    const auto count = change(Metric::times), seconds = change(Metric::time_seconds);
    const auto iterations = change(Metric::iterations), first_tokens = change(Metric::first_tokens);
    if (!count || *count == 0 || !seconds || !iterations || !first_tokens || !now_.has(Metric::times_up_to)) return;
    RoundTimes times = {*count, *seconds, *iterations, *first_tokens, {}};
    double below = 0;
    // The last of all metrics.
    for (auto one = now_.begin_of(Metric::times_up_to); one != now_.values.end(); ++one) {
      const double edge = one->first.second, up_to = one->second.value - before(Metric::times_up_to, edge);
      const std::int64_t line = one->second.line;
      const std::string field = fmt::format("{} up to {}", name(Metric::times_up_to), edge);
      if (up_to < below) refuse(line, field, number(up_to), fmt::format("at least {}, as below it", below));
      if (up_to > *count)
        refuse(line, field, number(up_to), fmt::format("at most {}, {}", name(Metric::times), *count));
      below = up_to;
      times.up_to.emplace(edge, up_to);
    }
    times.up_to[std::numeric_limits<double>::infinity()] = *count;
    require_within_buckets(times);
    counts_.round_times = std::move(times);
  }

  /// The sum of the times lies between those of the buckets' lower and upper edges.
  void require_within_buckets(const RoundTimes& times) const {
    double least = 0, most = 0;
    for (const TimesBetween& bucket : times.buckets()) {
      least += bucket.count * bucket.low;
      most += bucket.count * bucket.high;
    }
    const Value& sum = *now_.find(Metric::time_seconds);
    // The loss to rounding in the difference of two sums.
    const double lost = 1e-9 * sum.value;
    if (least - lost <= times.seconds && times.seconds <= most + lost) return;
    refuse(sum.line, std::string(name(Metric::time_seconds)), number(times.seconds),
           fmt::format("between {} and {}, which the buckets of {} times allow", number(least), number(most),
                       number(times.count)));
  }

  /// Drafts that fill a block in one step (DFlash) and trees of depth 1 say the same, and remain unknown.
  void read_gauges() {
    const std::int64_t steps = constant_gauge(Metric::draft_steps), verified = constant_gauge(Metric::verified_tokens);
    if (steps == 0) {
      if (now_.has(Metric::draft_steps)) {
        warn("draft_length_varies",
             fmt::format("{} of {} is not the same throughout: the length of its drafts is taken as unknown",
                         name(Metric::draft_steps), labels_text(set_.labels)));
      }
      return;
    }
    if (steps == 1 && verified > 2) return;
    counts_.gamma = steps;
    if (verified == 0) return;
    counts_.shape = verified > steps + 1 ? DraftShape::tree : DraftShape::chain;
    if (counts_.shape == DraftShape::tree) counts_.verified_per_round = verified;
  }

  void infer_shape() {
    if (set_.engine == "sglang") return read_gauges();
    if (set_.engine == "tensorrt-llm") return infer_paths();
    counts_.shape = DraftShape::chain;
    if (set_.engine == "llama.cpp") counts_.rule = AcceptanceRule::greedy_draft;
    // llama.cpp counts at the positions where it accepted something, which may be fewer than it drafts.
    const auto positions = static_cast<double>(counts_.accepted_at.size());
    if (positions > 0 && counts_.drafted.value_or(0) <= counts_.rounds.value_or(0) * positions)
      counts_.gamma = static_cast<std::int64_t>(counts_.accepted_at.size());
  }

  /// TensorRT-LLM says how long the paths are and how many tokens hang on them: more tokens than depths are a tree.
  void infer_paths() {
    if (counts_.drafted_at.empty()) return;
    counts_.gamma = static_cast<std::int64_t>(counts_.drafted_at.size());
    if (counts_.drafted)
      counts_.shape = *counts_.drafted > sum_of(counts_.drafted_at) ? DraftShape::tree : DraftShape::chain;
    if (!counts_.accepted) counts_.accepted = sum_of(counts_.accepted_at);
  }

  const ScrapedSeries& series_;
  const LabelSet& set_;
  const Snapshot* before_;
  const Snapshot& now_;
  const CountsSink& sink_;
  ServingCounts counts_;
};

bool ScrapedSeries::hand_over(const LabelSet& set, const std::vector<Snapshot>& snapshots,
                              const CountsSink& sink) const {
  const auto counted = [](const ServingCounts& counts) {
    if (counts.round_times) return true;
    if (counts.rounds) return *counts.rounds > 0;
    if (counts.drafted) return *counts.drafted > 0;
    return counts.accepted.value_or(0) > 0 || counts.tokens_per_round.has_value();
  };
  bool any = false;
  const auto take = [&](const ServingCounts& counts) {
    if (!counted(counts)) return;
    if (set.engine == "sglang" && !any) {
      if (counts.emitted) {
        sink.warn({"first_tokens_included",
                   fmt::format("{}: {} has each request's first token, which no verification round put out",
                               counts.place(), metric_name("sglang", Metric::emitted))});
      } else {
        sink.warn(
            {"mean_without_counts", fmt::format("{}: {} is the mean over the engine's last interval, of unknown weight",
                                                counts.place(), metric_name("sglang", Metric::tokens_per_round))});
      }
    }
    any = true;
    sink.take(counts);
  };
  if (snapshots.size() == 1) {
    take(Window(*this, set, nullptr, snapshots.front(), sink).counts());
    return any;
  }
  std::size_t restarts = 0;
  for (std::size_t i = 1; i < snapshots.size(); ++i) {
    // Only a server that is started anew begins or ceases to draft.
    const auto drafts = [](const Snapshot& snapshot) { return snapshot.has(Metric::rounds); };
    if (set.engine == "vllm" && drafts(snapshots[i - 1]) != drafts(snapshots[i])) continue;
    if (const auto fall = Window::fall_between(snapshots[i - 1], snapshots[i])) {
      const std::string field(metric_name(set.engine, fall->metric));
      if (++restarts + 1 == snapshots.size()) {
        throw FileError(file_of(snapshots[i]), FileError::line(fall->now.line), field, number(fall->now.value),
                        fmt::format("at least {}, as by {}: the server was restarted, or the files are in the wrong "
                                    "order; a scrape alone holds what was counted since the start",
                                    number(fall->before), place(snapshots[i - 1])));
      }
      sink.warn({"counter_reset", fmt::format("{}: {} of {} went down from {} to {}: a restart; the window is left out",
                                              place(snapshots[i]), field, labels_text(set.labels), number(fall->before),
                                              number(fall->now.value))});
      continue;
    }
    ServingCounts counts = Window(*this, set, &snapshots[i - 1], snapshots[i], sink).counts();
    counts.unit = CountUnit::window;
    counts.between_scrapes = true;
    counts.begin_s = snapshots[i - 1].time_s;
    take(counts);
  }
  return any;
}

}  // namespace specdec::traces
