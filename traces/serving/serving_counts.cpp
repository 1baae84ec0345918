#include "traces/serving/serving_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {

double sum_of(std::span<const double> counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

double weighted_sum(std::span<const double> counts) {
  double sum = 0;
  for (std::size_t j = 1; j < counts.size(); ++j) sum += static_cast<double>(j) * counts[j];
  return sum;
}

void add_counts(std::vector<double>& sums, std::span<const double> counts) {
  if (sums.size() < counts.size()) sums.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

std::string_view name_of(DraftShape shape) {
  constexpr std::array<std::string_view, 3> names = {"unknown", "chain", "tree"};
  return names.at(static_cast<std::size_t>(shape));
}

std::string_view name_of(CountUnit unit) {
  constexpr std::array<std::string_view, 4> names = {"total", "window", "request", "run"};
  return names.at(static_cast<std::size_t>(unit));
}

std::vector<TimesBetween> RoundTimes::buckets() const {
  std::vector<TimesBetween> buckets;
  double edge = 0, counted = 0;
  for (const auto& [high, below] : up_to) {
    if (below > counted) buckets.push_back({edge, high, below - counted});
    edge = high;
    counted = below;
  }
  return buckets;
}

std::string_view ServingCounts::label(std::string_view name) const {
  for (const CountLabel& label : labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

std::string ServingCounts::place() const {
  return line > 0 ? fmt::format("{}:{}", file.string(), line) : file.string();
}

FileError ServingCounts::refusal(std::string field, std::string found, std::string expected) const {
  return FileError(file, line > 0 ? FileError::line(line) : FileError::whole_file(), std::move(field), std::move(found),
                   std::move(expected));
}

std::optional<double> steps_of(const ServingCounts& counts) {
  if (counts.steps || !counts.rounds || !counts.accepted || !counts.bench) return counts.steps;
  const BenchRun& run = *counts.bench;
  if (!run.total_output_tokens || !run.completed) return std::nullopt;
  return std::max(*counts.rounds, *run.total_output_tokens - *run.completed - *counts.accepted);
}

std::optional<std::int64_t> longest_draft_of(const ServingCounts& counts, std::optional<std::int64_t> stated) {
  if (counts.gamma || stated) return counts.gamma ? counts.gamma : stated;
  const auto positions = static_cast<std::int64_t>(std::max(counts.accepted_at.size(), counts.drafted_at.size()));
  if (positions > 0) return positions;
  if (counts.rounds_by_accepted_and_drafted.empty()) return std::nullopt;
  return counts.rounds_by_accepted_and_drafted.rbegin()->first;
}

std::optional<std::int64_t> equal_drafts_of(const ServingCounts& counts) {
  if (!counts.drafted || !(counts.rounds.value_or(0) > 0)) return std::nullopt;
  if (std::fmod(*counts.drafted, *counts.rounds) != 0) return std::nullopt;
  return static_cast<std::int64_t>(*counts.drafted / *counts.rounds);
}

bool count_back(ServingCounts& run, double tokens_per_round) {
  const BenchRun& bench = *run.bench;
  if (!bench.total_output_tokens || !bench.completed || *bench.total_output_tokens <= *bench.completed) return false;
  run.emitted = *bench.total_output_tokens - *bench.completed;
  run.rounds = std::max(1.0, std::round(*run.emitted / tokens_per_round));
  run.accepted = *run.emitted - *run.rounds;
  run.from_rates = true;
  return true;
}

std::optional<Note> count_chunks(ServingCounts& run) {
  constexpr double least = 1.4;
  const double tokens = run.bench->mean_itl_ms.value_or(0) / run.bench->mean_tpot_ms.value_or(1);
  if (!(tokens >= least) || !std::isfinite(tokens) || !count_back(run, tokens)) return std::nullopt;
  return Note{
      "counted_by_chunks",
      fmt::format("{} has no counts of drafts, but its mean ITL is {:.3g} times its mean TPOT: taken as the tokens "
                  "of a round; a plain server does the same with --stream-interval",
                  run.place(), tokens)};
}

ServingCounts counted_by_step(ServingCounts counts, std::optional<std::int64_t> gamma) {
  if (!counts.rounds || counts.shape == DraftShape::tree) return counts;
  counts.gamma = longest_draft_of(counts, gamma);
  const double rounds = *counts.rounds, steps = std::max(rounds, steps_of(counts).value_or(rounds));
  if (!(steps > 0)) return counts;
  std::vector<double>& histogram = counts.rounds_by_accepted;
  if (histogram.empty()) {
    for (const auto& [length, of_length] : counts.rounds_by_accepted_and_drafted) add_counts(histogram, of_length);
  }
  if (!histogram.empty()) histogram[0] += steps - rounds;
  counts.shape = DraftShape::chain;
  counts.rounds = counts.steps = steps;
  if (counts.drafted && !counts.made) counts.made = {rounds, *counts.drafted};
  counts.drafted.reset();
  if (counts.gamma) counts.drafted = static_cast<double>(*counts.gamma) * steps;
  counts.emitted.reset();
  if (counts.accepted) counts.emitted = steps + *counts.accepted;
  counts.rounds_between.reset();
  counts.drafted_at.clear();
  counts.rounds_by_accepted_and_drafted.clear();
  return counts;
}

std::string of_other_unit(const BenchRun& run) {
  // Prompts that are read in between leave few requests decoding, but not as few as these.
  constexpr double least_decoding = 0.02;
  const double decoding = run.output_throughput.value_or(NAN) * run.mean_tpot_ms.value_or(NAN) / 1000;
  if (decoding == 0 || !(decoding < least_decoding)) return "";
  return fmt::format("in milliseconds: with {} output tokens a second only {} requests would decode at a time",
                     shown(*run.output_throughput), shown(decoding));
}

}  // namespace specdec::traces
