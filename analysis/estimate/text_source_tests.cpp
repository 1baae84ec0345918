#include "analysis/estimate/text_source_tests.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specdec::estimate {
namespace {

bool beyond_warning(const MartingaleTest& test) { return test.z && std::abs(*test.z) > text_source_warning; }

}  // namespace

bool TextSourceResult::suspicious() const { return beyond_warning(acceptance) || beyond_warning(surprisal); }

void MartingaleSums::add(double a_deviation, double a_variance) {
  deviation.add(a_deviation);
  variance.add(a_variance);
  ++positions;
}

void MartingaleSums::merge(const MartingaleSums& other) {
  deviation.add(other.deviation);
  variance.add(other.variance);
  positions += other.positions;
}

MartingaleTest MartingaleSums::test(double least_variance) const {
  MartingaleTest result{std::nullopt, positions, variance.value()};
  if (result.variance >= least_variance) result.z = deviation.value() / std::sqrt(result.variance);
  return result;
}

void SurprisalFit::add(double a_deviation, double a_variance) {
  impossible += std::isinf(a_deviation) ? 1 : 0;
  if (std::isfinite(a_deviation) && std::isfinite(a_variance)) sums.add(a_deviation, a_variance);
}

void SurprisalFit::merge(const SurprisalFit& other) {
  sums.merge(other.sums);
  impossible += other.impossible;
}

bool SurprisalFit::passes() const {
  if (impossible > 0) return false;
  const MartingaleTest test = sums.test(least_neighbour_variance);
  return test.z ? !beyond_warning(test) : test.variance == 0 && test.positions >= least_neighbours;
}

bool SurprisalFit::fails() const {
  const auto tokens = static_cast<double>(sums.positions + impossible);
  return beyond_warning(sums.test(least_neighbour_variance)) ||
         static_cast<double>(impossible) > most_impossible * tokens;
}

std::optional<std::int64_t> rows_shifted_by(const SurprisalFit& own, const SurprisalFit& previous,
                                            const SurprisalFit& next) {
  if (!own.fails()) return std::nullopt;
  if (next.passes()) return 1;
  if (previous.passes()) return -1;
  return std::nullopt;
}

std::string_view about_shift(std::int64_t rows_shifted_by) {
  return rows_shifted_by > 0 ? rows_of_next_token : rows_of_previous_token;
}

void TextSourceAccumulator::add(const Observations& observations) {
  const Bracketed& a = observations.acceptance;
  const Bracketed& mean = observations.mean_acceptance;
  if (!a.empty() && !mean.empty() && observations.depths == 1) {
    for (std::size_t i = 0; i < observations.acceptance_variance.size(); ++i) {
      const double deviation = a.lower[i] - mean.lower[i];
      const double variance = observations.acceptance_variance[i];
      const bool known = a.exact_at(i) && mean.exact_at(i) && std::isfinite(deviation) && std::isfinite(variance);
      if (known) acceptance_.add(deviation, variance);
    }
  }
  if (observations.surprisal.empty() || observations.target_entropy.empty()) return;
  const auto add = [&](const std::vector<double>& surprisal, SurprisalFit& fit) {
    for (std::size_t i = 0; i < std::min(surprisal.size(), observations.surprisal_variance.size()); ++i) {
      fit.add(surprisal[i] - observations.target_entropy[i], observations.surprisal_variance[i]);
    }
  };
  add(observations.surprisal, surprisal_);
  add(observations.surprisal_of_previous, previous_);
  add(observations.surprisal_of_next, next_);
}

void TextSourceAccumulator::merge(const TextSourceAccumulator& other) {
  acceptance_.merge(other.acceptance_);
  surprisal_.merge(other.surprisal_);
  previous_.merge(other.previous_);
  next_.merge(other.next_);
}

std::string TextSourceResult::warning() const {
  std::string text =
      "the text does not look sampled from the target as recorded: a z beyond 4 happens once in 7900 recordings of the "
      "target's own text; replay then means nothing";
  if (rows_shifted_by) {
    text += "; but ";
    text += about_shift(*rows_shifted_by);
  }
  return text;
}

TextSourceResult TextSourceAccumulator::result() const {
  TextSourceResult result{
      acceptance_.test(least_acceptance_variance), surprisal_.sums.test(least_surprisal_variance), {}};
  if (result.suspicious()) result.rows_shifted_by = rows_shifted_by(surprisal_, previous_, next_);
  return result;
}

}  // namespace specdec::estimate
