#include "traces/serving/scraped_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;
using Metric = ScrapedMetric;

struct NamedMetric {
  std::string_view name;
  ScrapedName meaning;
};

constexpr std::array<NamedMetric, 31> named_metrics = {{
    {"vllm:spec_decode_num_drafts_total", {"vllm", Metric::rounds, ""}},
    {"vllm:spec_decode_num_draft_tokens_total", {"vllm", Metric::drafted, ""}},
    {"vllm:spec_decode_num_accepted_tokens_total", {"vllm", Metric::accepted, ""}},
    {"vllm:spec_decode_num_accepted_tokens_per_pos_total", {"vllm", Metric::accepted_at, "position"}},
    {"vllm:inter_token_latency_seconds_count", {"vllm", Metric::times, ""}},
    {"vllm:inter_token_latency_seconds_sum", {"vllm", Metric::time_seconds, ""}},
    {"vllm:inter_token_latency_seconds_bucket", {"vllm", Metric::times_up_to, "le"}},
    {"vllm:iteration_tokens_total_count", {"vllm", Metric::iterations, ""}},
    {"vllm:time_to_first_token_seconds_count", {"vllm", Metric::first_tokens, ""}},
    {"llamacpp:spec_decode_num_drafts_total", {"llama.cpp", Metric::rounds, ""}},
    {"llamacpp:spec_decode_num_draft_tokens_total", {"llama.cpp", Metric::drafted, ""}},
    {"llamacpp:spec_decode_num_accepted_tokens_total", {"llama.cpp", Metric::accepted, ""}},
    {"llamacpp:spec_decode_num_accepted_tokens_per_pos_total", {"llama.cpp", Metric::accepted_at, "position"}},
    {"lmdeploy:spec_decode_num_drafts_total", {"lmdeploy", Metric::rounds, ""}},
    {"lmdeploy:spec_decode_num_draft_tokens_total", {"lmdeploy", Metric::drafted, ""}},
    {"lmdeploy:spec_decode_num_accepted_tokens_total", {"lmdeploy", Metric::accepted, ""}},
    {"lmdeploy:spec_decode_num_accepted_tokens_per_pos_total", {"lmdeploy", Metric::accepted_at, "position"}},
    {"rapid_mlx_spec_decode_verify_calls_total", {"rapid-mlx", Metric::rounds, ""}},
    {"rapid_mlx_spec_decode_attempts_total", {"rapid-mlx", Metric::drafted, ""}},
    {"rapid_mlx_spec_decode_accepts_total", {"rapid-mlx", Metric::accepted, ""}},
    {"rapid_mlx_spec_decode_drafted_by_depth_total", {"rapid-mlx", Metric::drafted_at, "depth", 1}},
    {"rapid_mlx_spec_decode_accepted_by_depth_total", {"rapid-mlx", Metric::accepted_at, "depth", 1}},
    {"sglang:spec_verify_calls_total", {"sglang", Metric::rounds, ""}},
    {"sglang:generation_tokens_total", {"sglang", Metric::emitted, ""}},
    {"sglang:spec_accept_length", {"sglang", Metric::tokens_per_round, ""}},
    {"sglang:spec_num_steps", {"sglang", Metric::draft_steps, ""}},
    {"sglang:spec_num_draft_tokens", {"sglang", Metric::verified_tokens, ""}},
    {"trtllm_spec_decode_num_draft_tokens_total", {"tensorrt-llm", Metric::drafted, ""}},
    {"trtllm_spec_decode_num_accepted_tokens_total", {"tensorrt-llm", Metric::accepted, ""}},
    {"trtllm_spec_decode_drafted_tokens_total", {"tensorrt-llm", Metric::drafted_at, "token_position"}},
    {"trtllm_spec_decode_accepted_tokens_total", {"tensorrt-llm", Metric::accepted_at, "token_position"}},
}};

constexpr std::int64_t most_scraped_positions = 1024;
/// Queries of one moment that were sent one after the other.
constexpr double same_moment_s = 5;

/// The upper edge of a bucket: a number above 0, or "+Inf".
std::optional<double> edge_in(const std::string& text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  const auto edge = number_in<double>(text);
  return edge && std::isfinite(*edge) && *edge > 0 ? edge : std::nullopt;
}

bool is_parallel_rank(std::string_view label) {
  return label == "tp_rank" || label == "pp_rank" || label == "moe_ep_rank";
}

std::string key_of(std::string_view engine, const std::vector<CountLabel>& labels) {
  std::string key(engine);
  for (const CountLabel& label : labels)
    key += fmt::format("{}{}={}{}", '\0', label.name, label.value.size(), label.value);
  return key;
}

