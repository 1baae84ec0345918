#include "analysis/estimate/acceptance_conventions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/theory/acceptance_inversion.hpp"

namespace specdec::estimate {
namespace {

using Quantity = AcceptanceQuantity;
using Basis = ConversionBasis;

constexpr std::string_view truncated_note = "the last round of a text may be cut at its end";

constexpr AcceptanceConvention figure(std::string_view name, Quantity quantity, std::string_view where,
                                      std::string_view note = {}) {
  return {.name = name, .quantity = quantity, .where = where, .note = note};
}

constexpr AcceptanceConvention percent(std::string_view name, Quantity quantity, std::string_view where) {
  return {.name = name, .quantity = quantity, .percent = true, .where = where};
}

constexpr AcceptanceConvention by_position(std::string_view name, Quantity quantity, std::string_view where,
                                           std::string_view note) {
  return {.name = name, .quantity = quantity, .by_position = true, .where = where, .note = note};
}

constexpr AcceptanceConvention whole(std::string_view name, Quantity quantity, std::string_view where,
                                     std::string_view note = {}) {
  return {.name = name, .quantity = quantity, .whole = true, .where = where, .note = note};
}

constexpr std::array conventions = {
    figure("tokens_per_step", Quantity::tokens_per_step, "bonus token included"),
    figure("accepted_drafts_per_step", Quantity::accepted_per_step, "bonus token left out"),
    figure("accepted_over_drafted", Quantity::accepted_share, "fraction"),
    whole("unconditional_rates", Quantity::unconditional, "P(draft j and all before it accepted)"),
    whole("conditional_rates", Quantity::conditional, "P(draft j accepted | all before it)"),
    figure("rounds_by_accepted", Quantity::accepted_law, "rounds with 0, 1, ... accepted"),
    figure("alpha", Quantity::alpha, "rate of the geometric law"),
    figure("rounds", Quantity::rounds, "count"),
    figure("drafted", Quantity::drafted, "count"),
    figure("accepted", Quantity::accepted, "count"),

    figure("vllm.mean_acceptance_length", Quantity::tokens_per_step, "log line, request metrics"),
    percent("vllm.avg_draft_acceptance_rate", Quantity::accepted_share, "log line, per cent"),
    whole("vllm.per_position_acceptance_rate", Quantity::unconditional, "log line"),
    figure("vllm.draft_acceptance_rate", Quantity::accepted_share, "request metrics, fraction"),
    whole("vllm.acceptance_histogram", Quantity::accepted_law, "request metrics"),
    figure("vllm.per_step_accepted", Quantity::accepted_per_step, "request metrics, its mean"),
    figure("vllm.spec_decode_acceptance_length", Quantity::tokens_per_step, "benchmark"),
    percent("vllm.spec_decode_acceptance_rate", Quantity::accepted_share, "benchmark, per cent"),
    whole("vllm.spec_decode_per_position_acceptance_rates", Quantity::unconditional, "benchmark"),
    figure("vllm.synthetic_acceptance_length", Quantity::tokens_per_step, "configuration"),
    whole("vllm.synthetic_acceptance_rates", Quantity::unconditional, "configuration"),
    figure("vllm.num_drafts", Quantity::rounds, "counter"),
    figure("vllm.num_draft_tokens", Quantity::drafted, "counter"),
    figure("vllm.num_accepted_tokens", Quantity::accepted, "counter"),

    figure("sglang.spec_accept_length", Quantity::tokens_per_step, "gauge, meta_info",
           "of a request it counts the prefill's token too, which raises it, and the last round may be "
           "cut at the end of the text"),
    figure("sglang.accept_len", Quantity::tokens_per_step, "log line"),
    figure("sglang.accept_length", Quantity::tokens_per_step, "benchmark"),
    figure("sglang.spec_accept_histogram", Quantity::accepted_law, "meta_info"),
    figure("sglang.completion_tokens", Quantity::emitted, "meta_info"),
    figure("sglang.spec_verify_ct", Quantity::rounds, "meta_info"),

    figure("trtllm.acceptance_length", Quantity::tokens_per_step, "iteration statistics"),
    figure("trtllm.acceptance_rate", Quantity::accepted_share, "of a request, fraction"),
    whole("trtllm.accepted_over_drafted_by_position", Quantity::unconditional, "counters by token_position",
          "over the rounds that drafted the position"),
    figure("trtllm.num_requests_with_draft_tokens", Quantity::rounds, "iteration statistics"),
    figure("trtllm.num_draft_tokens", Quantity::drafted, "iteration statistics"),
    figure("trtllm.num_accepted_tokens", Quantity::accepted, "iteration statistics"),

    figure("llamacpp.mean_acceptance_length", Quantity::tokens_per_step, "server log"),
    figure("llamacpp.draft_acceptance", Quantity::accepted_share, "server log, fraction"),
    whole("llamacpp.acceptance_rate_per_position", Quantity::unconditional, "server log"),
    percent("llamacpp.accept", Quantity::accepted_share, "llama-speculative, per cent"),
    figure("llamacpp.draft_n", Quantity::drafted, "timings"),
    figure("llamacpp.draft_n_accepted", Quantity::accepted, "timings"),

    figure("spec_bench.accept_lengths", Quantity::tokens_per_step, "its mean", truncated_note),
    figure("eagle.new_tokens_per_step", Quantity::tokens_per_step, "sum(new_tokens) / sum(idxs + 1)", truncated_note),
    whole("eagle.alpha", Quantity::conditional, "alpha / alpha_num, by depth"),
    by_position("position_trace.acc_len", Quantity::tokens_per_step, "its mean over positions",
                "rounds begin at some positions rather than at others"),
};

/// A value and its basis.
template <class Value>
struct Graded {
  Value value;
  Basis basis;
};

Basis weaker(Basis a, Basis b) { return std::max(a, b); }

[[noreturn]] void refuse(const AcceptanceConvention& convention, double value, const std::string& range,
                         std::string_view hint) {
  throw std::domain_error(
      fmt::format("{} is {}, but must be {}{}{}", convention.name, value, range, hint.empty() ? "" : "; ", hint));
}

bool within(double value, double lo, double hi) { return lo <= value && value <= hi; }

/// Checks a fraction or a percentage.
void require_share(const AcceptanceConvention& convention, double value) {
  if (within(value, 0, convention.percent ? 100 : 1)) return;
  if (convention.percent) refuse(convention, value, "in [0, 100], per cent", "");
  refuse(convention, value, "in [0, 1]",
         within(value, 1, 100) ? "is this a percentage? It is a fraction here" : std::string_view());
}

void require_length(const AcceptanceConvention& convention, double value, std::optional<std::int64_t> gamma) {
  const bool bonus = convention.quantity == Quantity::tokens_per_step;
  const double lo = bonus ? 1 : 0;
  if (!gamma) {
    if (lo <= value && std::isfinite(value)) return;
    refuse(convention, value, bonus ? "at least 1" : "at least 0",
           bonus && within(value, 0, 1) ? "without the bonus token it is accepted_drafts_per_step" : "");
  }
  const double hi = static_cast<double>(*gamma) + lo;
  if (within(value, lo, hi)) return;
  std::string_view hint;
  if (bonus && within(value, 0, 1)) hint = "without the bonus token it is accepted_drafts_per_step";
  if (!bonus && within(value, hi, hi + 1)) hint = "with the bonus token it is tokens_per_step";
  if (within(value, hi + lo, 100) && value > hi + 1) hint = "is this a percentage of the drafted tokens?";
  refuse(convention, value, fmt::format("in [{}, {}] at gamma {}", lo, hi, *gamma), hint);
}

/// A list alone, one value alone, or counts.
void require_together(std::span<const AcceptanceFigure> given) {
  if (given.empty()) throw std::invalid_argument("convert_acceptance: no figure is given");
  const AcceptanceConvention& first = *given.front().convention;
  for (const AcceptanceFigure& figure : given) {
    if (!figure.convention->is_list() && figure.values.size() != 1) {
      throw std::invalid_argument(
          fmt::format("{} has {} values, but must have 1", figure.convention->name, figure.values.size()));
    }
    if (figure.convention->is_list() && figure.values.empty()) {
      throw std::invalid_argument(fmt::format("{} has no value", figure.convention->name));
    }
    if (given.size() > 1 && !figure.convention->is_count()) {
      throw std::invalid_argument(
          fmt::format("{} is given beside {}, but only counts go together", given[1].convention->name, first.name));
    }
  }
}

struct GivenCounts {
  const AcceptanceFigure *rounds, *drafted, *accepted, *emitted;
};

/// The counts that are given, enough of which go together.
GivenCounts counts_among(std::span<const AcceptanceFigure> given) {
  std::array<const AcceptanceFigure*, 4> counts{};
  for (const AcceptanceFigure& figure : given) {
    auto& place =
        counts[static_cast<std::size_t>(figure.convention->quantity) - static_cast<std::size_t>(Quantity::rounds)];
    if (place) {
      throw std::invalid_argument(fmt::format("{} is given beside {}, which counts the same", figure.convention->name,
                                              place->convention->name));
    }
    if (!(figure.values[0] >= 0 && std::isfinite(figure.values[0]))) {
      refuse(*figure.convention, figure.values[0], "a count of at least 0", "");
    }
    place = &figure;
  }
  const auto [rounds, drafted, accepted, emitted] = counts;
  for (const AcceptanceFigure* const divisor : {rounds, drafted}) {
    if (divisor && divisor->values[0] == 0) refuse(*divisor->convention, 0, "above 0: nothing was drafted", "");
  }
  if (!((rounds || drafted) && accepted) && !(rounds && emitted)) {
    throw std::invalid_argument(fmt::format(
        "{} is given alone, but accepted drafts with rounds or drafted tokens, or tokens with rounds, are needed",
        given.front().convention->name));
  }
  if (accepted && emitted) {
    throw std::invalid_argument(fmt::format("{} is given beside {}, but one of them is enough",
                                            accepted->convention->name, emitted->convention->name));
  }
  if (drafted && accepted && accepted->values[0] > drafted->values[0]) {
    refuse(*accepted->convention, accepted->values[0],
           fmt::format("at most {} ({})", drafted->convention->name, drafted->values[0]), "");
  }
  return {rounds, drafted, accepted, emitted};
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<double> survival_of_law(const std::vector<double>& law) {
  std::vector<double> survival(law.size() - 1);
  double sum = 0;
  for (std::size_t j = law.size() - 1; j >= 1; --j) survival[j - 1] = sum += law[j];
  return survival;
}

std::vector<double> survival_of_conditional(const std::vector<double>& conditional) {
  std::vector<double> survival;
  double product = 1;
  for (const double rate : conditional) survival.push_back(product *= rate);
  return survival;
}

/// Everything known about acceptance, by quantity.
class Knowledge {
 public:
  Knowledge(std::span<const AcceptanceFigure> given, std::optional<std::int64_t> gamma) : gamma_(gamma) {
    if (gamma) core::require_in("convert_acceptance", "gamma", *gamma, 1, largest_converted_gamma);
    require_together(given);
    if (given.front().convention->is_count()) {
      take_counts(given);
    } else {
      take(given.front());
    }
    derive();
  }

  std::optional<std::int64_t> gamma() const { return gamma_; }
  std::optional<double> drafted_per_step() const { return drafted_per_step_; }
  const std::vector<Note>& notes() const { return notes_; }

  ConvertedFigure as(const AcceptanceConvention& convention) const {
    ConvertedFigure converted{{&convention, {}}, Basis::exact, {}};
    const auto put = [&](std::vector<double> values, Basis basis) {
      converted.figure.values = std::move(values);
      converted.basis = basis;
    };
    switch (convention.quantity) {
      case Quantity::tokens_per_step:
        if (convention.by_position) {
          if (by_position_) put({by_position_->value}, by_position_->basis);
        } else if (length_) {
          put({length_->value}, length_->basis);
        }
        break;
      case Quantity::accepted_per_step:
        if (length_) put({length_->value - 1}, length_->basis);
        break;
      case Quantity::accepted_share:
        if (share_) put({share_->value * (convention.percent ? 100 : 1)}, share_->basis);
        break;
      case Quantity::unconditional:
        if (survival_) put(survival_->value, survival_->basis);
        break;
      case Quantity::conditional:
        if (conditional_) put(conditional_->value, conditional_->basis);
        break;
      case Quantity::accepted_law:
        if (law_) put(law_->value, law_->basis);
        break;
      case Quantity::alpha:
        if (alpha_) put({alpha_->value}, alpha_->basis);
        break;
      default:
        break;
    }
    if (converted.figure.values.empty()) converted.missing = missing();
    return converted;
  }

 private:
  /// The reason why something does not follow.
  std::string missing() const {
    if (drafts_differ()) {
      return fmt::format("drafts differ in length, {:.4g} in the mean", *drafted_per_step_);
    }
    if (!gamma_) return "needs gamma";
    return share_ ? "needs the number of rounds" : "does not follow";
  }

  bool drafts_differ() const {
    return drafted_per_step_ && (!gamma_ || *drafted_per_step_ != static_cast<double>(*gamma_));
  }

  void take_counts(std::span<const AcceptanceFigure> given) {
    const auto [rounds, drafted, accepted, emitted] = counts_among(given);
    if (rounds && drafted) take_draft_lengths(*drafted, rounds->values[0]);
    const AcceptanceConvention& length = *find_acceptance_convention("tokens_per_step");
    if (rounds && accepted) length_ = {1 + accepted->values[0] / rounds->values[0], Basis::exact};
    if (rounds && emitted) length_ = {emitted->values[0] / rounds->values[0], Basis::exact};
    if (length_) require_length(length, length_->value, gamma_);
    if (drafted && accepted) share_ = {accepted->values[0] / drafted->values[0], Basis::exact};
  }

  void take_draft_lengths(const AcceptanceFigure& drafted, double rounds) {
    drafted_per_step_ = drafted.values[0] / rounds;
    if (gamma_ && *drafted_per_step_ > static_cast<double>(*gamma_)) {
      refuse(*drafted.convention, drafted.values[0],
             fmt::format("at most gamma {} for each of {} rounds", *gamma_, rounds), "");
    }
    const bool equal = *drafted_per_step_ == std::floor(*drafted_per_step_) && *drafted_per_step_ >= 1 &&
                       *drafted_per_step_ <= static_cast<double>(largest_converted_gamma);
    if (!gamma_ && equal) gamma_ = static_cast<std::int64_t>(*drafted_per_step_);
  }

  void take(const AcceptanceFigure& figure) {
    const AcceptanceConvention& convention = *figure.convention;
    const double value = figure.values[0];
    switch (convention.quantity) {
      case Quantity::tokens_per_step:
        require_length(convention, value, gamma_);
        if (convention.by_position) {
          by_position_ = {value, Basis::exact};
        } else {
          length_ = {value, Basis::exact};
        }
        break;
      case Quantity::accepted_per_step:
        require_length(convention, value, gamma_);
        length_ = {1 + value, Basis::exact};
        break;
      case Quantity::accepted_share:
        require_share(convention, value);
        share_ = {convention.percent ? value / 100 : value, Basis::exact};
        if (convention.percent && value > 0 && value <= 1) {
          notes_.push_back(
              {"fraction_taken_as_percent",
               fmt::format("{} is in per cent, so {} was read as {:g}; a fraction is accepted_over_drafted",
                           convention.name, value, value / 100)});
        }
        break;
      case Quantity::unconditional:
      case Quantity::conditional:
        take_rates(figure);
        break;
      case Quantity::accepted_law:
        take_law(figure);
        break;
      case Quantity::alpha:
        require_share(convention, value);
        alpha_ = {value, Basis::exact};
        break;
      default:
        break;
    }
  }

  void take_rates(const AcceptanceFigure& figure) {
    const AcceptanceConvention& convention = *figure.convention;
    for (const double rate : figure.values) require_share(convention, rate);
    settle_gamma(convention, figure.values.size(), true);
    if (convention.quantity == Quantity::conditional) {
      conditional_ = {figure.values, Basis::exact};
      return;
    }
    for (std::size_t j = 1; j < figure.values.size(); ++j) {
      if (figure.values[j] <= figure.values[j - 1]) continue;
      throw std::domain_error(
          fmt::format("{} is {} at position {} after {}, but must not grow; are these conditional_rates?",
                      convention.name, figure.values[j], j + 1, figure.values[j - 1]));
    }
    survival_ = {figure.values, Basis::exact};
  }

  void take_law(const AcceptanceFigure& figure) {
    const AcceptanceConvention& convention = *figure.convention;
    double sum = 0;
    for (const double rounds : figure.values) {
      if (!(rounds >= 0 && std::isfinite(rounds))) refuse(convention, rounds, "a count of at least 0", "");
      sum += rounds;
    }
    if (!(sum > 0)) throw std::domain_error(fmt::format("{} holds no round", convention.name));
    std::vector<double> law = figure.values;
    if (gamma_ && !convention.whole) law.resize(std::max(law.size(), static_cast<std::size_t>(*gamma_) + 1));
    if (gamma_ || convention.whole) settle_gamma(convention, law.size() - 1, false);
    for (double& share : law) share /= sum;
    law_ = {std::move(law), Basis::exact};
  }

  /// A figure with a value for each position determines gamma itself.
  void settle_gamma(const AcceptanceConvention& convention, std::size_t positions, bool rates) {
    if (!gamma_ && positions >= 1) gamma_ = static_cast<std::int64_t>(positions);
    if (gamma_ && static_cast<std::size_t>(*gamma_) == positions && *gamma_ <= largest_converted_gamma) {
      return;
    }
    const std::string size = fmt::format("{} has {} values", convention.name, rates ? positions : positions + 1);
    if (!gamma_ || *gamma_ > largest_converted_gamma) {
      throw std::invalid_argument(fmt::format("{}, but must have at least {} and at most {}", size, rates ? 1 : 2,
                                              largest_converted_gamma + (rates ? 0 : 1)));
    }
    throw std::invalid_argument(
        fmt::format("{}, but must have {} at gamma {}: {}", size, rates ? *gamma_ : *gamma_ + 1, *gamma_,
                    rates ? "one for each drafted position" : "for 0 to gamma accepted drafts"));
  }

  void derive() {
    if (by_position_) length_ = {by_position_->value, Basis::constant_alpha};
    if (law_) survival_ = {survival_of_law(law_->value), law_->basis};
    if (conditional_) {
      survival_ = {survival_of_conditional(conditional_->value), weaker(conditional_->basis, Basis::equal_drafts)};
    }
    if (survival_ && !length_) {
      length_ = {1 + sum_of(survival_->value), survival_->basis};
    }
    if (!length_ && share_ && gamma_) {
      length_ = {1 + share_->value * static_cast<double>(*gamma_), weaker(share_->basis, Basis::equal_drafts)};
    }
    if (!alpha_ && gamma_ && !drafts_differ()) find_alpha();
    if (alpha_ && gamma_ && !survival_) survival_from_alpha();
    if (survival_ && !conditional_) conditional_from_survival();
    if (survival_ && !law_) law_from_survival();
    if (!share_ && length_ && gamma_) {
      share_ = {(length_->value - 1) / static_cast<double>(*gamma_), weaker(length_->basis, Basis::equal_drafts)};
    }
    if (!by_position_ && length_) by_position_ = {length_->value, Basis::constant_alpha};
  }

  void survival_from_alpha() {
    std::vector<double> survival;
    double power = 1;
    for (std::int64_t j = 1; j <= *gamma_; ++j) survival.push_back(power *= alpha_->value);
    survival_ = {std::move(survival), Basis::constant_alpha};
    length_ = length_ ? length_ : Graded<double>{1 + sum_of(survival_->value), Basis::constant_alpha};
  }

  void find_alpha() {
    if (survival_) {
      // Pooled over the examined positions: the maximum of the likelihood.
      const double accepted = sum_of(survival_->value);
      alpha_ = {accepted / (1 + accepted - survival_->value.back()), Basis::constant_alpha};
    } else if (length_) {
      alpha_ = {theory::alpha_from_acceptance_length(length_->value, *gamma_).alpha(), Basis::constant_alpha};
    }
  }

  /// 0 if no round came that far.
  void conditional_from_survival() {
    std::vector<double> conditional;
    double before = 1;
    for (const double rate : survival_->value) {
      conditional.push_back(before > 0 ? rate / before : 0);
      before = rate;
    }
    conditional_ = {std::move(conditional), weaker(survival_->basis, Basis::equal_drafts)};
  }

  void law_from_survival() {
    std::vector<double> law;
    double before = 1;
    for (const double rate : survival_->value) {
      law.push_back(before - rate);
      before = rate;
    }
    law.push_back(before);
    law_ = {std::move(law), survival_->basis};
  }

  std::optional<std::int64_t> gamma_;
  std::optional<double> drafted_per_step_;
  std::optional<Graded<double>> length_, by_position_, share_, alpha_;
  std::optional<Graded<std::vector<double>>> survival_, conditional_, law_;
  std::vector<Note> notes_;
};

}  // namespace

std::span<const AcceptanceConvention> acceptance_conventions() { return conventions; }

const AcceptanceConvention* find_acceptance_convention(std::string_view name) {
  const auto found =
      std::find_if(conventions.begin(), conventions.end(), [&](const auto& c) { return c.name == name; });
  return found == conventions.end() ? nullptr : &*found;
}

std::string_view reason_against_convention(std::string_view name) {
  if (name == "sglang.spec_accept_rate" || name == "sglang.accept_rate") {
    return "its denominator differs between releases; give sglang.spec_accept_length";
  }
  return {};
}

AcceptanceConversion convert_acceptance(std::span<const AcceptanceFigure> given, std::optional<std::int64_t> gamma) {
  const Knowledge known(given, gamma);
  AcceptanceConversion conversion{known.gamma(), known.drafted_per_step(), {}, known.notes()};
  for (const AcceptanceConvention& convention : conventions) {
    if (!convention.is_count()) conversion.figures.push_back(known.as(convention));
  }
  return conversion;
}

}  // namespace specdec::estimate
