#include "traces/serving/counts_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/known_rounds.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::CountsTaken;
using tests::KnownTotals;
using tests::recognises;
using tests::refusal_of_counts;
using tests::take_counts;
using traces::ServingCounts;
using List = std::vector<double>;

namespace {

/// The literal sample of the engine's documentation; its lists by round are cut short.
const std::string vllm_sample =
    R"("metrics":{"speculative_decoding":{"mean_acceptance_length":1.2325581395348837,"draft_acceptance_rate":0.07751937984496124,
"acceptance_histogram":[39,1,0,3],"acceptance_histogram_by_draft_length":{"3":[39,1,0,3]},"num_spec_steps":43,
"num_accepted_draft_tokens":10,"num_draft_tokens":129,"num_spec_tokens":3,"per_step_accepted":[0,1],"per_step_drafted":[3,3]}})";

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string list(const List& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string by_number(const List& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", i, numbers[i]);
  }
  return std::string("{") + text + "}";
}

std::string vllm_object(const KnownTotals& totals, const std::string& more = "") {
  std::string lengths;
  for (const auto& [length, histogram] : totals.by_drafted) {
    lengths += fmt::format("{}\"{}\":{}", lengths.empty() ? "" : ",", length, list(histogram));
  }
  return fmt::format(
      R"({{"mean_acceptance_length":{},"draft_acceptance_rate":{},"acceptance_histogram":{},)"
      R"("acceptance_histogram_by_draft_length":{{{}}},"num_spec_steps":{},"num_accepted_draft_tokens":{},)"
      R"("num_draft_tokens":{},"num_spec_tokens":3{}}})",
      totals.mean_length(), totals.rate(), list(totals.by_accepted), lengths, totals.rounds, totals.accepted,
      totals.drafted, more);
}

std::string vllm_response(const KnownTotals& totals, const std::string& more = "") {
  return R"({"model":"m","choices":[{"index":0,"text":" a","logprobs":null}],"usage":{"prompt_tokens":3},)"
         R"("metrics":{"speculative_decoding":)" +
         vllm_object(totals, more) + "}}\n";
}

std::string older_vllm_response(const KnownTotals& totals) {
  return fmt::format(
      R"({{"model":"m","choices":[{{"text":"a","speculative_decoding_stats":{{"acceptance_histogram":{},)"
      R"("num_spec_steps":{},"num_accepted_draft_tokens":{},"num_draft_tokens":{}}}}}]}})"
      "\n",
      by_number(totals.by_accepted), totals.rounds, totals.accepted, totals.drafted);
}

std::string tensorrt_response(const KnownTotals& totals) {
  return fmt::format(
      R"({{"model":"m","choices":[{{"index":0,"speculative_decoding":{{"acceptance_rate":{},)"
      R"("total_accepted_draft_tokens":{},"total_draft_tokens":{},"num_spec_steps":{},"acceptance_histogram":{},)"
      R"("num_spec_tokens":3}}}}]}})"
      "\n",
      totals.rate(), totals.accepted, totals.drafted, totals.rounds, list(totals.by_accepted));
}

/// A histogram without zeros at its end.
List trimmed(List histogram) {
  while (!histogram.empty() && histogram.back() == 0) histogram.pop_back();
  return histogram;
}

/// SGLang's names of accepted, drafted and histogram, by generation.
struct SglangNames {
  const char* accepted;
  const char* drafted;
  const char* histogram;
};
constexpr SglangNames sglang_generations[] = {
    {"spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"},
    {"spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"},
    {"spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"}};

std::string meta_info(const KnownTotals& totals, const SglangNames& names) {
  return fmt::format(
      R"({{"prompt_tokens":5,"completion_tokens":{},"spec_verify_ct":{},"spec_accept_rate":0.99,"{}":{},"{}":{},"{}":{}}})",
      totals.emitted() + 1, totals.rounds, names.accepted, totals.accepted, names.drafted, totals.drafted,
      names.histogram, list(trimmed(totals.by_accepted)));
}

std::string llama_response(const KnownTotals& totals) {
  return fmt::format(
      R"({{"content":"a","model":"m","timings":{{"prompt_n":4,"predicted_n":{},"predicted_ms":{},"draft_n":{},)"
      R"("draft_n_accepted":{}}}}})"
      "\n",
      totals.emitted() + 1, 10 * totals.emitted(), totals.drafted, totals.accepted);
}

