#include "analysis/planning/published_tables.hpp"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "analysis/cost/model_spec.hpp"
#include "tests/support/catch.hpp"

// The paper: Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, ICML 2023.
// Expected values are what tests/published/generate_tables.py prints: exact rational sums and a search over all gammas.
using namespace specdec;
using namespace specdec::planning;

namespace {

std::vector<PublishedAcceptance> of_the_paper() {
  std::vector<PublishedAcceptance> settings;
  for (const PublishedAcceptance& p : published_acceptances()) {
    if (p.target_model != "pair-target") settings.push_back(p);
  }
  return settings;
}

}  // namespace

TEST_CASE("published rates have names of their own, models that are known and the address of the paper") {
  std::set<std::string> names;
  std::size_t strict = 0;
  for (const PublishedAcceptance& p : of_the_paper()) {
    INFO(p.name);
    CHECK(names.insert(p.name).second);
    CHECK(published_acceptance(p.name) == published_acceptance(p.name + ' '));
    REQUIRE(published_acceptance(p.name) != nullptr);
    CHECK(published_acceptance(p.name)->alpha == p.alpha);
    CHECK(p.source == "https://arxiv.org/abs/2211.17192");
    CHECK(p.tokens == 10000);
    CHECK(cost::model_preset(p.target_model) != nullptr);
    const bool is_ngram = p.draft_model == "unigram" || p.draft_model == "bigram";
    CHECK((is_ngram || cost::model_preset(p.draft_model) != nullptr));
    // The printed digits, and 1.96 standard errors of 10,000 tokens that are accepted or not.
    const double around = 0.005 + 1.96 * std::sqrt(p.alpha * (1 - p.alpha)) / 100;
    CHECK(p.interval.low.alpha() == Approx(p.alpha - around).epsilon(1e-4));
    CHECK(p.interval.high.alpha() == Approx(p.alpha + around).epsilon(1e-4));
    strict += p.lenience == 1 ? 1 : 0;
  }
  CHECK(strict == 32);
  CHECK(names.size() == 47);
  CHECK(published_acceptance("ende-t5-small-t2") == nullptr);
}

TEST_CASE("Table 2: formula, error and what would explain it follow from the printed inputs") {
  struct Expected {
    double computed, error, verify_factor, lowest, highest, c, alpha;
  };
  const Expected expected[] = {
      {3.157498544, 0.076801763, 0.918690688, 0.853818986, 0.984761157, 0.008384384, 0.775886684},
      {3.250890000, -0.138697403, 1.206121143, 1.123485619, 1.290950433, 0.069445878, 0.748459812},
      {2.497130929, -0.319218716, 1.829953968, 1.682558622, 1.984996799, 0.228564853, 0.683492463},
      {2.258000899, 0.151461012, 0.850046548, 0.785093614, 0.916403331, -0.001421922, 0.677614325},
      {2.346699264, 0.022713066, 0.973349632, 0.912098800, 1.036333666, 0.034669926, 0.690370126},
      {1.933842857, -0.276052863, 1.507150714, 1.415294914, 1.604815463, 0.279050238, 0.495252274},
      {2.401509375, 0.290854840, 0.752148488, 0.704864274, 0.800298272, -0.029570302, 0.765972581},
      {2.619338808, 0.145327207, 0.847735523, 0.794111133, 0.902504430, 0.009547105, 0.789480564},
      {2.024679699, 0.086591623, 0.894010909, 0.842684611, 0.947101686, 0.074670303, 0.794222724},
      {1.891364872, 0.216053039, 0.804565808, 0.752098325, 0.858382163, -0.019086838, 0.629289078},
      {1.802566964, 0.220481704, 0.797670455, 0.755623833, 0.841036686, -0.027443182, 0.681909934},
      {1.540763910, 0.103348793, 0.875421176, 0.817273643, 0.936264924, 0.068473725, 0.625360621},
  };
  const std::vector<Table2Row> rows = table_2();
  REQUIRE(rows.size() == std::size(expected));
  std::size_t explained = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Table2Row& row = rows[i];
    INFO("Table 2, row " << i + 1);
    CHECK(row.speed.computed == Approx(expected[i].computed).margin(1e-9));
    CHECK(row.error.value == Approx(expected[i].error).margin(1e-9));
    CHECK(row.verify_factor.value == Approx(expected[i].verify_factor).margin(1e-9));
    CHECK(row.verify_factor.lowest == Approx(expected[i].lowest).margin(1e-9));
    CHECK(row.verify_factor.highest == Approx(expected[i].highest).margin(1e-9));
    CHECK(row.c.value == Approx(expected[i].c).margin(1e-9));
    REQUIRE(row.alpha);
    CHECK(*row.alpha == Approx(expected[i].alpha).margin(1e-9));
    CHECK(row.error.lowest < row.error.value);
    CHECK(row.error.value < row.error.highest);
    explained += row.verification_explains() ? 1 : 0;
  }
  // T5-base and T5-large on translation: four rows; nothing of the summaries, which all are faster than the formula.
  CHECK(explained == 4);
  const Table2Errors errors = errors_of(rows);
  CHECK(errors.mean == Approx(0.048305339).margin(1e-9));
  CHECK(errors.root_mean_square == Approx(0.192761573).margin(1e-9));
  CHECK(errors.geometric_ratio == Approx(1.029413630).margin(1e-9));
  CHECK(errors.largest == Approx(0.319218716).margin(1e-9));
}

TEST_CASE("the rates of Appendix A.5 are those of the tables") {
  const char* const stochastic[] = {"ende-t5-small-t1", "ende-t5-small-t1-l0.5", "ende-t5-small-t1-l0.3",
                                    "ende-t5-small-t1-l0.1"};
  const char* const argmax[] = {"ende-t5-small-t0", "ende-t5-small-t0-l0.5", "ende-t5-small-t0-l0.3",
                                "ende-t5-small-t0-l0.1"};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(stochastic_lenience()[i].alpha == published_acceptance(stochastic[i])->alpha);
    CHECK(argmax_lenience()[i].alpha == published_acceptance(argmax[i])->alpha);
  }
  CHECK(bigram_figure().alpha == published_acceptance("ende-bigram-t0")->alpha);
}

TEST_CASE("the GPT-like pair and LaMDA have the shapes that are printed, and none where none is") {
  const auto parameters = [](const char* name) {
    const cost::ModelSpec* const model = cost::model_preset(name);
    REQUIRE(model != nullptr);
    return *model;
  };
  // 12 (4 768^2 + 2 768 3072), 2 (4 256^2 + 2 256 1024), 64 (4 8192 16384 + 3 8192 65536).
  CHECK(active_parameters(parameters("gpt-like-97m")) - 8000 * 768 == 84934656);
  CHECK(active_parameters(parameters("gpt-like-6m")) - 8000 * 256 == 1572864);
  CHECK(active_parameters(parameters("lamda-137b")) - 32000 * 8192LL == 137438953472LL);
  CHECK_FALSE(parameters("gpt-like-97m").max_context);
  for (const char* name : {"lamda-8b", "lamda-2b", "lamda-100m"}) {
    CHECK_FALSE(has_shape(parameters(name)));
    CHECK(parameters(name).stated_parameters);
  }
}