/// Whether no label that both have differs.
bool compatible(const std::vector<CountLabel>& a, const std::vector<CountLabel>& b) {
  return std::all_of(a.begin(), a.end(), [&](const CountLabel& label) {
    return std::none_of(b.begin(), b.end(), [&](const CountLabel& other) {
      return other.name == label.name && other.value != label.value;
    });
  });
}

/// @param first  the number of the first position
std::optional<double> position_in(const std::string& text, std::int64_t first) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const std::int64_t position = std::stoll(text) - first;
  if (position < 0 || position >= most_scraped_positions) return std::nullopt;
  return static_cast<double>(position);
}

/// Removes the elements that are marked.
template <class Item>
void erase_marked(std::vector<Item>& items, const std::vector<bool>& marked) {
  std::size_t i = 0;
  std::erase_if(items, [&](const Item&) { return marked[i++]; });
}

}  // namespace

std::optional<ScrapedName> scraped_name(std::string_view metric) {
  const auto found = std::find_if(named_metrics.begin(), named_metrics.end(),
                                  [&](const NamedMetric& named) { return named.name == metric; });
  if (found == named_metrics.end()) return std::nullopt;
  return found->meaning;
}

std::string_view ScrapedSeries::metric_name(std::string_view engine, Metric metric) {
  const auto found = std::find_if(named_metrics.begin(), named_metrics.end(), [&](const NamedMetric& named) {
    return named.meaning.engine == engine && named.meaning.metric == metric;
  });
  return found == named_metrics.end() ? "series" : found->name;
}

bool ScrapedSeries::is_gauge(Metric metric) {
  return metric == Metric::tokens_per_round || metric == Metric::draft_steps || metric == Metric::verified_tokens;
}

bool ScrapedSeries::is_by_position(Metric metric) {
  return metric == Metric::accepted_at || metric == Metric::drafted_at;
}

bool ScrapedSeries::is_of_times(Metric metric) {
  return metric == Metric::times || metric == Metric::time_seconds || metric == Metric::times_up_to ||
         metric == Metric::iterations || metric == Metric::first_tokens;
}

std::string ScrapedSeries::labels_text(const std::vector<CountLabel>& labels) {
  std::string text;
  for (const CountLabel& label : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", label.name, printable(label.value));
  }
  return fmt::format("{{{}}}", text);
}

std::string ScrapedSeries::number(double value) { return fmt::format("{}", value); }

const ScrapedSeries::Value* ScrapedSeries::Snapshot::find(Metric metric, double at) const {
  const auto found = values.find({metric, at});
  return found == values.end() ? nullptr : &found->second;
}

bool ScrapedSeries::Snapshot::has(Metric metric) const {
  const auto first = begin_of(metric);
  return first != values.end() && first->first.first == metric;
}

bool ScrapedSeries::LabelSet::has(Metric metric) const {
  return std::any_of(snapshots.begin(), snapshots.end(), [&](const auto& entry) { return entry.second.has(metric); });
}

bool ScrapedSeries::LabelSet::shares_metric(const LabelSet& other) const {
  return std::any_of(named_metrics.begin(), named_metrics.end(), [&](const NamedMetric& named) {
    return named.meaning.engine == engine && has(named.meaning.metric) && other.has(named.meaning.metric);
  });
}

bool ScrapedSeries::LabelSet::speculates() const {
  const auto of_rounds = [](const auto& value) {
    return value.first.first != Metric::emitted && !is_of_times(value.first.first);
  };
  return std::any_of(snapshots.begin(), snapshots.end(), [&](const auto& entry) {
    return std::any_of(entry.second.values.begin(), entry.second.values.end(), of_rounds);
  });
}

