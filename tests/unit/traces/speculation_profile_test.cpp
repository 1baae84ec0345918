#include "traces/serving/speculation_profile.hpp"
#include "tests/support/source_dir.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using nlohmann::json;
using traces::ServingCounts;

namespace {

const std::filesystem::path profile_folder = tests::source_dir() + "/traces/samples/serving";

/// 40 rounds of 3 drafts, as many of each number of tokens, which `change` may break.
template <class Change>
std::string small_profile(Change change) {
  json profile = json::parse(R"({"schema_version":"1.0","measured":true,"method":"eagle3","num_speculative_tokens":3,
    "max_supported_k":3,"verification_method":"longest_prefix","conditional_accept_rates":[0.75,0.666667,0.5],
    "marginal_accept_rates":[0.75,0.5,0.25],"mean_accept_length":2.5,"mean_accept_length_per_request":2.6,
    "accept_length_by_k":{"3":2.5},"acceptance_length_histogram":{"1":10,"2":10,"3":10,"4":10}})");
  change(profile);
  return profile.dump();
}

template <class Change>
tests::AllCounts profile_counts(Change change) {
  return tests::counts_of({small_profile(change)});
}

template <class Change>
std::string profile_refusal(Change change) {
  return tests::counts_refusal({small_profile(change)});
}

auto profile_as_it_is = [](json&) {};

}  // namespace

TEST_CASE("profiles of both writers have the counts that their histogram was made of") {
  const tests::AllCounts requests({profile_folder / "vllm_requests.jsonl"});
  std::vector<double> histogram(5, 0);
  for (const ServingCounts& request : requests.units) {
    for (std::size_t j = 0; j < request.rounds_by_accepted.size(); ++j) histogram[j] += request.rounds_by_accepted[j];
  }
  for (const char* name : {"speculation_profile.json", "speculation_profile_validated.json"}) {
    const tests::AllCounts read({profile_folder / name});
    CHECK(read.warnings.empty());
    REQUIRE(read.units.size() == 1);
    const ServingCounts& unit = read.units[0];
    CHECK(unit.unit == traces::CountUnit::total);
    CHECK(unit.engine == "model-optimizer");
    CHECK(unit.format == "speculation profile");
    CHECK(unit.shape == traces::DraftShape::chain);
    CHECK(unit.gamma == 4);
    CHECK(unit.rounds_by_accepted == histogram);
    CHECK_FALSE(unit.drafted);
  }
}

TEST_CASE("a profile is read from whichever of its figures are there") {
  const ServingCounts whole = profile_counts(profile_as_it_is).units.at(0);
  CHECK(whole.rounds == 40);
  const ServingCounts named = profile_counts([](json& profile) {
                                profile["target_model"] = "org/target";
                                profile["draft_checkpoint"] = {{"path", "org/draft"}};
                              }).units.at(0);
  CHECK(named.label("model_name") == "org/target");
  CHECK(named.label("draft") == "org/draft");
  CHECK(whole.accepted == 60);
  const auto only = [](std::initializer_list<const char*> keys) {
    return profile_counts([&](json& profile) {
      json kept = {{"measured", true}};
      for (const char* key : keys) kept[key] = profile[key];
      profile = kept;
    });
  };
  CHECK(only({"acceptance_length_histogram"}).units.at(0).rounds == 40);
  CHECK_FALSE(only({"acceptance_length_histogram"}).units.at(0).gamma);
  for (const char* rates : {"marginal_accept_rates", "conditional_accept_rates"}) {
    const tests::AllCounts read = only({rates});
    CHECK(read.warns("rates_without_rounds"));
    CHECK(read.units.at(0).tokens_per_round.value() == Approx(2.5).epsilon(1e-6));
    CHECK(read.units.at(0).gamma == 3);
  }
  const tests::AllCounts length = only({"accept_length_by_k", "mean_accept_length", "num_speculative_tokens"});
  REQUIRE(length.units.size() == 1);
  CHECK(length.units[0].tokens_per_round == 2.5);
}

TEST_CASE("lengths of a profile at other numbers of drafts are units of their own") {
  const tests::AllCounts read = profile_counts([](json& profile) { profile["accept_length_by_k"]["7"] = 3.1; });
  REQUIRE(read.units.size() == 2);
  CHECK(read.units[1].gamma == 7);
  CHECK(read.units[1].tokens_per_round == 3.1);
  CHECK_FALSE(read.units[1].rounds);
}

