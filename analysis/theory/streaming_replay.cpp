#include "analysis/theory/streaming_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/theory/replay_kernels.hpp"

namespace specdec::theory {
namespace {

/// Number of blocks that a row holds before its end is moved to its front.
constexpr std::size_t blocks_held = 16;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Entries (gamma, j) with 1 <= j <= gamma <= max_gamma.
std::size_t triangle(std::int64_t max_gamma) { return size(max_gamma * (max_gamma + 1) / 2); }

/// Sums start empty.
template <class Term>
void add_to(std::vector<core::ExactSum>& sums, const std::vector<Term>& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i].add(terms[i]);
}

}  // namespace

ReplayedRounds::ReplayedRounds(std::int64_t max_gamma) : max_gamma_(max_gamma) {
  core::require_in("ReplayedRounds", "max_gamma", max_gamma, 0, largest_replayed_gamma);
  steps_.assign(size(max_gamma) + 1, 0.0);
  partial_.assign(triangle(max_gamma), 0.0);
  accepted_.assign(triangle(max_gamma), 0.0);
  examined_.assign(triangle(max_gamma), 0.0);
}

std::size_t ReplayedRounds::place(std::int64_t gamma, std::int64_t j) const {
  core::require_in("ReplayedRounds", "gamma", gamma, 0, max_gamma_);
  core::require_in("ReplayedRounds", "j", j, 1, gamma);
  return triangle(gamma - 1) + size(j) - 1;
}

double ReplayedRounds::steps(std::int64_t gamma) const {
  core::require_in("ReplayedRounds::steps", "gamma", gamma, 0, max_gamma_);
  return steps_[size(gamma)];
}

double ReplayedRounds::sum_over_steps(std::int64_t gamma, std::span<const double> of_drafted) const {
  core::require_in("ReplayedRounds::sum_over_steps", "gamma", gamma, 0, max_gamma_);
  core::require_in("ReplayedRounds::sum_over_steps", "the size of of_drafted",
                   static_cast<std::int64_t>(of_drafted.size()), gamma + 1, std::numeric_limits<std::int64_t>::max());
  const double* partial = partial_.data() + triangle(gamma - 1);
  double full = steps_[size(gamma)];
  double sum = 0;
  for (std::size_t d = 0; d < size(gamma); ++d) {
    full -= partial[d];
    sum += partial[d] * of_drafted[d];
  }
  return sum + std::max(0.0, full) * of_drafted[size(gamma)];
}

double ReplayedRounds::drafted(std::int64_t gamma) const {
  std::vector<double> counts(size(gamma) + 1);
  std::iota(counts.begin(), counts.end(), 0.0);
  return sum_over_steps(gamma, counts);
}

double ReplayedRounds::steps_drafting(std::int64_t gamma, std::int64_t d) const {
  core::require_in("ReplayedRounds::steps_drafting", "d", d, 0, gamma);
  if (d < gamma) return partial_[place(gamma, d + 1)];
  double full = steps(gamma);
  for (std::int64_t fewer = 0; fewer < gamma; ++fewer) full -= partial_[place(gamma, fewer + 1)];
  return std::max(0.0, full);
}

double ReplayedRounds::cost(std::int64_t gamma, const core::StepCost& cost) const {
  std::vector<double> costs;
  for (std::int64_t d = 0; d <= gamma; ++d) costs.push_back(cost(d));
  return sum_over_steps(gamma, costs);
}

double ReplayedRounds::accepted(std::int64_t gamma, std::int64_t j) const { return accepted_[place(gamma, j)]; }

double ReplayedRounds::examined(std::int64_t gamma, std::int64_t j) const { return examined_[place(gamma, j)]; }

ReplayedTotal::ReplayedTotal(std::int64_t max_gamma)
    : rounds_(max_gamma),
      steps_(rounds_.steps_.size()),
      partial_(rounds_.partial_.size()),
      accepted_(rounds_.accepted_.size()),
      examined_(rounds_.examined_.size()) {}

ReplayedTotal& ReplayedTotal::operator+=(const ReplayedRounds& rounds) {
  core::require_same_size("ReplayedTotal", "steps", rounds_.steps_.size(), "steps of the rounds", rounds.steps_.size());
  rounds_.sequences_ += rounds.sequences_;
  rounds_.tokens_ += rounds.tokens_;
  add_to(steps_, rounds.steps_);
  add_to(partial_, rounds.partial_);
  add_to(accepted_, rounds.accepted_);
  add_to(examined_, rounds.examined_);
  return *this;
}