void ScrapedSeries::LabelSet::take(LabelSet part) {
  for (auto& [key, from] : part.snapshots) {
    const auto [entry, is_new] = snapshots.try_emplace(key, from);
    if (!is_new) entry->second.values.merge(from.values);
  }
  const auto known = [&](const CountLabel& label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  std::remove_copy_if(part.labels.begin(), part.labels.end(), std::back_inserter(labels), known);
}

ScrapedSeries::LabelSet& ScrapedSeries::label_set(std::string_view engine, std::vector<CountLabel> labels) {
  std::sort(labels.begin(), labels.end(), [](const CountLabel& a, const CountLabel& b) { return a.name < b.name; });
  const auto [entry, is_new] = index_.try_emplace(key_of(engine, labels), sets_.size());
  if (is_new) sets_.push_back({engine, std::move(labels), {}});
  return sets_[entry->second];
}

ScrapedSeries::Snapshot& ScrapedSeries::snapshot(LabelSet& set, const ScrapedSample& sample) {
  const SnapshotKey key = sample.time_s ? SnapshotKey(-1, *sample.time_s) : SnapshotKey(scrape_, 0.0);
  const auto [entry, is_new] = set.snapshots.try_emplace(key);
  Snapshot& result = entry->second;
  if (is_new) {
    if (files_.empty() || files_.back() != sample.file) files_.push_back(sample.file);
    result.file = files_.size() - 1;
    result.line = sample.line;
    result.scrape = scrape_;
    result.time_s = sample.time_s;
  }
  return result;
}

void ScrapedSeries::add(const ScrapedSample& sample) {
  const auto name = scraped_name(sample.metric);
  const auto refuse = [&](std::string found, std::string expected) {
    throw FileError(sample.file, FileError::line(sample.line), std::string(sample.metric), std::move(found),
                    std::move(expected));
  };
  if (!name) return count_other();
  std::vector<CountLabel> labels;
  std::optional<double> place;
  const bool by_edge = name->metric == Metric::times_up_to;
  for (const CountLabel& label : sample.labels) {
    if (name->engine == "sglang" && label.name == "engine_type" && label.value == "draft") return count_other();
    if (name->position_label.empty() || label.name != name->position_label) {
      labels.push_back(label);
      continue;
    }
    place = by_edge ? edge_in(label.value) : position_in(label.value, name->first_position);
    if (!place) {
      refuse(fmt::format("of {} \"{}\"", label.name, printable(label.value)),
             by_edge ? "of an edge above 0, or of +Inf"
                     : fmt::format("of a position, an integer in [{}, {}]", name->first_position,
                                   name->first_position + most_scraped_positions - 1));
    }
  }
  if (!name->position_label.empty() && !place) {
    refuse("without the label " + std::string(name->position_label),
           by_edge ? "of an upper edge" : "of a position in the draft");
  }
  const bool gauge = is_gauge(name->metric);
  if (gauge && !(sample.value > 0)) return;
  if (gauge && name->metric != Metric::tokens_per_round &&
      !(sample.value <= most_scraped_positions && std::floor(sample.value) == sample.value)) {
    refuse(number(sample.value), fmt::format("a number of tokens, an integer in [0, {}]", most_scraped_positions));
  }
  if (name->metric == Metric::tokens_per_round && !(1 <= sample.value && sample.value <= most_scraped_positions)) {
    refuse(number(sample.value), fmt::format("a mean of tokens per round, in [1, {}]", most_scraped_positions));
  }
  const bool measured = name->metric == Metric::time_seconds;
  if (measured && !(0 <= sample.value && sample.value <= largest_count)) {
    refuse(number(sample.value), "a sum of seconds, in [0, 2^53]");
  }
  if (!gauge && !measured &&
      !(0 <= sample.value && sample.value <= largest_count && std::floor(sample.value) == sample.value)) {
    refuse(number(sample.value), "the value of a counter, an integer in [0, 2^53] (and no rate() of it)");
  }
  LabelSet& set = label_set(name->engine, std::move(labels));
  // Sets of labels are compared in pairs.
  constexpr std::size_t most_sets = 20000;
  if (sets_.size() > most_sets) refuse(fmt::format("under more than {} sets of labels", most_sets), "of fewer models or processes");
  Snapshot& now = snapshot(set, sample);
  const bool is_new =
      now.values.emplace(std::pair(name->metric, place.value_or(0)), Value{sample.value, sample.line}).second;
  if (!is_new) refuse("given twice with the same labels", "given once in a scrape");
}

std::string ScrapedSeries::place(const Snapshot& snapshot) const {
  return fmt::format("{}:{}", file_of(snapshot).string(), snapshot.line);
}

void ScrapedSeries::drop_repeating_ranks(const CountsSink& sink) {
  std::map<std::string, std::vector<std::size_t>> repeats;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    if (sets_[i].engine != "sglang" || !sets_[i].speculates()) continue;
    // Series without a rank are of another process, and repeat none.
    std::vector<CountLabel> labels = sets_[i].labels;
    for (CountLabel& label : labels) {
      if (is_parallel_rank(label.name)) label.value.clear();
    }
    repeats[key_of("", labels)].push_back(i);
  }
  std::vector<bool> dropped(sets_.size());
  for (const auto& [key, sets] : repeats) {
    if (sets.size() == 1) continue;
    const auto ranks = [&](std::size_t i) {
      std::vector<std::pair<std::size_t, std::string>> result;
      for (const CountLabel& label : sets_[i].labels) {
        if (is_parallel_rank(label.name)) result.emplace_back(label.value.size(), label.value);
      }
      return result;
    };
    const std::size_t lowest =
        *std::min_element(sets.begin(), sets.end(), [&](std::size_t a, std::size_t b) { return ranks(a) < ranks(b); });
    for (const std::size_t i : sets) dropped[i] = i != lowest;
    sink.warn({"rank_repeats_ignored", fmt::format("{}: {} ranks repeat the series of {}; one is read",
                                                   place(sets_[lowest].snapshots.begin()->second), sets.size(),
                                                   labels_text(sets_[lowest].labels))});
  }
  erase_marked(sets_, dropped);
}

