#include "traces/serving/run_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "traces/formats/printable.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

/// A figure written in full and multiplied back misses a whole number by at most this share.
constexpr double in_full = 1e-6;
/// A rounding with a little more, since its decimal is none of a double's.
constexpr double rounded = 1.02;

}  // namespace

void RunAcceptance::require_draft_of(double gamma) const {
  if (gamma <= CountedFields::longest_draft) return;
  cells_.refuse(cells_.heading(RunColumn::gamma, "gamma"), shown(gamma),
                fmt::format("at most {}", CountedFields::longest_draft));
}

void RunAcceptance::take(bool plain, bool repeated) {
  const auto tokens = tokens_per_step();
  if (plain) {
    if (tokens && tokens->value != 1)
      cells_.refuse(acceptance_column(), shown(tokens->value), "1 or empty where gamma is 0");
    for (const RunColumn what : {RunColumn::rounds, RunColumn::drafted, RunColumn::accepted}) {
      if (const auto count = cells_.value(what, 0, true); count.value_or(0) > 0)
        cells_.refuse(what, shown(*count), "0 or empty where gamma is 0");
    }
    if (const auto rate = acceptance_rate(); rate && rate->value > 0)
      cells_.refuse(RunColumn::acceptance_rate, shown(rate->value), "0 or empty where gamma is 0");
    return require_no_rate_from(0);
  }
  counts_.shape = DraftShape::chain;
  take_counts();
  require_no_rate_from(drafted_positions());
  take_shape();
  if (tokens && counts_.gamma && tokens->value > static_cast<double>(*counts_.gamma) + 1 + tokens->rounding)
    cells_.refuse(acceptance_column(), shown(tokens->value),
                  fmt::format("in [1, {}], with {} drafted", *counts_.gamma + 1, *counts_.gamma));
  if (counts_.rounds) {
    take_counted(tokens);
  } else {
    take_mean(tokens);
  }
  if (repeated && counts_.rounds) leave_mean_alone();
}

RunColumn RunAcceptance::acceptance_column() const {
  return cells_.has(RunColumn::tokens_per_step) ? RunColumn::tokens_per_step : RunColumn::drafts_per_step;
}

std::optional<CellNumber> RunAcceptance::tokens_per_step() const {
  if (cells_.has(RunColumn::tokens_per_step)) return cells_.number(RunColumn::tokens_per_step, 1);
  auto drafts = cells_.number(RunColumn::drafts_per_step, -1);
  if (!drafts) return drafts;
  if (drafts->value < 0) cells_.refuse(RunColumn::drafts_per_step, shown(drafts->value), "0 or above");
  drafts->value += 1;
  return drafts;
}

void RunAcceptance::take_counts() {
  counts_.rounds = cells_.value(RunColumn::rounds, 1);
  counts_.drafted = cells_.value(RunColumn::drafted, 0, true);
  counts_.accepted = cells_.value(RunColumn::accepted, 0, true);
  if (!counts_.gamma && !cells_.positions().empty()) {
    counts_.gamma = static_cast<std::int64_t>(cells_.positions().size());
  } else if (const auto drafts = counts_.gamma ? std::nullopt : equal_drafts_of(counts_)) {
    require_draft_of(static_cast<double>(*drafts));
    counts_.gamma = drafts;
  }
  if (!counts_.rounds && counts_.drafted.value_or(0) > 0 && counts_.accepted && counts_.gamma &&
      std::fmod(*counts_.drafted, static_cast<double>(*counts_.gamma)) == 0) {
    counts_.rounds = *counts_.drafted / static_cast<double>(*counts_.gamma);
  }
}

void RunAcceptance::take_counted(const std::optional<CellNumber>& tokens) {
  const double rounds = *counts_.rounds;
  const auto rate = acceptance_rate();
  const bool drafts_counted = counts_.drafted.has_value();
  if (!counts_.accepted) {
    counts_.from_rates = true;
    if (tokens) {
      counts_.accepted = std::round((tokens->value - 1) * rounds);
    } else if (rate && counts_.drafted) {
      counts_.accepted = std::round(rate->value * *counts_.drafted);
    } else if (cells_.positions().empty()) {
      cells_.refuse("tokens_per_step", "missing", "given, since rounds are");
    }
  }
  const bool full = take_positions(rounds);
  if (!counts_.accepted) counts_.accepted = sum_of(counts_.accepted_at);
  counts_.from_rates = counts_.from_rates || !full;
  if (!counts_.drafted && counts_.gamma) counts_.drafted = rounds * static_cast<double>(*counts_.gamma);
  const double mean = 1 + *counts_.accepted / rounds;
  require_as_counted(acceptance_column(), tokens, mean, "1 + accepted / rounds");
  if (drafts_counted && *counts_.drafted > 0) {
    require_as_counted(RunColumn::acceptance_rate, rate, *counts_.accepted / *counts_.drafted, "accepted / drafted");
  } else if (rate && counts_.gamma) {
    compare_rate(*rate, {mean, 0, {}});
  }
}