ReplayedTotal& ReplayedTotal::operator+=(const ReplayedTotal& other) {
  core::require_same_size("ReplayedTotal", "steps", rounds_.steps_.size(), "steps of the other",
                          other.rounds_.steps_.size());
  rounds_.sequences_ += other.rounds_.sequences_;
  rounds_.tokens_ += other.rounds_.tokens_;
  add_to(steps_, other.steps_);
  add_to(partial_, other.partial_);
  add_to(accepted_, other.accepted_);
  add_to(examined_, other.examined_);
  return *this;
}

ReplayedRounds ReplayedTotal::value() const {
  ReplayedRounds total = rounds_;
  const auto round = [](std::vector<double>& values, const std::vector<core::ExactSum>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) values[i] = sums[i].value();
  };
  round(total.steps_, steps_);
  round(total.partial_, partial_);
  round(total.accepted_, accepted_);
  round(total.examined_, examined_);
  return total;
}

std::size_t ReplayedRounds::bytes(std::int64_t max_gamma) {
  return sizeof(ReplayedRounds) + sizeof(double) * (size(max_gamma) + 1 + 3 * triangle(max_gamma));
}

StreamingReplay::StreamingReplay(const ReplayOptions& options) : options_(options) {
  core::require_in("StreamingReplay", "max_gamma", options.max_gamma, 0, largest_replayed_gamma);
  core::require_in("StreamingReplay", "depths", options.depths, 1, largest_replayed_gamma);
  history_ = size(options.max_gamma) + 1;
  capacity_ = history_ + blocks_held * size(block);
  acceptance_.assign(size(options.depths) * capacity_, 0.0);
  products_.assign((size(options.max_gamma) + 2) * capacity_, 0.0);
  std::fill_n(products_.begin(), capacity_, 1.0);
  starts_.assign((size(options.max_gamma) + 1) * capacity_, 0.0);
  steps_.resize(size(options.max_gamma) + 1);
  accepted_.resize(triangle(options.max_gamma));
  result_ = ReplayedRounds(options.max_gamma);
  reset();
}

// Before a text nothing starts and nothing is accepted; that makes u(0) = 1 - 0 (1 - 0).
void StreamingReplay::reset() {
  const auto clear = [this](std::vector<double>& rows, std::size_t first) {
    for (std::size_t row = first; row < rows.size() / capacity_; ++row)
      std::fill_n(rows.data() + row * capacity_, history_, 0.0);
  };
  clear(acceptance_, 0);
  clear(products_, 1);
  clear(starts_, 0);
  std::fill(steps_.begin(), steps_.end(), core::CompensatedSum());
  std::fill(accepted_.begin(), accepted_.end(), core::CompensatedSum());
  filled_ = history_;
  done_ = history_;
  covered_ = 0;
  length_ = 0;
}

void StreamingReplay::make_room() {
  const auto shift = [this](std::vector<double>& rows) {
    for (std::size_t row = 0; row < rows.size() / capacity_; ++row) {
      double* begin = rows.data() + row * capacity_;
      std::copy_n(begin + done_ - history_, history_, begin);
    }
  };
  shift(acceptance_);
  shift(products_);
  shift(starts_);
  filled_ = history_;
  done_ = history_;
}

void StreamingReplay::add(std::span<const double> acceptance) {
  const std::size_t depths = size(options_.depths);
  if (acceptance.size() % depths != 0) {
    throw std::invalid_argument(fmt::format("StreamingReplay::add: {} entries are no whole number of positions of {}",
                                            acceptance.size(), depths));
  }
  const auto bad = std::find_if_not(acceptance.begin(), acceptance.end(), [](double a) { return 0 <= a && a <= 1; });
  if (bad != acceptance.end()) {
    const std::int64_t position = length_ + (bad - acceptance.begin()) / options_.depths;
    core::require_in("StreamingReplay::add", fmt::format("acceptance at position {}", position), *bad, 0, 1);
  }
  for (std::size_t next = 0; next < acceptance.size() / depths;) {
    const std::size_t wanted = done_ + size(block) - filled_;
    const std::size_t count = std::min(wanted, acceptance.size() / depths - next);
    for (std::size_t depth = 0; depth < depths; ++depth) {
      double* row = acceptance_.data() + depth * capacity_ + filled_;
      for (std::size_t i = 0; i < count; ++i) row[i] = acceptance[(next + i) * depths + depth];
    }
    filled_ += count;
    next += count;
    length_ += static_cast<std::int64_t>(count);
    if (count == wanted) {
      process(size(block));
      covered_ += block;
      if (done_ == capacity_) make_room();
    }
  }
}