/// SGLang counts tokens and verification rounds in different processes, so under different labels.
void ScrapedSeries::join_emitted(const CountsSink& sink) {
  const auto is_tokens = [](const LabelSet& set) { return set.has(Metric::emitted) && !set.has(Metric::rounds); };
  const auto is_rounds = [](const LabelSet& set) { return set.has(Metric::rounds) && !set.has(Metric::emitted); };
  std::vector<LabelSet*> all_rounds;
  for (LabelSet& set : sets_) {
    if (set.engine == "sglang" && is_rounds(set)) all_rounds.push_back(&set);
  }
  for (LabelSet& tokens : sets_) {
    if (tokens.engine != "sglang" || !is_tokens(tokens)) continue;
    std::vector<LabelSet*> matches;
    std::copy_if(all_rounds.begin(), all_rounds.end(), std::back_inserter(matches),
                 [&](const LabelSet* rounds) { return compatible(rounds->labels, tokens.labels); });
    if (matches.empty()) continue;
    if (matches.size() > 1) {
      const Snapshot& first = tokens.snapshots.begin()->second;
      sink.warn({"tokens_of_several_series",
                 fmt::format("{}: {} of {} belong to {} series of verification rounds, so that none has its tokens",
                             place(first), metric_name("sglang", Metric::emitted), labels_text(tokens.labels),
                             matches.size())});
      continue;
    }
    // Newer releases count streamed tokens and others apart.
    for (auto& [key, now] : matches.front()->snapshots) {
      const auto found = tokens.snapshots.find(key);
      const Value* const value = found == tokens.snapshots.end() ? nullptr : found->second.find(Metric::emitted);
      if (value == nullptr) continue;
      const auto [entry, is_new] = now.values.emplace(std::pair(Metric::emitted, 0.0), *value);
      if (!is_new) entry->second.value += value->value;
    }
  }
  const auto is_idle = [&](const LabelSet& set) {
    return !set.speculates() && !(sink.plain_windows && set.times_rounds());
  };
  std::erase_if(sets_, is_idle);
}

/// SGLang's gauges are those of a scheduler, and stand under its rank; the counters of the same rounds do not.
void ScrapedSeries::join_gauges() {
  const auto is_rounds = [](const LabelSet& set) { return set.engine == "sglang" && set.has(Metric::rounds); };
  std::vector<bool> joined(sets_.size());
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const LabelSet& gauges = sets_[i];
    if (gauges.engine != "sglang" || is_rounds(gauges)) continue;
    for (LabelSet& rounds : sets_) {
      if (!is_rounds(rounds) || !compatible(rounds.labels, gauges.labels)) continue;
      joined[i] = true;
      for (const auto& [key, from] : gauges.snapshots) {
        const auto now = rounds.snapshots.find(key);
        if (now == rounds.snapshots.end()) continue;
        for (const auto& [series, value] : from.values) {
          const auto [entry, is_new] = now->second.values.try_emplace(series, value);
          // Schedulers that draft differently have no length in common.
          if (!is_new && entry->second.value != value.value) entry->second.value = 0;
        }
      }
    }
  }
  erase_marked(sets_, joined);
}