void RunAcceptance::require_as_counted(RunColumn what, const std::optional<CellNumber>& given, double counted,
                        std::string_view formula) const {
  if (!given) return;
  const double half_count = counts_.rounds ? 0.5 / *counts_.rounds : 0;
  const double off = rounded * given->rounding + in_full * counted + (counts_.from_rates ? half_count : 0);
  if (std::abs(given->value - counted) <= off) return;
  cells_.refuse(what, shown(given->value), fmt::format("{}, {}", shown(counted), formula));
}

bool RunAcceptance::take_positions(double rounds) {
  bool full = true;
  double before = rounds, off_in_sum = 0;
  const std::size_t positions = drafted_positions();
  // Rates of the first positions alone say nothing of the sum.
  if (counts_.accepted && static_cast<std::int64_t>(positions) < counts_.gamma.value_or(0)) return full;
  for (std::size_t j = 0; j < positions; ++j) {
    const std::string heading = heading_of_position(j);
    const auto share = cells_.share_at(j);
    if (!share) cells_.refuse(heading, "missing", "given in every row with rounds");
    const double at = share->value * rounds, off = rounded * share->rounding * rounds + 1e-3;
    if (std::abs(std::round(at) - at) > off)
      cells_.refuse(heading, shown(share->value), fmt::format("a whole number of {} rounds", shown(rounds)));
    if (at > before + 2 * off)
      cells_.refuse(heading, shown(share->value), "at most the rate before it: of all rounds");
    full = full && std::abs(std::round(at) - at) <= std::max(1e-3, in_full * rounds);
    before = std::min(before, std::round(at));
    off_in_sum += off;
    counts_.accepted_at.push_back(before);
  }
  if (positions == 0 || !counts_.accepted) return full;
  const double sum = sum_of(counts_.accepted_at), counted = *counts_.accepted;
  if (std::abs(sum - counted) > off_in_sum + static_cast<double>(positions)) {
    cells_.refuse("rates by position", fmt::format("{} drafts in sum", shown(sum)),
                  fmt::format("{} in sum, as many as were accepted", shown(counted)));
  }
  return full && sum == counted;
}

std::size_t RunAcceptance::drafted_positions() const {
  const std::size_t columns = cells_.positions().size();
  return counts_.gamma ? std::min(columns, static_cast<std::size_t>(*counts_.gamma)) : columns;
}

void RunAcceptance::require_no_rate_from(std::size_t position) const {
  for (std::size_t j = position; j < cells_.positions().size(); ++j)
    if (const auto share = cells_.share_at(j); share && share->value > 0)
      cells_.refuse(heading_of_position(j), shown(share->value), fmt::format("0 or empty where gamma is {}", position));
}

std::string RunAcceptance::heading_of_position(std::size_t j) const {
  return printable(cells_.table().names[cells_.positions()[j]], 80);
}

std::optional<CellNumber> RunAcceptance::tokens_of_positions() const {
  const std::size_t positions = drafted_positions();
  if (positions == 0 || static_cast<std::int64_t>(positions) < counts_.gamma.value_or(0)) return std::nullopt;
  CellNumber tokens{1, 0, {}}, before{1, 0, {}};
  for (std::size_t j = 0; j < positions; ++j) {
    const auto share = cells_.share_at(j);
    if (!share) return std::nullopt;
    if (share->value > before.value + before.rounding + share->rounding)
      cells_.refuse(heading_of_position(j), shown(share->value), "at most the rate before it: of all rounds");
    before = *share;
    tokens.value += share->value;
    tokens.rounding += share->rounding;
  }
  return tokens;
}

