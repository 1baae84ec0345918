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
    if (!p.is_of_shipped_pair()) settings.push_back(p);
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

TEST_CASE("Table 3: what each rate is worth at c = 0 and up to which c it pays") {
  struct Expected {
    double alpha, at_gamma_3, limit, largest_c;
    std::int64_t gamma;
    double speedup;
  };
  const Expected expected[] = {
      {0.03, 1.030927000, 1.030927835, -1.000000000, 0, 1.000000000},
      {0.05, 1.052625000, 1.052631579, 0.001190476, 0, 1.000000000},
      {0.88, 3.335872000, 8.333333333, 0.790476190, 12, 4.219840536},
      {0.03, 1.030927000, 1.030927835, -1.000000000, 0, 1.000000000},
      {0.05, 1.052625000, 1.052631579, 0.001190476, 0, 1.000000000},
      {0.89, 3.387069000, 9.090909091, 0.800000000, 12, 4.432832618},
      {0.08, 1.086912000, 1.086956522, 0.028571429, 1, 1.028571429},
      {0.20, 1.248000000, 1.250000000, 0.142857143, 1, 1.142857143},
      {0.75, 2.734375000, 4.000000000, 0.666666667, 7, 2.666332104},
      {0.80, 2.952000000, 5.000000000, 0.714285714, 8, 3.092079543},
      {0.82, 3.043768000, 5.555555556, 0.733333333, 9, 3.304796815},
      {0.07, 1.075243000, 1.075268817, 0.019047619, 1, 1.019047619},
      {0.19, 1.232959000, 1.234567901, 0.133333333, 1, 1.133333333},
      {0.62, 2.242728000, 2.631578947, 0.542857143, 4, 1.992076133},
      {0.68, 2.456832000, 3.125000000, 0.600000000, 5, 2.252831293},
      {0.71, 2.572011000, 3.448275862, 0.628571429, 6, 2.411270022},
      {0.13, 1.149097000, 1.149425287, 0.076190476, 1, 1.076190476},
      {0.23, 1.295067000, 1.298701299, 0.171428571, 1, 1.171428571},
      {0.65, 2.347125000, 2.857142857, 0.571428571, 5, 2.113328250},
      {0.73, 2.651917000, 3.703703704, 0.647619048, 6, 2.534262150},
      {0.74, 2.692824000, 3.846153846, 0.657142857, 6, 2.599074548},
      {0.08, 1.086912000, 1.086956522, 0.028571429, 1, 1.028571429},
      {0.16, 1.189696000, 1.190476190, 0.104761905, 1, 1.104761905},
      {0.53, 1.959777000, 2.127659574, 0.457142857, 3, 1.704153913},
      {0.55, 2.018875000, 2.222222222, 0.476190476, 4, 1.758651042},
      {0.56, 2.049216000, 2.272727273, 0.485714286, 4, 1.789634133},
      {0.61, 2.209081000, 2.564102564, 0.533333333, 4, 1.956282842},
      {0.71, 2.572011000, 3.448275862, 0.628571429, 6, 2.411270022},
      {0.75, 2.734375000, 4.000000000, 0.666666667, 7, 2.666332104},
      {0.57, 2.080093000, 2.325581395, 0.495238095, 4, 1.821377508},
      {0.71, 2.572011000, 3.448275862, 0.628571429, 6, 2.411270022},
      {0.74, 2.692824000, 3.846153846, 0.657142857, 6, 2.599074548},
  };
  const std::vector<Table3Row> rows = table_3();
  REQUIRE(rows.size() >= std::size(expected));
  std::vector<Table3Cost> at_5_percent;
  for (const Table3Cost& cost : table_3_costs()) {
    if (cost.c == 0.05) at_5_percent.push_back(cost);
  }
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const Table3Row& row = rows[i];
    INFO(row.setting->name);
    CHECK(row.setting->alpha == expected[i].alpha);
    CHECK(row.speedup_at_gamma_3 == Approx(expected[i].at_gamma_3).margin(1e-9));
    CHECK(row.limit.value == Approx(expected[i].limit).margin(1e-8));
    CHECK(row.limit.lowest < row.limit.value);
    CHECK(row.limit.value < row.limit.highest);
    CHECK(row.break_even_c == expected[i].alpha);
    CHECK(row.largest_c.has_value() == (expected[i].largest_c > 0));
    if (row.largest_c) CHECK(*row.largest_c == Approx(expected[i].largest_c).margin(1e-9));
    CHECK(at_5_percent[i].gamma == expected[i].gamma);
    CHECK(at_5_percent[i].speedup == Approx(expected[i].speedup).margin(1e-9));
    CHECK(at_5_percent[i].pays() == (row.largest_c && *row.largest_c >= 0.05));
  }
}

