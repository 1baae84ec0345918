#include "analysis/estimate/text_source_tests.hpp"

#include <cstddef>
#include <vector>

namespace specdec::estimate {
namespace {

bool above_warning(const MartingaleTest& test) { return test.z && *test.z > text_source_warning; }
bool beyond_warning(const MartingaleTest& test) { return test.z && std::abs(*test.z) > text_source_warning; }

}  // namespace

bool TextSourceResult::suspicious() const {
  return beyond_warning(acceptance) || beyond_warning(surprisal) || above_warning(root);
}

std::optional<double> TextSourceResult::mean_ratio() const {
  if (!ratio.z || ratio.standard_error() > told_ratio_error) return std::nullopt;
  return 1 + *ratio.z * ratio.standard_error();
}

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

void TextSourceAccumulator::add(const Observations& observations, const std::optional<std::int32_t>& task) {
  const PositionLabels labels = observations.labels();
  const auto counts = [&](std::size_t i) { return !task || labels.task_of(i) == *task; };
  const Deviations& acceptance = observations.acceptance_deviation;
  for (std::size_t i = 0; i < acceptance.value.size(); ++i) {
    const bool known = std::isfinite(acceptance.value[i]) && std::isfinite(acceptance.variance[i]);
    if (known && counts(i)) acceptance_.add(acceptance.value[i], acceptance.variance[i]);
  }
  if (observations.tier == traces::Tier::scalar && acceptance.value.empty()) {
    for (std::size_t i = 0; i < observations.draft_token_probability.size(); ++i) {
      const double ratio = observations.draft_token_probability[i] * std::exp(observations.surprisal[i]);
      if (!std::isfinite(ratio) || !counts(i)) continue;
      const double root = std::sqrt(ratio);
      ratio_.add(ratio - 1, (ratio - 1) * (ratio - 1));
      root_.add(root - 1, (root - 1) * (root - 1));
    }
  }
  const Deviations& surprisal = observations.surprisal_deviation;
  for (std::size_t i = 0; i < surprisal.value.size(); ++i) {
    if (counts(i)) surprisal_.add(surprisal.value[i], surprisal.variance[i]);
  }
  const auto add_neighbours = [&](const std::vector<double>& of_neighbour, SurprisalFit& fit) {
    for (std::size_t i = 0; i < of_neighbour.size(); ++i) {
      if (counts(i)) fit.add(of_neighbour[i] - observations.target_entropy[i], surprisal.variance[i]);
    }
  };
  add_neighbours(observations.surprisal_of_previous, previous_);
  add_neighbours(observations.surprisal_of_next, next_);
}

void TextSourceAccumulator::merge(const TextSourceAccumulator& other) {
  acceptance_.merge(other.acceptance_);
  ratio_.merge(other.ratio_);
  root_.merge(other.root_);
  surprisal_.merge(other.surprisal_);
  previous_.merge(other.previous_);
  next_.merge(other.next_);
}

std::string TextSourceResult::warning() const {
  std::string text = "the text does not look sampled from the target as recorded, and replay means nothing: ";
  if (rows_shifted_by) return text + std::string(about_shift(*rows_shifted_by));
  if (above_warning(root)) text += "its tokens are likelier by q than by p: ";
  return text + "check whether p and q are swapped, and at what temperature it was sampled";
}

TextSourceResult TextSourceAccumulator::result() const {
  TextSourceResult result{acceptance_.test(least_acceptance_variance),
                          surprisal_.sums.test(least_surprisal_variance),
                          ratio_.test(least_acceptance_variance),
                          root_.test(least_acceptance_variance),
                          {}};
  if (result.suspicious()) result.rows_shifted_by = rows_shifted_by(surprisal_, previous_, next_);
  return result;
}

}  // namespace specdec::estimate