void RunAcceptance::take_mean(std::optional<CellNumber> tokens) {
  if (const auto of_positions = tokens_of_positions()) {
    const double off = tokens ? std::abs(tokens->value - of_positions->value) : 0;
    if (tokens && off > rounded * (tokens->rounding + of_positions->rounding))
      cells_.refuse(acceptance_column(), shown(tokens->value),
                    fmt::format("{}, 1 + the sum of the rates by position", shown(of_positions->value)));
    if (!tokens) tokens = of_positions;
  }
  auto rate = acceptance_rate();
  const bool counted = counts_.drafted.value_or(0) > 0 && counts_.accepted && counts_.gamma;
  if (counted && !rate) rate = CellNumber{*counts_.accepted / *counts_.drafted, 0, {}};
  if ((counts_.drafted || counts_.accepted) && !tokens && !rate)
    cells_.refuse("num_drafts", "missing", "given beside drafted or accepted tokens, or a mean of them");
  if (!tokens && !rate && drafted_positions() > 0 && cells_.share_at(0))
    cells_.refuse("row of rates by position", "incomplete",
                  fmt::format("given for each of {} drafts, or an acceptance length", counts_.gamma.value_or(0)));
  counts_.drafted.reset();
  counts_.accepted.reset();
  if (tokens) counts_.tokens_per_round = tokens->value;
  if (!rate || !counts_.gamma) return take_rounds_of_tokens();
  if (tokens) return compare_rate(*rate, *tokens);
  counts_.tokens_per_round = 1 + static_cast<double>(*counts_.gamma) * rate->value;
}

std::optional<CellNumber> RunAcceptance::acceptance_rate() const {
  const auto rate = cells_.number(RunColumn::acceptance_rate, -1);
  if (rate && !(0 <= rate->value && rate->value <= 1))
    cells_.refuse(RunColumn::acceptance_rate, shown(rate->value), "in [0, 1], or a percentage");
  return rate;
}

void RunAcceptance::compare_rate(const CellNumber& rate, const CellNumber& tokens) {
  // Drafts that end early make a rate larger, and never smaller.
  constexpr double alike = 0.02;
  const auto gamma = static_cast<double>(*counts_.gamma);
  const double off = 1 + gamma * rate.value - tokens.value;
  if (std::abs(off) <= rounded * (gamma * rate.rounding + tokens.rounding) + alike * tokens.value) return;
  if (off < 0) {
    cells_.refuse(RunColumn::acceptance_rate, shown(rate.value),
                  fmt::format("accepted / drafted, which is {:.3g} at least where {} drafts make {} tokens a step",
                              (tokens.value - 1) / gamma, *counts_.gamma, shown(tokens.value)));
  }
  if (!contradiction_.empty()) return;
  contradiction_ = fmt::format("line {}: {} is {}, but tokens per step are {} at gamma {}", counts_.line,
                               cells_.heading(RunColumn::acceptance_rate), shown(rate.value), shown(tokens.value),
                               *counts_.gamma);
}

void RunAcceptance::take_rounds_of_tokens() {
  const auto tokens = cells_.value(RunColumn::total_output, 0), requests = cells_.value(RunColumn::requests, 1);
  if (!cells_.table().summary || !counts_.tokens_per_round || !tokens || !requests || *tokens <= *requests) return;
  counts_.emitted = *tokens - *requests;
  counts_.rounds = std::max(1.0, std::round(*counts_.emitted / *counts_.tokens_per_round));
  counts_.accepted = *counts_.emitted - *counts_.rounds;
  counts_.tokens_per_round.reset();
  counts_.from_rates = true;
}

void RunAcceptance::leave_mean_alone() {
  counts_.tokens_per_round = 1 + *counts_.accepted / *counts_.rounds;
  counts_.rounds.reset();
  counts_.drafted.reset();
  counts_.accepted.reset();
  counts_.accepted_at.clear();
  counts_.from_rates = false;
}

void RunAcceptance::take_shape() {
  const auto topk = static_cast<std::int64_t>(cells_.value(RunColumn::topk, 1, true).value_or(1));
  const auto verified = cells_.value(RunColumn::verified, 1, true);
  if (!counts_.gamma) return;
  const double chain = static_cast<double>(*counts_.gamma) + 1;
  counts_.shape = topk > 1 ? DraftShape::tree : DraftShape::chain;
  if (counts_.shape == DraftShape::chain) {
    if (verified.value_or(chain) != chain)
      cells_.refuse(RunColumn::verified, shown(*verified), fmt::format("{} or empty where topk is 1", chain));
    return;
  }
  counts_.top_k = topk;
  if (!verified) return;
  if (*verified < chain)
    cells_.refuse(RunColumn::verified, shown(*verified), fmt::format("at least {}, gamma and the root", chain));
  counts_.verified_per_round = static_cast<std::int64_t>(*verified);
}

}  // namespace specdec::traces