// The law at `count` positions from done_ on. A position's u and W need only the acceptances before it.
void StreamingReplay::process(std::size_t count) {
  const std::size_t begin = done_;
  for (std::size_t j = 1; j < products_.size() / capacity_; ++j) {
    const double* column = acceptance_.data() + std::min(j - 1, size(options_.depths) - 1) * capacity_;
    const double* shorter = products_.data() + (j - 1) * capacity_;
    kernels::multiply(shorter + begin - 1, column + begin - 1, products_.data() + j * capacity_ + begin, count);
  }
  if (options_.depths == 1) {
    kernels::advance_starts(acceptance_.data() + begin, products_.data() + capacity_ + begin, starts_.data() + begin,
                            steps_.size(), capacity_, count);
  } else {
    advance_by_depth(begin, count);
  }
  for (std::size_t gamma = 0; gamma < steps_.size(); ++gamma) {
    const double* starts = starts_.data() + gamma * capacity_ + begin;
    steps_[gamma].add(kernels::sum(starts, count));
    if (!options_.by_position) continue;
    core::CompensatedSum* accepted = accepted_.data() + gamma * (gamma - 1) / 2;
    for (std::size_t j = 1; j <= gamma; ++j)
      accepted[j - 1].add(kernels::dot(starts - j, products_.data() + j * capacity_ + begin, count));
  }
  done_ += count;
}

void StreamingReplay::advance_by_depth(std::size_t begin, std::size_t count) {
  const std::size_t max_gamma = steps_.size() - 1;
  std::vector<double> longest_first(max_gamma);  // W_max_gamma, ..., W_1 at one position
  for (std::size_t t = begin; t < begin + count; ++t) {
    for (std::size_t j = 1; j <= max_gamma; ++j) longest_first[max_gamma - j] = products_[j * capacity_ + t];
    for (std::size_t gamma = 0; gamma <= max_gamma; ++gamma) {
      double* starts = starts_.data() + gamma * capacity_;
      // Rounding could make the difference negative if every draft is accepted.
      const double drafted = kernels::dot(starts + t - gamma, longest_first.data() + max_gamma - gamma, gamma);
      starts[t] = std::max(0.0, 1 - drafted);
    }
  }
}

const ReplayedRounds& StreamingReplay::finish_sequence() {
  if (filled_ > done_) process(filled_ - done_);
  result_ = ReplayedRounds(options_.max_gamma);
  result_.sequences_ = 1;
  result_.tokens_ = length_;
  const std::size_t end = done_;
  for (std::int64_t gamma = 0; gamma <= options_.max_gamma; ++gamma) {
    const double* starts = starts_.data() + size(gamma) * capacity_;
    result_.steps_[size(gamma)] = steps_[size(gamma)].value();
    // A step whose d drafts and the target's token end the text starts d + 1 places before its end.
    for (std::int64_t d = 0; d < std::min(gamma, length_); ++d)
      result_.partial_[result_.place(gamma, d + 1)] = starts[end - size(d) - 1];
    if (!options_.by_position) continue;
    for (std::int64_t j = 1; j <= gamma; ++j) {
      const std::size_t place = result_.place(gamma, j);
      result_.accepted_[place] = accepted_[place].value();
      // The text's last token is never drafted, whichever step would have examined it.
      const double before = j == 1 ? result_.steps_[size(gamma)] : result_.accepted_[place - 1];
      const double at_end = starts[end - size(j)] * products_[size(j - 1) * capacity_ + end - 1];
      result_.examined_[place] = length_ > 0 ? std::max(0.0, before - at_end) : 0.0;
    }
  }
  reset();
  return result_;
}

std::size_t StreamingReplay::bytes(const ReplayOptions& options) {
  const std::size_t gammas = size(options.max_gamma) + 1;
  const std::size_t capacity = gammas + blocks_held * size(block);
  return sizeof(StreamingReplay) + sizeof(double) * (size(options.depths) + 2 * gammas + 1) * capacity +
         sizeof(core::CompensatedSum) * (gammas + triangle(options.max_gamma)) +
         ReplayedRounds::bytes(options.max_gamma);
}

double StreamingReplay::steps_so_far(std::int64_t gamma) const {
  core::require_in("StreamingReplay::steps_so_far", "gamma", gamma, 0, options_.max_gamma);
  return steps_[size(gamma)].value();
}

}  // namespace specdec::theory
