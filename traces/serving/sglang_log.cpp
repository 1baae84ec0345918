#include "traces/serving/sglang_log.hpp"

#include <fmt/format.h>

#include "traces/serving/sglang_arguments.hpp"

namespace specdec::traces {
namespace {

/// The data-parallel rank in front of a line; empty where there is one alone.
std::string rank_of(const LogLine& line) {
  const std::string_view prefix = line.text().substr(0, line.text().find(" batch"));
  const std::size_t rank = prefix.rfind(" DP");
  if (rank == std::string_view::npos) return "";
  const std::string_view rest = prefix.substr(rank + 3);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

}  // namespace

void SglangLog::read_arguments(const LogLine& line) {
  const auto count = [&](std::string_view key) -> std::optional<double> {
    const auto rest = line.after(key);
    const auto number = rest ? leading_number(*rest) : std::nullopt;
    if (!number || number->value < 0) return std::nullopt;
    line.require_count(key, number->value);
    return number->value;
  };
  drafts_ = {};
  set_sglang_drafts(count("speculative_num_steps="), count("speculative_eagle_topk="),
                    count("speculative_num_draft_tokens="), drafts_);
  drafts_.draft_method = line.quoted("speculative_algorithm=");
}

void SglangLog::read_prompts(const LogLine& line) { prompts_[rank_of(line)] = true; }

void SglangLog::read_decoding(const LogLine& line) {
  ServingCounts counts = found_.counts_of(line.number(), "sglang", "SGLang log", CountUnit::window);
  EngineWindow window;
  window.running = line.number("#running-req:");
  window.waiting = line.number("#queue-req:");
  window.generation_tokens_per_second = line.number("gen throughput (token/s):");
  const std::string rank = rank_of(line);
  const auto [before, first] = prompts_.try_emplace(rank, false);
  if (!first && !before->second) window.prompt_tokens_per_second = 0;
  before->second = false;
  counts.window = window;
  if (!rank.empty()) counts.labels.push_back({"dp_rank", rank});

  const auto length = line.number("accept len:");
  if (length) found_.see_speculation();
  if (!length || *length == 0) return found_.take_window(counts);
  if (!(1 <= *length && *length <= static_cast<double>(most_logged_positions))) {
    line.refuse("accept len", fmt::format("{}", *length),
                "a mean of tokens per round with the target's own, from 1 on");
  }
  counts.gamma = drafts_.gamma;
  counts.shape = drafts_.shape;
  counts.verified_per_round = drafts_.verified_per_round;
  counts.top_k = drafts_.top_k;
  counts.draft_method = drafts_.draft_method;
  counts.tokens_per_round = *length;
  counts.from_rates = true;
  if (!found_.taken()) {
    found_.warn({"mean_without_counts", fmt::format("{}:{}: accept len is a mean over the interval, of unknown weight",
                                                    found_.path().string(), line.number())});
  }
  found_.take(counts);
}

}  // namespace specdec::traces