template <class F>
std::string for_each_request(const F& response) {
  std::string content;
  for (const auto& rounds : tests::known_requests()) content += response(tests::totals_of(rounds));
  return content;
}

void check_known_rounds(const CountsTaken& taken, bool histograms = true) {
  const KnownTotals totals = tests::totals_of(tests::known_requests());
  REQUIRE(taken.units.size() == 3);
  CHECK(taken.warnings.empty());
  CHECK(taken.sum(&ServingCounts::rounds) == totals.rounds);
  CHECK(taken.sum(&ServingCounts::drafted) == totals.drafted);
  CHECK(taken.sum(&ServingCounts::accepted) == totals.accepted);
  if (histograms) CHECK(taken.sum(&ServingCounts::rounds_by_accepted) == totals.by_accepted);
  for (std::size_t i = 0; i < taken.units.size(); ++i) {
    CHECK(taken.units[i].unit == traces::CountUnit::request);
    CHECK(taken.units[i].rounds == static_cast<double>(tests::known_requests()[i].size()));
    CHECK(!taken.units[i].from_rates);
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("the sample of vLLM's counts by request is read as it stands") {
  const CountsTaken taken = take_counts(traces::vllm_requests_format(), std::string("{") + vllm_sample + "}");
  REQUIRE(taken.units.size() == 1);
  const ServingCounts& unit = taken.units[0];
  CHECK(unit.engine == "vllm");
  CHECK(unit.format == "vllm requests");
  CHECK(unit.unit == traces::CountUnit::request);
  CHECK(unit.rounds == 43);
  CHECK(unit.drafted == 129);
  CHECK(unit.accepted == 10);
  CHECK(unit.rounds_by_accepted == List{39, 1, 0, 3});
  CHECK(unit.rounds_by_accepted_and_drafted == std::map<std::int64_t, List>{{3, {39, 1, 0, 3}}});
  CHECK(unit.gamma == 3);
  CHECK(unit.shape == traces::DraftShape::chain);
  CHECK(!unit.rule);
}

TEST_CASE("every engine's responses give the known rounds") {
  check_known_rounds(take_counts(traces::vllm_requests_format(),
                                 for_each_request([](const KnownTotals& totals) { return vllm_response(totals); })));
  check_known_rounds(take_counts(traces::vllm_requests_format(), for_each_request(older_vllm_response)));
  check_known_rounds(take_counts(traces::tensorrt_llm_requests_format(), for_each_request(tensorrt_response)));
  check_known_rounds(take_counts(traces::llama_server_timings_format(), for_each_request(llama_response)), false);
  for (const SglangNames& names : sglang_generations) {
    check_known_rounds(take_counts(traces::sglang_responses_format(), for_each_request([&](const KnownTotals& totals) {
                                     return R"({"text":"a","meta_info":)" + meta_info(totals, names) + "}\n";
                                   })));
  }
}

TEST_CASE("the dispatcher finds each engine's responses by their content") {
  const auto formats_of = [](const std::string& content) {
    std::vector<std::string_view> formats;
    for (const ServingCounts& unit : tests::counts_of({content}).units) formats.push_back(unit.format);
    return formats;
  };
  const auto thrice = [](std::string_view name) { return std::vector<std::string_view>{name, name, name}; };
  CHECK(formats_of(for_each_request([](const KnownTotals& t) { return vllm_response(t); })) == thrice("vllm requests"));
  CHECK(formats_of(for_each_request(older_vllm_response)) == thrice("vllm requests"));
  CHECK(formats_of(for_each_request(tensorrt_response)) == thrice("tensorrt-llm requests"));
  CHECK(formats_of(for_each_request(llama_response)) == thrice("llama.cpp timings"));
  CHECK(formats_of(for_each_request([](const KnownTotals& totals) {
          return R"({"meta_info":)" + meta_info(totals, sglang_generations[2]) + "}\n";
        })) == thrice("sglang meta_info"));
}

TEST_CASE("responses stand in lists, in other objects, and behind other responses' parts") {
  const KnownTotals totals = tests::totals_of(tests::known_requests()[0]);
  std::string response = vllm_response(totals);
  response.pop_back();
  const std::string wrapped = R"({"custom_id":"q","response":{"status_code":200,"body":)" + response + "}}";
  for (const std::string& content :
       {"[" + response + "," + response + "]", "[[" + response + "],[" + response + "]]",
        R"({"responses":[)" + response + "," + response + "]}", wrapped + "\n" + wrapped}) {
    const CountsTaken taken = take_counts(traces::vllm_requests_format(), content);
    CHECK(taken.units.size() == 2);
    for (const ServingCounts& unit : taken.units) {
      CHECK(unit.rounds == totals.rounds);
      CHECK(unit.label("model_name") == "m");
    }
  }
  const std::string meta = meta_info(totals, sglang_generations[0]);
  for (const std::string& content :
       {R"({"meta_info":[)" + meta + "," + meta + "]}",
        R"({"choices":[{"meta_info":)" + meta + R"(},{"meta_info":)" + meta + "}]}", meta + "\n" + meta,
        R"({"response":[{"text":"a"}],"result":{"meta_info":)" + meta + "}}\n" + meta}) {
    const CountsTaken taken = take_counts(traces::sglang_responses_format(), content);
    CHECK(taken.units.size() == 2);
    for (const ServingCounts& unit : taken.units) CHECK(unit.accepted == totals.accepted);
  }
}

TEST_CASE("a model's name and a category are the request's own, and its prompt's length is a label") {
  const KnownTotals totals = tests::totals_of(tests::known_requests()[0]);
  const std::string response = vllm_response(totals);
  const std::string other = replaced(replaced(response, R"("model":"m",)", ""), "{", R"({"category":"writing",)");
  const CountsTaken taken = take_counts(traces::vllm_requests_format(), response + other + response);
  REQUIRE(taken.units.size() == 3);
  const auto [named, of_category] = [&] {
    const traces::CountLabel prompt = {"prompt_tokens", std::string(taken.units[0].label("prompt_tokens"))};
    CHECK_FALSE(prompt.value.empty());
    return std::pair(std::vector<traces::CountLabel>{{"model_name", "m"}, prompt},
                     std::vector<traces::CountLabel>{{"category", "writing"}, prompt});
  }();
  CHECK(taken.units[0].labels == named);
  CHECK(taken.units[1].labels == of_category);
  CHECK(taken.units[2].labels == named);
  CHECK(taken.units[2].line == 3);
  const auto in_a_list =
      take_counts(traces::vllm_requests_format(), R"({"responses":[)" + response + "," + other + "]}");
  REQUIRE(in_a_list.units.size() == 2);
  CHECK(in_a_list.units[0].labels == named);
  CHECK(in_a_list.units[1].labels == of_category);
}

TEST_CASE("the tokens of an answer of vLLM say its steps, those without a draft included") {
  const KnownTotals totals = tests::totals_of(tests::known_requests()[0]);
  const auto steps_of = [&](double tokens) {
    const std::string usage = fmt::format(R"("usage":{{"completion_tokens":{},)", tokens);
    const std::string response = replaced(vllm_response(totals), R"("usage":{)", usage);
    return take_counts(traces::vllm_requests_format(), response).units.at(0).steps;
  };
  // The first token, the accepted drafts, and one more of each step.
  CHECK(steps_of(1 + totals.accepted + totals.rounds + 30) == totals.rounds + 30);
  // The end of the answer cut off accepted drafts.
  CHECK(steps_of(totals.accepted + totals.rounds - 1) == totals.rounds);
  CHECK_FALSE(take_counts(traces::vllm_requests_format(), vllm_response(totals)).units.at(0).steps);
}

TEST_CASE("what else a request says of itself is a label, a number as it is written") {
  const KnownTotals totals = tests::totals_of(tests::known_requests()[0]);
  const std::string response =
      replaced(vllm_response(totals), "{", R"({"language":"de","temperature":0.7,"task":"chat",)");
  const CountsTaken taken = take_counts(traces::vllm_requests_format(), response + vllm_response(totals));
  REQUIRE(taken.units.size() == 2);
  CHECK(taken.units[0].label("language") == "de");
  CHECK(taken.units[0].label("temperature") == "0.7");
  CHECK(taken.units[0].label("category") == "chat");
  CHECK(taken.units[1].label("language").empty());
}

TEST_CASE("lists by round give the histogram by length where nothing else does") {
  const CountsTaken taken = take_counts(
      traces::vllm_requests_format(),
      R"({"metrics":{"speculative_decoding":{"num_spec_steps":4,"num_accepted_draft_tokens":4,"num_draft_tokens":8,)"
      R"("per_step_accepted":[2,0,1,1],"per_step_drafted":[3,1,3,1]}}})");
  CHECK(taken.units.at(0).rounds_by_accepted_and_drafted == std::map<std::int64_t, List>{{1, {1, 1}}, {3, {0, 1, 1}}});
}

TEST_CASE("drafts of several lengths keep their histograms apart, and no length stays for the next request") {
  const std::string varied =
      R"({"metrics":{"speculative_decoding":{"acceptance_histogram":{"0":2,"2":1},"acceptance_histogram_by_draft_length":)"
      R"({"1":[1,0],"4":{"0":1,"2":1}},"num_draft_tokens":9,"num_spec_tokens":null}}})";
  const CountsTaken taken =
      take_counts(traces::vllm_requests_format(), varied + "\n{" + on_one_line(vllm_sample) + "}\n");
  REQUIRE(taken.units.size() == 2);
  CHECK(taken.units[0].rounds == 3);
  CHECK(taken.units[0].accepted == 2);
  CHECK(!taken.units[0].gamma);
  CHECK(taken.units[0].rounds_by_accepted_and_drafted == std::map<std::int64_t, List>{{1, {1, 0}}, {4, {1, 0, 1}}});
  CHECK(taken.units[1].rounds_by_accepted_and_drafted == std::map<std::int64_t, List>{{3, {39, 1, 0, 3}}});
}

TEST_CASE("a request that is there again counts once, and one that shares an id alone counts with a warning") {
  const auto request = [](const std::string& id, int rounds) {
    return fmt::format(R"({{{}"metrics":{{"speculative_decoding":{{"num_spec_steps":{},"num_accepted_draft_tokens":4,)"
                       R"("num_draft_tokens":90}}}}}})",
                       id, rounds) +
           '\n';
  };
  const std::string a = request(R"("id":"a",)", 30), b = request(R"("id":"b",)", 30);
  CountsTaken taken = take_counts(traces::vllm_requests_format(), a + b + a + b + b);
  CHECK(taken.units.size() == 2);
  REQUIRE(taken.warnings.size() == 1);
  CHECK(taken.warnings[0].code == "request_given_twice");
  CHECK_THAT(taken.warnings[0].message, Contains("3 requests were read before"));

  taken = take_counts(traces::vllm_requests_format(), a + b + request(R"("id":"a",)", 31));
  CHECK(taken.units.size() == 3);
  REQUIRE(taken.warnings.size() == 1);
  CHECK(taken.warnings[0].code == "request_ids_repeat");
  // Without an id equal requests may be two, and the id of a list is none of its requests'.
  CHECK(take_counts(traces::vllm_requests_format(), request("", 30) + request("", 30)).units.size() == 2);
  const std::string list = R"({"id":"run","results":[)" + a + "," + a + "]}";
  taken = take_counts(traces::vllm_requests_format(), list);
  CHECK(taken.units.size() == 2);
  CHECK(taken.warnings.empty());
}

TEST_CASE("requests that did not speculate are left out with a warning, and nothing else is refused") {
  const std::string with = vllm_response(tests::totals_of(tests::known_requests()[0]));
  const std::string without = R"({"model":"m","choices":[],"metrics":{"speculative_decoding":null}})"
                              "\n";
  const std::string zero = R"({"metrics":{"speculative_decoding":{"num_spec_steps":0,"acceptance_histogram":[]}}})"
                           "\n";
  const CountsTaken taken = take_counts(traces::vllm_requests_format(), with + without + zero);
  CHECK(taken.units.size() == 1);
  REQUIRE(taken.warnings.size() == 1);
  CHECK(taken.warnings[0].code == "requests_without_speculation");
  CHECK_THAT(taken.warnings[0].message,
             Contains("x.json: 2 of 3 documents have no counts of speculation (metrics.speculative_decoding)"));
  CHECK(refusal_of_counts(traces::vllm_requests_format(), without + zero) ==
        "x.json: metrics.speculative_decoding is missing or without rounds in all of 2 documents, but must be given "
        "where a request speculated");
  CHECK(refusal_of_counts(traces::sglang_responses_format(), "") ==
        "x.json: file is empty, but must be responses with meta_info.spec_verify_ct");
}

TEST_CASE("vLLM counts that contradict themselves are refused with line and key") {
  const std::string good = std::string("{") + on_one_line(vllm_sample) + "}";
  const auto refusal = [&](const std::string& what, const std::string& by) {
    return refusal_of_counts(traces::vllm_requests_format(), good + "\n" + replaced(good, what, by) + "\n");
  };
  CHECK_THAT(refusal(R"({"3":[39,1,0,3]})", R"({"three":[39,1,0,3]})"), Contains("is an object with three"));
  CHECK_THAT(refusal(R"({"3":[39,1,0,3]})", R"({"3":[39,1,0,-3]})"),
             Contains("acceptance_histogram_by_draft_length[3][3] is -3, but must be a count"));
  CHECK_THAT(refusal(R"("acceptance_histogram":[39,)", R"("acceptance_histogram":[39.5,)"),
             Contains("acceptance_histogram[0] is 39.5, but must be a count, an integer >= 0"));
  CHECK_THAT(refusal(R"("acceptance_histogram":[39,1,0,3])", R"("acceptance_histogram":7)"),
             Contains("acceptance_histogram is 7, but must be a list of counts, or an object of counts by number"));
  CHECK_THAT(refusal(R"("acceptance_histogram":[39,1,0,3])", R"("acceptance_histogram":{"1000000":1})"),
             Contains("acceptance_histogram is an object with 1000000"));
  CHECK_THAT(refusal(R"("draft_acceptance_rate":0.0775)", R"("draft_acceptance_rate":7.75)"),
             Contains("draft_acceptance_rate is 7.75194, a percentage, but must be the fraction 0.0775194 = 10 / 129"));
  CHECK_THAT(refusal(R"("draft_acceptance_rate":0.0775)", R"("draft_acceptance_rate":0.0875)"),
             Contains("draft_acceptance_rate is 0.0875194, but must be the fraction 0.0775194"));
  CHECK_THAT(refusal(R"("mean_acceptance_length":1.23)", R"("mean_acceptance_length":0.23)"),
             Contains("mean_acceptance_length is 0.232558, but must be 1.23256 = 1 + 10 / 43"));
  CHECK_THAT(refusal(R"("per_step_accepted":[0,1])", R"("per_step_accepted":[0])"),
             Contains("per_step_accepted is 1 long, but must be 2 long, as per_step_drafted is"));
  CHECK_THAT(refusal(R"({"speculative_decoding":{)", R"({"speculative_decoding":3,"x":{)"),
             Contains("metrics.speculative_decoding is 3, but must be an object"));
  CHECK_THAT(refusal(R"("acceptance_histogram":[39,1,0,3],)", R"("acceptance_histogram":[39,1)"),
             Contains("x.json:2: "));
  CHECK_THAT(refusal_of_counts(traces::vllm_requests_format(), good + "\n" + good.substr(0, 100)),
             Contains("x.json:2: the JSON is cut off at column 101, but must be whole"));
  CHECK_THAT(refusal_of_counts(traces::vllm_requests_format(),
                               R"({"metrics":{"speculative_decoding":{"num_draft_tokens":3}}})"),
             Contains("num_spec_steps is missing, but must be given, or acceptance_histogram"));
}

TEST_CASE("TensorRT-LLM drafts beyond the length a round are a tree's, and a schedule leaves gamma open") {
  const auto with = [](const std::string& gamma, int drafted) {
    return take_counts(traces::tensorrt_llm_requests_format(),
                       fmt::format(R"({{"choices":[{{"speculative_decoding":{{"total_accepted_draft_tokens":3,)"
                                   R"("total_draft_tokens":{},"num_spec_steps":4,"num_spec_tokens":{}}}}}]}})",
                                   drafted, gamma))
        .units.at(0);
  };
  CHECK(with("3", 12).shape == traces::DraftShape::chain);
  CHECK(with("3", 12).gamma == 3);
  CHECK(with("3", 28).shape == traces::DraftShape::tree);
  CHECK(with("null", 12).shape == traces::DraftShape::unknown);
  CHECK(!with("null", 12).gamma);
}

TEST_CASE("SGLang's oldest counts are what was put out beyond one token a round") {
  const CountsTaken taken =
      take_counts(traces::sglang_responses_format(), R"({"meta_info":{"completion_tokens":28,"spec_verify_ct":12}})");
  CHECK(taken.units.at(0).emitted == 27);
  CHECK(taken.units.at(0).accepted == 15);
  CHECK(!taken.units.at(0).drafted);
  CHECK(taken.units.at(0).shape == traces::DraftShape::unknown);
}

TEST_CASE("SGLang's server arguments beside the counts of a response give the shape and gamma") {
  const std::string counts = R"("spec_verify_ct":12,"spec_accept_token_num":15,"spec_draft_token_num":36)";
  const std::string meta = R"("meta_info":{)" + counts + "}";
  const auto arguments = [](int steps, int top_k, int verified) {
    return R"("speculative_num_steps":)" + std::to_string(steps) + R"(,"speculative_eagle_topk":)" +
           std::to_string(top_k) + R"(,"speculative_num_draft_tokens":)" + std::to_string(verified);
  };
  for (const auto& around :
       {std::pair("", ""), std::pair(R"("server_args":{)", "}"), std::pair(R"("server_info":{)", "}")}) {
    CAPTURE(around.first);
    const auto with = [&](const std::string& given) {
      return "{" + meta + "," + around.first + given + around.second + "}\n";
    };
    const CountsTaken taken = take_counts(traces::sglang_responses_format(),
                                          with(arguments(3, 1, 4)) + with(arguments(3, 4, 16)) + "{" + meta + "}\n");
    REQUIRE(taken.units.size() == 3);
    CHECK(taken.units[0].shape == traces::DraftShape::chain);
    CHECK(taken.units[0].gamma == 3);
    CHECK(taken.units[1].shape == traces::DraftShape::tree);
    CHECK(taken.units[1].gamma == 3);
    CHECK(taken.units[1].verified_per_round == 16);
    CHECK(taken.units[2].shape == traces::DraftShape::unknown);
    CHECK(!taken.units[2].gamma);
    CHECK(!taken.units[2].verified_per_round);
  }
  const CountsTaken bare =
      take_counts(traces::sglang_responses_format(), "{" + counts + "," + arguments(3, 1, 4) + "}");
  CHECK(bare.units.at(0).gamma == 3);
}

TEST_CASE("llama.cpp's timings count the prompt's token apart, and say the rule and the speed") {
  const CountsTaken taken =
      take_counts(traces::llama_server_timings_format(),
                  R"({"timings":{"predicted_n":28,"predicted_ms":250.0,"draft_n":36,"draft_n_accepted":15}})");
  const ServingCounts& unit = taken.units.at(0);
  CHECK(unit.emitted == 27);
  CHECK(unit.rounds == 12);
  CHECK(unit.rule == traces::AcceptanceRule::greedy_draft);
  CHECK(unit.shape == traces::DraftShape::chain);
  CHECK(!unit.gamma);
  CHECK(unit.window.value().generation_tokens_per_second == Approx(108));
  const auto refusal = [](const std::string& timings) {
    return refusal_of_counts(traces::llama_server_timings_format(), R"({"timings":{)" + timings + "}}");
  };
  // A stop within the accepted drafts: tokens are put out up to it, drafts are counted all.
  const std::string stopped = R"({"timings":{"predicted_n":5,"draft_n":8,"draft_n_accepted":5}})";
  const CountsTaken beside =
      take_counts(traces::llama_server_timings_format(), stopped + "\n" +
                                                             R"({"timings":{"predicted_n":28,"draft_n":36,)"
                                                             R"("draft_n_accepted":15}})");
  CHECK(beside.units.size() == 1);
  CHECK(beside.warning_codes() == std::vector<std::string>{"stopped_in_a_draft"});
  CHECK_THAT(refusal(R"("predicted_n":5,"draft_n":8,"draft_n_accepted":5)"),
             Contains("timings.draft_n is missing or without rounds in all of 1"));
  CHECK_THAT(refusal(R"("predicted_n":5,"draft_n":8)"), Contains("timings.draft_n_accepted is missing"));
  CHECK_THAT(refusal(R"("predicted_n":5)"), Contains("timings.draft_n is missing or without rounds in all of 1"));
}

TEST_CASE("timings of mlx-vlm say the rounds and the kind of drafts") {
  const tests::AllCounts taken =
      tests::AllCounts({std::filesystem::path(tests::source_dir()) / "traces/samples/serving/mlx_vlm_responses.jsonl"});
  REQUIRE(taken.units.size() == 2);
  const ServingCounts& unit = taken.units[0];
  CHECK(unit.engine == "mlx-vlm");
  CHECK(unit.draft_method == "mtp");
  CHECK(unit.rounds == 30);
  CHECK(unit.steps == 30);
  CHECK(unit.drafted == 90);
  CHECK(unit.accepted == 81);
  CHECK(unit.shape == traces::DraftShape::chain);
  CHECK_FALSE(unit.rule);
  CHECK(taken.units[1].rounds == 24);
  CHECK(taken.warns("requests_without_speculation"));
  // Beside it an answer of llama.cpp.
  CHECK(tests::counts_of({R"({"timings":{"predicted_n":111,"draft_rounds":30,"draft_n":90,"draft_n_accepted":81}})"
                          "\n"
                          R"({"timings":{"predicted_n":28,"draft_n":36,"draft_n_accepted":15}})"})
            .units[1]
            .engine == "llama.cpp");
}

TEST_CASE("where times are wanted every answer of llama.cpp is a run of one request, with drafts or without") {
  const std::string plain =
      R"({"id_slot":2,"tokens_evaluated":30,"model":"m","timings":{"predicted_n":9,"predicted_ms":200.0}})";
  const std::string drafted =
      R"({"timings":{"cache_n":4,"prompt_n":6,"predicted_n":28,"predicted_ms":250.0,"draft_n":36,)"
      R"("draft_n_accepted":15}})";
  const tests::AllCounts times = tests::counts_of({plain + "\n" + drafted + "\n"}, true);
  REQUIRE(times.units.size() == 2);
  const ServingCounts& without = times.units[0];
  CHECK(!without.rounds);
  CHECK(without.emitted == 8);
  CHECK(without.label("slot") == "2");
  CHECK(without.bench->duration_s == Approx(0.2));
  CHECK(without.bench->total_input_tokens == 30);
  CHECK(without.bench->total_output_tokens == 9);
  CHECK(times.units[1].rounds == 12);
  CHECK(times.units[1].label("slot").empty());
  CHECK(times.units[1].bench->total_input_tokens == 10);
  CHECK_THAT(tests::counts_refusal({plain}),
             Contains("timings.draft_n is missing or without rounds in all of 1 documents"));
  CHECK_THROWS_WITH(tests::counts_of({R"({"timings":{"predicted_n":9,"predicted_ms":0,"draft_n":1}})"}, true),
                    Contains("timings.draft_n_accepted is missing"));
  CHECK_THROWS_WITH(tests::counts_of({R"({"timings":{"predicted_n":9,"predicted_ms":0}})"}, true),
                    Contains("timings.predicted_ms is 0, but must be the time of generation, above 0"));
  CHECK_THROWS_WITH(
      tests::counts_of({R"({"timings":{"predicted_n":9,"predicted_ms":NaN}})"}, true),
      Contains("timings.predicted_ms is nan, but must be the time of generation, above 0 and at most 1e12"));
}

TEST_CASE("responses with log-probabilities alone are no counts") {
  const std::string logprobs =
      R"({"choices":[{"text":"\"spec_verify_ct\":1","logprobs":{"tokens":["a"],"token_logprobs":[-0.5]}}],)"
      R"("timings":{"predicted_n":5}})";
  const std::string sglang = R"({"meta_info":{"completion_tokens":2,"output_token_logprobs":[[-0.5,7,null]]}})";
  for (const auto& format : {traces::vllm_requests_format(), traces::tensorrt_llm_requests_format(),
                             traces::sglang_responses_format(), traces::llama_server_timings_format()}) {
    CHECK(!recognises(format, logprobs));
    CHECK(!recognises(format, sglang));
    CHECK(!recognises(format, ""));
    CHECK(!recognises(format, "# TYPE x counter"));
  }
}

TEST_CASE("counts behind a long text are found") {
  const std::string text(200000, 'x');
  const KnownTotals totals = tests::totals_of(tests::known_requests()[0]);
  const std::string response = replaced(vllm_response(totals), R"("text":" a")", R"("text":")" + text + "\"");
  CHECK(recognises(traces::vllm_requests_format(), response + response));
  CHECK(!recognises(traces::vllm_requests_format(), R"({"text":")" + text + "\"}\n" + response));
  CHECK(take_counts(traces::vllm_requests_format(), response).units.size() == 1);
}
