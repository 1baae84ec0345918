// Does the text that the decoders write have the target's law, with the random streams that they use in earnest?
// Chi-square tests over all texts of a few tokens. Each sound sampler fails with probability 1e-6 for a random seed;
// the seeds are fixed. Every wrong sampler must fail at the same level.

#include <functional>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/decoding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/independent_sequences.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/wrong_samplers.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
using Tokens = std::vector<Token>;

namespace {

constexpr double false_alarm_rate = 1e-6;
constexpr std::int64_t sequences = 60000;
constexpr std::int64_t vocab = 3;
constexpr std::int64_t text_length = 5;
const Tokens prompt = {1};

using Decode = std::function<Generation(LanguageModel& target, LanguageModel& draft, const RandomStream&)>;

/// The probability of every text of `text_length` tokens, in lexical order, after the prompt.
std::vector<double> law(const ContextTableModel& target, const specdec::core::Standardisation& standardisation) {
  std::vector<double> probabilities = {1};
  std::vector<Tokens> texts = {prompt};
  for (std::int64_t t = 0; t < text_length; ++t) {
    std::vector<double> longer_probabilities;
    std::vector<Tokens> longer_texts;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::span<const double> p = target.row(texts[i]);
      std::vector<double> row(p.begin(), p.end());
      specdec::core::standardise(row, standardisation);
      for (Token x = 0; x < vocab; ++x) {
        longer_texts.push_back(texts[i]);
        longer_texts.back().push_back(x);
        longer_probabilities.push_back(probabilities[i] * row[static_cast<std::size_t>(x)]);
      }
    }
    probabilities = std::move(longer_probabilities);
    texts = std::move(longer_texts);
  }
  return probabilities;
}

double p_value(const TablePair& pair, const specdec::core::Standardisation& standardisation, const Decode& decode) {
  const std::vector<double> expected = law(pair.target, standardisation);
  std::vector<std::int64_t> counts(expected.size());
  for (const Generation& run : independent_sequences(pair, sequences, 20240501, decode)) {
    std::size_t text = 0;
    for (const Token x : run.tokens) text = text * vocab + static_cast<std::size_t>(x);
    counts[text] += 1;
  }
  return chi_square_p_value(counts, expected);
}

DecodingOptions options_for(std::int64_t gamma, const specdec::core::Standardisation& standardisation = {}) {
  DecodingOptions options;
  options.gamma = gamma;
  options.max_new_tokens = text_length;
  options.standardisation = standardisation;
  return options;
}

Decode speculative(const DecodingOptions& options) {
  return [options](LanguageModel& target, LanguageModel& draft, const RandomStream& stream) {
    return decode_speculatively(target, draft, prompt, options, stream);
  };
}

Decode defective(Defect defect, const DecodingOptions& options) {
  return [=](LanguageModel& target, LanguageModel& draft, const RandomStream& stream) {
    return decode_with_defect(defect, target, draft, prompt, options, stream);
  };
}

TablePair dense_pair() { return synthetic_bigram_pair(vocab, 1.0, 77); }

}  // namespace

TEST_CASE("speculative decoding writes the target's text for every gamma") {
  const TablePair sparse = random_pair(vocab, 2, Likeness::independent, 5);
  for (std::int64_t gamma = 0; gamma <= 5; ++gamma) {
    CAPTURE(gamma);
    CHECK(p_value(dense_pair(), {}, speculative(options_for(gamma))) > false_alarm_rate);
    CHECK(p_value(sparse, {}, speculative(options_for(gamma))) > false_alarm_rate);
  }
}

TEST_CASE("plain decoding writes the target's text") {
  const Decode plain = [](LanguageModel& target, LanguageModel&, const RandomStream& stream) {
    return decode_autoregressively(target, prompt, options_for(0), stream);
  };
  CHECK(p_value(dense_pair(), {}, plain) > false_alarm_rate);
}

TEST_CASE("the text has the standardised target's law, also when the draft is standardised differently") {
  const std::vector<specdec::core::Standardisation> standardisations = {{0.6}, {1.4, 2}, {1, 0, 0.8}};
  for (const specdec::core::Standardisation& standardisation : standardisations) {
    CAPTURE(standardisation.temperature, standardisation.top_k, standardisation.top_p);
    const DecodingOptions options = options_for(3, standardisation);
    CHECK(p_value(dense_pair(), standardisation, speculative(options)) > false_alarm_rate);
    const Decode own = [&](LanguageModel& target, LanguageModel& draft, const RandomStream& stream) {
      ModelDraft unstandardised(draft, {});
      return decode_with_draft(target, unstandardised, prompt, options, stream);
    };
    CHECK(p_value(dense_pair(), standardisation, own) > false_alarm_rate);
    // The test sees the standardisation: the text is not that of the target as it is.
    CHECK(p_value(dense_pair(), {}, own) < false_alarm_rate);
  }
}

TEST_CASE("every wrong sampler is told from the target") {
  const DecodingOptions options = options_for(2);
  CHECK(p_value(dense_pair(), {}, defective(Defect::none, options)) > false_alarm_rate);
  for (const Defect defect :
       {Defect::residual_not_subtracted, Defect::acceptance_without_ratio, Defect::bonus_from_draft,
        Defect::bonus_from_wrong_prefix, Defect::uniform_used_twice, Defect::one_uniform_per_position}) {
    CAPTURE(static_cast<int>(defect));
    CHECK(p_value(dense_pair(), {}, defective(defect, options)) < false_alarm_rate);
  }
}

TEST_CASE("without a defect the wrong sampler is the decoder itself") {
  TablePair pair = synthetic_bigram_pair(20, 1, 3);
  DecodingOptions options = options_for(4);
  options.max_new_tokens = 300;
  const RandomStream stream(6, 0);
  const Generation right = decode_speculatively(pair.target, pair.draft, prompt, options, stream);
  const Generation same = decode_with_defect(Defect::none, pair.target, pair.draft, prompt, options, stream);
  CHECK(same.tokens == right.tokens);
  CHECK(same.counters == right.counters);
}