TEST_CASE("Table 3: alpha is higher at temperature 0 but for four of sixteen pairs") {
  std::set<std::string> not_higher;
  std::size_t pairs = 0;
  for (const TemperaturePair& pair : temperature_pairs()) {
    if (pair.argmax->is_of_shipped_pair()) continue;
    ++pairs;
    if (pair.difference.value <= 0) not_higher.insert(pair.argmax->name);
  }
  CHECK(pairs == 16);
  // Those of the GPT-like target, of which one is lower, and LaMDA's 2B.
  CHECK(not_higher ==
        std::set<std::string>{"lm1b-unigram-t0", "lm1b-bigram-t0", "lm1b-gpt-6m-t0", "dialog-lamda-2b-t0"});
}

TEST_CASE("Table 5: what lenience gains at the draft's own c, and that its rates go together") {
  struct Expected {
    double alpha;
    std::int64_t gamma;  // -1: none
    double speedup, gain;
  };
  const Expected expected[] = {
      {0.75, 10, 3.331356049, 1.000000000}, {0.75, 10, 3.331356049, 1.000000000}, {0.8, 12, 4.004340757, 1.202015245},
      {0.87, 17, 5.629571168, 1.689873759}, {0.07, -1, 1.075268817, 1.000000000}, {0.1, -1, 1.111111111, 1.033333333},
      {0.11, -1, 1.123595506, 1.044943820}, {0.16, -1, 1.190476190, 1.107142857}, {0.19, -1, 1.234567901, 1.000000000},
      {0.23, -1, 1.298701299, 1.051948052}, {0.25, -1, 1.333333333, 1.080000000}, {0.32, -1, 1.470588235, 1.191176471},
      {0.62, 7, 2.329521289, 1.000000000},  {0.71, 9, 2.939230030, 1.261731345},  {0.76, 10, 3.446161029, 1.479343007},
      {0.84, 15, 4.788558891, 2.055597823}, {0.68, 6, 2.350731129, 1.000000000},  {0.8, 9, 3.281712565, 1.396039098},
      {0.83, 10, 3.660575034, 1.557207028}, {0.9, 15, 5.091862382, 2.166076043},
  };
  std::vector<Table5Row> rows;
  for (const Table5Row& row : table_5()) {
    if (!row.setting->is_of_shipped_pair()) rows.push_back(row);
  }
  REQUIRE(rows.size() == std::size(expected));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].setting->name);
    CHECK(rows[i].setting->alpha == expected[i].alpha);
    CHECK(rows[i].gamma.value_or(-1) == expected[i].gamma);
    CHECK(rows[i].speedup == Approx(expected[i].speedup).margin(1e-8));
    CHECK(rows[i].gain == Approx(expected[i].gain).margin(1e-8));
    CHECK(rows[i].is_concave.value_or(true));
    CHECK(rows[i].is_concave.has_value() == (rows[i].setting->lenience < 1 && rows[i].setting->temperature == 1));
  }
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
  CHECK(matmul_parameters(parameters("gpt-like-97m")) - 8000 * 768 == 84934656);
  CHECK(matmul_parameters(parameters("gpt-like-6m")) - 8000 * 256 == 1572864);
  CHECK(matmul_parameters(parameters("lamda-137b")) - 32000 * 8192LL == 137438953472LL);
  CHECK_FALSE(parameters("gpt-like-97m").max_context);
  for (const char* name : {"lamda-8b", "lamda-2b", "lamda-100m"}) {
    CHECK_FALSE(has_shape(parameters(name)));
    CHECK(parameters(name).stated_parameters);
  }
}
