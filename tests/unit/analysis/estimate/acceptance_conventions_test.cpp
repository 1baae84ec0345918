#include "analysis/estimate/acceptance_conventions.hpp"

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/support/catch.hpp"

using namespace specdec::estimate;

namespace {

using Values = std::vector<double>;

const AcceptanceConvention& convention(std::string_view name) {
  const AcceptanceConvention* const found = find_acceptance_convention(name);
  INFO(name);
  REQUIRE(found);
  return *found;
}

AcceptanceConversion converted(std::string_view name, Values values, std::optional<std::int64_t> gamma = {}) {
  return convert_acceptance(std::vector<AcceptanceFigure>{{&convention(name), std::move(values)}}, gamma);
}

AcceptanceConversion converted_counts(const std::vector<std::pair<std::string_view, double>>& counts,
                                      std::optional<std::int64_t> gamma = {}) {
  std::vector<AcceptanceFigure> figures;
  for (const auto& [name, value] : counts) figures.push_back({&convention(name), {value}});
  return convert_acceptance(figures, gamma);
}

const ConvertedFigure& figure(const AcceptanceConversion& conversion, std::string_view name) {
  for (const ConvertedFigure& f : conversion.figures) {
    if (f.figure.convention->name == name) return f;
  }
  FAIL("no figure " << name);
  return conversion.figures.front();
}

double value(const AcceptanceConversion& conversion, std::string_view name) {
  const ConvertedFigure& f = figure(conversion, name);
  INFO(name << ' ' << f.missing);
  REQUIRE(f.figure.values.size() == 1);
  return f.figure.values[0];
}

void check_values(const Values& computed, const Values& expected, double epsilon = 1e-12) {
  REQUIRE(computed.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(computed[i] == Approx(expected[i]).epsilon(epsilon).margin(1e-13));
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The engines' output after every outcome of the coins happened as often as its probability says: counted over
/// all 2^gamma outcomes, by each engine's own definition.
std::map<AcceptanceQuantity, Values> printed(const Values& rates) {
  const std::size_t gamma = rates.size();
  double rounds = 0, drafted = 0, accepted = 0, looked_at = 0, looked_at_accepted = 0;
  Values law(gamma + 1, 0), at(gamma, 0), reached(gamma, 0);
  for (std::size_t outcome = 0; outcome < std::size_t{1} << gamma; ++outcome) {
    double weight = 1;
    std::size_t n = 0;
    bool stands = true;
    for (std::size_t j = 0; j < gamma; ++j) {
      const bool coin = (outcome >> j & 1) != 0;
      weight *= coin ? rates[j] : 1 - rates[j];
      stands = stands && coin;
      n += stands;
    }
    rounds += weight;
    drafted += weight * static_cast<double>(gamma);
    accepted += weight * static_cast<double>(n);
    looked_at += weight * static_cast<double>(std::min(n + 1, gamma));
    looked_at_accepted += weight * static_cast<double>(n);
    law[n] += weight;
    for (std::size_t j = 0; j < n; ++j) at[j] += weight;
    for (std::size_t j = 0; j < std::min(n + 1, gamma); ++j) reached[j] += weight;
  }
  Values conditional(gamma), unconditional(gamma);
  for (std::size_t j = 0; j < gamma; ++j) {
    unconditional[j] = at[j] / rounds;
    conditional[j] = at[j] / reached[j];
  }
  using Q = AcceptanceQuantity;
  return {{Q::tokens_per_step, {(accepted + rounds) / rounds}},
          {Q::accepted_per_step, {accepted / rounds}},
          {Q::accepted_share, {accepted / drafted}},
          {Q::unconditional, unconditional},
          {Q::conditional, conditional},
          {Q::accepted_law, law},
          {Q::alpha, {looked_at_accepted / looked_at}}};
}

Values in_units_of(const AcceptanceConvention& c, Values values) {
  for (double& v : values) v *= c.percent ? 100 : 1;
  return values;
}

}  // namespace

TEST_CASE("under a constant rate every convention gives every other as counted over all outcomes") {
  for (const double alpha : {0.05, 0.62, 0.9}) {
    for (const std::size_t gamma : {std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
      const auto expected = printed(Values(gamma, alpha));
      for (const AcceptanceConvention& from : acceptance_conventions()) {
        if (from.is_count()) continue;
        const auto conversion =
            converted(from.name, in_units_of(from, expected.at(from.quantity)), static_cast<std::int64_t>(gamma));
        std::size_t others = 0;
        for (const ConvertedFigure& to : conversion.figures) {
          INFO(from.name << " to " << to.figure.convention->name << " at alpha " << alpha << ", gamma " << gamma);
          CHECK(to.missing.empty());
          check_values(to.figure.values,
                       in_units_of(*to.figure.convention, expected.at(to.figure.convention->quantity)), 1e-11);
          ++others;
        }
        CHECK(others >= 30);
      }
    }
  }
}

TEST_CASE("rates that change with the position pass through every convention that holds them") {
  const auto expected = printed({0.9, 0.5, 0.8, 0.0, 0.3});
  using Q = AcceptanceQuantity;
  for (const AcceptanceConvention& from : acceptance_conventions()) {
    if (from.quantity != Q::unconditional && from.quantity != Q::accepted_law) continue;
    const auto conversion = converted(from.name, expected.at(from.quantity), 5);
    for (const ConvertedFigure& to : conversion.figures) {
      const AcceptanceConvention& c = *to.figure.convention;
      if (c.quantity == Q::alpha || c.quantity == Q::conditional) continue;
      INFO(from.name << " to " << c.name);
      check_values(to.figure.values, in_units_of(c, expected.at(c.quantity)));
    }
    CHECK(value(conversion, "alpha") == Approx(expected.at(Q::alpha)[0]).epsilon(1e-12));
  }
}

TEST_CASE("a constant rate put in place of the measured ones is told from them") {
  // Not a rate for each position: what holds for a constant alpha must not be said to be exact.
  const auto conversion = converted("vllm.mean_acceptance_length", {3.07}, 3);
  CHECK(figure(conversion, "sglang.spec_accept_length").basis == ConversionBasis::exact);
  CHECK(figure(conversion, "accepted_drafts_per_step").basis == ConversionBasis::exact);
  CHECK(figure(conversion, "vllm.avg_draft_acceptance_rate").basis == ConversionBasis::equal_drafts);
  CHECK(figure(conversion, "unconditional_rates").basis == ConversionBasis::constant_alpha);
  CHECK(figure(conversion, "conditional_rates").basis == ConversionBasis::constant_alpha);
  CHECK(figure(conversion, "rounds_by_accepted").basis == ConversionBasis::constant_alpha);
  CHECK(figure(conversion, "alpha").basis == ConversionBasis::constant_alpha);
  CHECK(figure(conversion, "position_trace.acc_len").basis == ConversionBasis::constant_alpha);
  const auto rates = converted("vllm.per_position_acceptance_rate", {0.897, 0.676, 0.5});
  CHECK(rates.gamma == 3);
  CHECK(figure(rates, "rounds_by_accepted").basis == ConversionBasis::exact);
  CHECK(figure(rates, "tokens_per_step").basis == ConversionBasis::exact);
  CHECK(figure(rates, "conditional_rates").basis == ConversionBasis::equal_drafts);
}

TEST_CASE("one log line's figures follow from each other") {
  // A vLLM line: 68 rounds of 3, 141 accepted, printed as 3.07, 69.1% and rates to three decimals.
  CHECK(value(converted("vllm.per_position_acceptance_rate", {0.897, 0.676, 0.5}), "vllm.mean_acceptance_length") ==
        Approx(3.073).margin(1e-9));
  CHECK(value(converted("vllm.mean_acceptance_length", {3.07}, 3), "vllm.avg_draft_acceptance_rate") ==
        Approx(69.0).margin(1e-9));
  const auto counts =
      converted_counts({{"vllm.num_drafts", 68}, {"vllm.num_draft_tokens", 204}, {"vllm.num_accepted_tokens", 141}});
  CHECK(counts.gamma == 3);
  CHECK(value(counts, "llamacpp.mean_acceptance_length") == Approx(1 + 141.0 / 68));
  CHECK(value(counts, "vllm.avg_draft_acceptance_rate") == Approx(100 * 141.0 / 204));
  CHECK(figure(counts, "vllm.avg_draft_acceptance_rate").basis == ConversionBasis::exact);
}

TEST_CASE("a histogram that leaves out its zeros needs gamma where full accepts matter") {
  const auto open = converted("sglang.spec_accept_histogram", {6, 3, 1});
  CHECK_FALSE(open.gamma);
  CHECK(value(open, "tokens_per_step") == Approx(1.5));
  CHECK(figure(open, "alpha").missing == "needs gamma");
  const auto whole = converted("sglang.spec_accept_histogram", {6, 3, 1}, 4);
  // 5 of 15 drafts that were looked at; no round reached the end.
  CHECK(value(whole, "alpha") == Approx(5.0 / 15));
  CHECK(value(whole, "accepted_over_drafted") == Approx(5.0 / 40));
  CHECK(converted("vllm.acceptance_histogram", {39, 1, 0, 3}).gamma == 3);
}

TEST_CASE("drafts of different lengths give no rate") {
  const auto counts = converted_counts({{"rounds", 100}, {"drafted", 250}, {"accepted", 120}}, 3);
  CHECK(value(counts, "tokens_per_step") == Approx(2.2));
  CHECK(value(counts, "accepted_over_drafted") == Approx(0.48));
  CHECK(figure(counts, "alpha").missing == "drafts differ in length, 2.5 in the mean");
  const auto share = converted_counts({{"llamacpp.draft_n", 259}, {"llamacpp.draft_n_accepted", 167}});
  CHECK(value(share, "llamacpp.draft_acceptance") == Approx(0.64479).margin(5e-6));
  CHECK(figure(share, "tokens_per_step").missing == "needs gamma");
}

TEST_CASE("tokens over verification calls are a length") {
  CHECK(value(converted_counts({{"sglang.completion_tokens", 300}, {"sglang.spec_verify_ct", 100}}),
              "vllm.mean_acceptance_length") == Approx(3));
}

TEST_CASE("an impossible figure is refused with the convention that it would fit") {
  const auto refusal = [](std::string_view name, Values values, std::optional<std::int64_t> gamma = {}) {
    return message_of([&] { converted(name, values, gamma); });
  };
  CHECK(refusal("vllm.mean_acceptance_length", {69.1}, 3) ==
        "vllm.mean_acceptance_length is 69.1, but must be in [1, 4] at gamma 3; is this a percentage of the drafted "
        "tokens?");
  CHECK(refusal("sglang.accept_len", {4.2}, 3) == "sglang.accept_len is 4.2, but must be in [1, 4] at gamma 3");
  CHECK(refusal("tokens_per_step", {0.8}) ==
        "tokens_per_step is 0.8, but must be at least 1; without the bonus token it is accepted_drafts_per_step");
  CHECK(refusal("accepted_drafts_per_step", {3.07}, 3) ==
        "accepted_drafts_per_step is 3.07, but must be in [0, 3] at gamma 3; with the bonus token it is "
        "tokens_per_step");
  CHECK(refusal("llamacpp.draft_acceptance", {64.5}, 3) ==
        "llamacpp.draft_acceptance is 64.5, but must be in [0, 1]; is this a percentage? It is a fraction here");
  CHECK(refusal("vllm.avg_draft_acceptance_rate", {101}, 3) ==
        "vllm.avg_draft_acceptance_rate is 101, but must be in [0, 100], per cent");
  CHECK(refusal("unconditional_rates", {0.7, 0.75}) ==
        "unconditional_rates is 0.75 at position 2 after 0.7, but must not grow; are these conditional_rates?");
  CHECK(refusal("unconditional_rates", {0.7, 0.6}, 3) ==
        "unconditional_rates has 2 values, but must have 3 at gamma 3: one for each drafted position");
  CHECK(refusal("vllm.acceptance_histogram", {3, 2, 1}, 3) ==
        "vllm.acceptance_histogram has 3 values, but must have 4 at gamma 3: for 0 to gamma accepted drafts");
  CHECK(refusal("rounds_by_accepted", {0, 0}) == "rounds_by_accepted holds no round");
  CHECK(refusal("alpha", {std::nan("")}, 3) == "alpha is nan, but must be in [0, 1]");
  CHECK(refusal("alpha", {0.5}, 0) == "convert_acceptance: gamma is 0, but must be in [1, 1000]");
  CHECK(message_of([] {
          converted_counts({{"drafted", 10}, {"accepted", 11}});
        }) == "accepted is 11, but must be at most drafted (10)");
  CHECK(
      message_of([] {
        converted_counts({{"accepted", 11}});
      }) ==
      "accepted is given alone, but accepted drafts with rounds or drafted tokens, or tokens with rounds, are needed");
  CHECK(message_of([] {
          converted_counts({{"alpha", 0.5}, {"accepted", 1}});
        }) == "accepted is given beside alpha, but only counts go together");
  CHECK(message_of([] {
          converted_counts({{"rounds", 0}, {"accepted", 0}});
        }) == "rounds is 0, but must be above 0: nothing was drafted");
}

TEST_CASE("a fraction given where per cent are printed is taken as printed, and said") {
  const auto conversion = converted("vllm.spec_decode_acceptance_rate", {0.691}, 3);
  REQUIRE(conversion.notes.size() == 1);
  CHECK(conversion.notes[0].code == "fraction_taken_as_percent");
  CHECK(converted("vllm.spec_decode_acceptance_rate", {69.1}, 3).notes.empty());
}

TEST_CASE("names of conventions differ, and the rate of SGLang is refused with a reason") {
  std::set<std::string_view> names;
  for (const AcceptanceConvention& c : acceptance_conventions()) CHECK(names.insert(c.name).second);
  CHECK(find_acceptance_convention("sglang.spec_accept_rate") == nullptr);
  CHECK_FALSE(reason_against_convention("sglang.spec_accept_rate").empty());
  CHECK(reason_against_convention("alpha").empty());
}