TEST_CASE("a mean over requests that a profile does not call so is passed over") {
  const auto mean_of_requests = [](json& profile) {
    profile["mean_accept_length"] = 2.6;
    profile["accept_length_by_k"] = {{"3", 2.6}};
    profile.erase("mean_accept_length_per_request");
  };
  CHECK(profile_counts(mean_of_requests).units.at(0).accepted == 60);
}

TEST_CASE("profiles whose figures contradict each other are refused by the figure") {
  CHECK(profile_refusal(profile_as_it_is).empty());
  CHECK_THAT(profile_refusal([](json& p) { p["marginal_accept_rates"][1] = 0.51; }),
             Contains("1.txt:1: marginal_accept_rates[1] is 0.51, but must be 0.5, as acceptance_length_histogram"));
  CHECK_THAT(profile_refusal([](json& p) { p["conditional_accept_rates"][2] = 0.25; }),
             Contains("conditional_accept_rates[2] is 0.25, but must be 0.5, by acceptance_length_histogram"));
  CHECK_THAT(profile_refusal([](json& p) {
               p.erase("acceptance_length_histogram");
               p["conditional_accept_rates"][1] = 0.5;
             }),
             Contains("conditional_accept_rates[1] is 0.5, but must be 0.666667, by marginal_accept_rates"));
  CHECK_THAT(profile_refusal([](json& p) {
               p.erase("acceptance_length_histogram");
               p["marginal_accept_rates"][2] = 0.6;
             }),
             Contains("marginal_accept_rates[2] is 0.6, but must be at most 0.5, the rate before it"));
  CHECK_THAT(profile_refusal([](json& p) { p["mean_accept_length"] = 2.6; }),
             Contains("mean_accept_length is 2.6, but must be 2.5, by acceptance_length_histogram"));
  CHECK_THAT(profile_refusal([](json& p) { p["accept_length_by_k"]["3"] = 2.4; }),
             Contains("accept_length_by_k[3] is 2.4, but must be 2.5, as mean_accept_length is"));
  CHECK_THAT(profile_refusal([](json& p) { p["acceptance_length_histogram"]["5"] = 1; }),
             Contains("acceptance_length_histogram[5] is 1, but must be 0 where 3 tokens are drafted"));
  CHECK_THAT(profile_refusal([](json& p) { p["num_speculative_tokens"] = 2; }),
             Contains("conditional_accept_rates is 3 long, but must be 2 long"));
  CHECK_THAT(profile_refusal([](json& p) { p["max_supported_k"] = 2; }),
             Contains("max_supported_k is 2, but must be at least 3, as num_speculative_tokens is"));
}

TEST_CASE("stubs, other verification and broken figures of a profile are refused by key") {
  CHECK_THAT(profile_refusal([](json& p) { p["measured"] = false; }), Contains("measured is false, but must be true"));
  CHECK_THAT(profile_refusal([](json& p) { p["verification_method"] = "block"; }),
             Contains("verification_method is block, but must be longest_prefix"));
  CHECK_THAT(profile_refusal([](json& p) {
               p["acceptance_length_histogram"] = {{"0", 3}};
             }),
             Contains("acceptance_length_histogram[0] is 3, but must be 0"));
  CHECK_THAT(profile_refusal([](json& p) {
               p["acceptance_length_histogram"] = {{"two", 3}};
             }),
             Contains("acceptance_length_histogram is an object with two"));
  CHECK_THAT(profile_refusal([](json& p) { p["marginal_accept_rates"][0] = 75; }),
             Contains("marginal_accept_rates[0] is 75, but must be a rate in [0, 1]"));
  CHECK_THAT(profile_refusal([](json& p) {
               p["accept_length_by_k"] = {{"2", 3.5}};
             }),
             Contains("accept_length_by_k[2] is 3.5, but must be a mean in [1, 3]"));
  CHECK_THAT(profile_refusal([](json& p) {
               for (const char* key : {"conditional_accept_rates", "marginal_accept_rates", "mean_accept_length"})
                 p.erase(key);
               p["acceptance_length_histogram"] = nullptr;
             }),
             Contains("acceptance_length_histogram is missing, but must be given, or rates, or mean_accept_length"));
}