/// The counters of one server of TensorRT-LLM may stand under different labels, and would count its rounds twice.
void ScrapedSeries::join_positions(const CountsSink& sink) {
  const auto of_engine = [](const LabelSet& set, Metric metric) {
    return set.engine == "tensorrt-llm" && set.has(metric);
  };
  const bool by_position =
      std::any_of(sets_.begin(), sets_.end(), [&](const auto& set) { return of_engine(set, Metric::drafted_at); });
  const Metric main = by_position ? Metric::drafted_at : Metric::drafted;
  const auto joins = [&](const LabelSet& whole, const LabelSet& part) {
    return of_engine(whole, main) && part.engine == whole.engine && !part.has(main) &&
           compatible(whole.labels, part.labels) && !whole.shares_metric(part);
  };
  std::vector<std::pair<std::size_t, std::size_t>> joined;
  std::vector<bool> left_out(sets_.size());
  for (std::size_t part = 0; part < sets_.size(); ++part) {
    std::vector<std::size_t> wholes;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (joins(sets_[i], sets_[part])) wholes.push_back(i);
    }
    if (wholes.empty()) continue;
    const LabelSet& whole = sets_[wholes.front()];
    const auto also = [&](const LabelSet& other) {
      return &other != &sets_[part] && joins(whole, other) && other.shares_metric(sets_[part]);
    };
    left_out[part] = true;
    if (wholes.size() == 1 && std::none_of(sets_.begin(), sets_.end(), also)) {
      joined.emplace_back(wholes.front(), part);
      continue;
    }
    sink.warn(
        {"series_of_unknown_labels", fmt::format("{}: what {} counts may be the rounds of {} or others; it is left out",
                                                 place(sets_[part].snapshots.begin()->second),
                                                 labels_text(sets_[part].labels), labels_text(whole.labels))});
  }
  for (const auto& [whole, part] : joined) sets_[whole].take(std::move(sets_[part]));
  erase_marked(sets_, left_out);
}

std::vector<ScrapedSeries::Snapshot> ScrapedSeries::in_order(LabelSet& set, const CountsSink& sink) const {
  std::vector<Snapshot> result;
  for (auto& entry : set.snapshots) result.push_back(std::move(entry.second));
  const bool timed = std::all_of(result.begin(), result.end(), [](const Snapshot& s) { return s.time_s.has_value(); });
  if (!timed) {
    std::stable_sort(result.begin(), result.end(),
                     [](const Snapshot& a, const Snapshot& b) { return a.scrape < b.scrape; });
    return result;
  }
  // Several instant queries, one a series, see slightly different moments.
  std::vector<Snapshot> merged;
  bool warned = false;
  for (Snapshot& next : result) {
    const auto fits = [&](const Snapshot& last) {
      return *next.time_s - *last.time_s <= same_moment_s &&
             std::none_of(next.values.begin(), next.values.end(),
                          [&](const auto& entry) { return last.values.count(entry.first) != 0; });
    };
    if (merged.empty() || !fits(merged.back())) {
      merged.push_back(std::move(next));
      continue;
    }
    if (!warned) {
      sink.warn({"queried_at_different_times",
                 fmt::format("{}: series of {} were read {:.3f} s after the others", place(next),
                             labels_text(set.labels), *next.time_s - *merged.back().time_s)});
    }
    warned = true;
    merged.back().values.merge(next.values);
  }
  return merged;
}

void ScrapedSeries::hand_over(const fs::path& file, const CountsSink& sink) {
  drop_repeating_ranks(sink);
  join_emitted(sink);
  join_gauges();
  join_positions(sink);
  if (sets_.empty()) {
    throw FileError(file, "content", fmt::format("metrics without speculative decoding ({} other samples)", others_),
                    "metrics with series such as vllm:spec_decode_num_drafts_total (or llamacpp:, lmdeploy:), "
                    "sglang:spec_verify_calls_total, trtllm_spec_decode_* or rapid_mlx_spec_decode_*");
  }
  std::vector<std::vector<Snapshot>> scrapes;
  bool windows = false;
  for (LabelSet& set : sets_) {
    scrapes.push_back(in_order(set, sink));
    windows = windows || scrapes.back().size() > 1;
  }
  bool any = false;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const bool alone = windows && scrapes[i].size() == 1;
    const Snapshot& first = scrapes[i].front();
    if (alone && !first.time_s && first.scrape < scrape_) {
      throw FileError(files_.back(), fmt::format("series of {}", labels_text(sets_[i].labels)), "missing",
                      fmt::format("given, as by {}: the file may be cut off", place(first)));
    }
    const bool taken = hand_over(sets_[i], scrapes[i], sink);
    if (taken && alone) {
      sink.warn({"series_in_one_scrape",
                 fmt::format("{}: series of {} are in one scrape alone, so that all that they counted is taken",
                             place(scrapes[i].front()), labels_text(sets_[i].labels))});
    }
    any = any || taken;
  }
  if (any) return;
  throw FileError(
      file, "every counter of speculative decoding", windows ? "the same in all scrapes" : "0",
      windows ? "higher in a later scrape: nothing was drafted in between" : "above 0: nothing was drafted yet");
}

}  // namespace specdec::traces
