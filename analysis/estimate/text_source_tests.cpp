#include "analysis/estimate/text_source_tests.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace specdec::estimate {
namespace {

bool beyond_warning(const MartingaleTest& test) { return test.z && std::abs(*test.z) > text_source_warning; }

/// Calls use(deviation, variance) for positions with both known.
template <class Deviation, class Use>
void for_each_known(const std::vector<double>& variance, Deviation deviation, Use use) {
  for (std::size_t i = 0; i < variance.size(); ++i) {
    const double d = deviation(i);
    if (std::isfinite(d) && std::isfinite(variance[i])) use(d, variance[i]);
  }
}

}  // namespace

bool TextSourceResult::suspicious() const { return beyond_warning(acceptance) || beyond_warning(surprisal); }

void TextSourceAccumulator::Sums::add(double a_deviation, double a_variance) {
  deviation.add(a_deviation);
  variance.add(a_variance);
  ++positions;
}

void TextSourceAccumulator::Sums::merge(const Sums& other) {
  deviation.add(other.deviation);
  variance.add(other.variance);
  positions += other.positions;
}

MartingaleTest TextSourceAccumulator::Sums::test(double least_variance) const {
  MartingaleTest result{std::nullopt, positions, variance.value()};
  if (result.variance >= least_variance) result.z = deviation.value() / std::sqrt(result.variance);
  return result;
}

void TextSourceAccumulator::add(const Observations& observations) {
  const Bracketed& a = observations.acceptance;
  const Bracketed& mean = observations.mean_acceptance;
  if (!a.empty() && !mean.empty() && observations.depths == 1) {
    const auto deviation_at = [&](std::size_t i) {
      const bool exact = a.exact_at(i) && mean.exact_at(i);
      return exact ? a.lower[i] - mean.lower[i] : std::numeric_limits<double>::quiet_NaN();
    };
    for_each_known(observations.acceptance_variance, deviation_at,
                   [&](double deviation, double variance) { acceptance_.add(deviation, variance); });
  }
  if (!observations.surprisal.empty() && !observations.target_entropy.empty()) {
    for_each_known(
        observations.surprisal_variance,
        [&](std::size_t i) { return observations.surprisal[i] - observations.target_entropy[i]; },
        [&](double deviation, double variance) { surprisal_.add(deviation, variance); });
    previous_.add(observations.surprisal_of_previous, observations);
    next_.add(observations.surprisal_of_next, observations);
  }
}

void TextSourceAccumulator::ShiftedSums::add(const std::vector<double>& surprisal, const Observations& observations) {
  for (std::size_t i = 0; i < surprisal.size(); ++i) {
    const double deviation = surprisal[i] - observations.target_entropy[i];
    const double variance = observations.surprisal_variance[i];
    impossible |= std::isinf(deviation);
    if (std::isfinite(deviation) && std::isfinite(variance)) sums.add(deviation, variance);
  }
}

void TextSourceAccumulator::ShiftedSums::merge(const ShiftedSums& other) {
  sums.merge(other.sums);
  impossible = impossible || other.impossible;
}

void TextSourceAccumulator::merge(const TextSourceAccumulator& other) {
  acceptance_.merge(other.acceptance_);
  surprisal_.merge(other.surprisal_);
  previous_.merge(other.previous_);
  next_.merge(other.next_);
}

bool TextSourceAccumulator::ShiftedSums::passes() const {
  const MartingaleTest test = sums.test(least_surprisal_variance);
  return !impossible && test.z && !beyond_warning(test);
}

std::string TextSourceResult::warning() const {
  std::string text =
      "the text does not look sampled from the target as recorded: a z beyond 4 happens once in 7900 recordings of the "
      "target's own text; replay then means nothing";
  if (rows_shifted_by) {
    text += "; but ";
    text += *rows_shifted_by > 0 ? rows_of_next_token : rows_of_previous_token;
  }
  return text;
}

TextSourceResult TextSourceAccumulator::result() const {
  TextSourceResult result{acceptance_.test(least_acceptance_variance), surprisal_.test(least_surprisal_variance), {}};
  if (!result.suspicious()) return result;
  if (next_.passes()) {
    result.rows_shifted_by = 1;
  } else if (previous_.passes()) {
    result.rows_shifted_by = -1;
  }
  return result;
}

}  // namespace specdec::estimate
