#include "traces/serving/vllm_log.hpp"

#include <fmt/format.h>

#include <utility>

namespace specdec::traces {

void VllmLog::read_configuration(const LogLine& line) {
  for (const char* const key : {"method=", "'method': ", "\"method\": "}) {
    if (draft_method_.empty()) draft_method_ = line.quoted(key);
  }
}

void VllmLog::read_engine(const LogLine& line) {
  take_pending_window();
  EngineWindow window;
  window.prompt_tokens_per_second = line.number("Avg prompt throughput:", " tokens/s");
  window.generation_tokens_per_second = line.number("Avg generation throughput:", " tokens/s");
  // A sum over engines says of none how many requests it ran together.
  if (!line.after("Engines Aggregated:")) window.running = line.number("Running:", " req");
  window.waiting = line.number("Waiting:", " req");
  window_ = window;
  window_line_ = line.number();
  engine_.clear();
  if (const auto rest = line.after("Engine ")) {
    const std::string_view digits = rest->substr(0, rest->find_first_not_of("0123456789"));
    if (digits.empty() || digits.size() > 9 || !rest->substr(digits.size()).starts_with(':')) return;
    engine_ = fmt::format("{}", std::stol(std::string(digits)));
  }
}

void VllmLog::read_counts(const LogLine& line) {
  ServingCounts counts = found_.counts_of(line.number(), "vllm", "vLLM log", CountUnit::window);
  attach_window(counts);
  counts.accepted = line.count("Accepted:", " tokens");
  counts.drafted = line.count("Drafted:", " tokens");
  const double length = line.needed("Mean acceptance length:");
  const double percent = line.needed("raft acceptance rate:", "%");
  found_.see_speculation();
  if (*counts.drafted == 0) {  // its ratios are 0/0
    if (idle_intervals_++ == 0) first_idle_line_ = line.number();
    counts.accepted.reset();
    counts.drafted.reset();
    if (counts.window) found_.take_window(counts);
    return;
  }
  counts.steps = steps_between_lines(line, counts);
  const auto by_position = line.after("Per-position acceptance rate:");
  const auto rates = line.rates("Per-position acceptance rate", by_position.value_or(""));
  require_ratio(line, "Draft acceptance rate in percent", percent, 100 * *counts.accepted / *counts.drafted, 0.1);
  counts.draft_method = draft_method_;
  count_back(line, counts, length, rates, true);
  state_throughput(line, counts);
  found_.take(counts);
}

/// Of a window that read no prompt, every token but the accepted ones is that of a step; the drafted ones tell how long
/// it was. Empty where prompts may have put out first tokens.
std::optional<double> VllmLog::steps_between_lines(const LogLine& line, const ServingCounts& counts) {
  const auto drafted_per_second = line.number("Drafted throughput:", " tokens/s");
  if (!counts.window || counts.window->prompt_tokens_per_second != 0.0 || drafted_per_second.value_or(0) <= 0)
    return std::nullopt;
  const double seconds = *counts.drafted / *drafted_per_second;
  const double steps = seconds * counts.window->generation_tokens_per_second.value_or(0) - *counts.accepted;
  return steps > 0 ? std::optional(steps) : std::nullopt;
}

/// All tokens of a window bound those of its rounds; the two lines may be of times a little apart.
void VllmLog::state_throughput(const LogLine& line, ServingCounts& counts) {
  const auto drafted_per_second = line.number("Drafted throughput:", " tokens/s");
  if (!counts.window || !(counts.rounds.value_or(0) > 0) || drafted_per_second.value_or(0) <= 0) return;
  constexpr double apart = 1.5, rounding = 0.05;
  const double seconds = *counts.drafted / *drafted_per_second;
  const double tokens = (counts.window->generation_tokens_per_second.value_or(0) + rounding) * seconds;
  counts.stated.push_back({"tokens per step", "Avg generation throughput", 0, apart * tokens / *counts.rounds});
}

/// That of the last line of vLLM's engine, if no counts followed it.
void VllmLog::take_pending_window() {
  if (!window_) return;
  ServingCounts counts = found_.counts_of(window_line_, "vllm", "vLLM log", CountUnit::window);
  attach_window(counts);
  found_.take_window(counts);
}

void VllmLog::attach_window(ServingCounts& counts) {
  counts.window = std::exchange(window_, std::nullopt);
  if (!engine_.empty()) counts.labels.push_back({"engine", std::exchange(engine_, "")});
}

void VllmLog::finish() {
  take_pending_window();
  if (!found_.taken() || idle_intervals_ == 0 || found_.wants_plain_windows()) return;
  found_.warn(
      {"idle_intervals_left_out", fmt::format("{}:{}: {} of vLLM's lines say that nothing was drafted and are left out",
                                              found_.path().string(), first_idle_line_, idle_intervals_)});
}

}  // namespace specdec::traces
