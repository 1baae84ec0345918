#include "traces/serving/run_table.hpp"

#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/known_rounds.hpp"

using namespace specdec;
using Catch::Matchers::StartsWith;
using tests::CountsTaken;
using traces::ServingCounts;

namespace {

const traces::CountsFormat format = traces::run_table_format();

CountsTaken taken(const std::string& content) { return tests::take_counts(format, content); }
std::string refusal(const std::string& content) { return tests::refusal_of_counts(format, content, "runs.csv"); }

}  // namespace

TEST_CASE("a table of runs gives each line's load, drafts and acceptance") {
  const CountsTaken runs = taken(
      "concurrency,gamma,output_tokens_per_second,ms_per_token,tokens_per_step,rounds,input_tokens,output_tokens,"
      "requests,model,draft,engine\n"
      "8,0,1000,7.5,,,1000,200,400,m,,vllm\n"
      "8,3,1600,,2.5,4000,1000,200,400,m,d,vllm\n");
  REQUIRE(runs.units.size() == 2);
  const ServingCounts& plain = runs.units[0];
  CHECK(plain.unit == traces::CountUnit::run);
  CHECK(plain.format == "run table");
  CHECK(plain.engine == "vllm");
  CHECK(plain.line == 2);
  CHECK(plain.label("model_name") == "m");
  CHECK(plain.label("draft").empty());
  CHECK_FALSE(plain.gamma);
  CHECK_FALSE(plain.rounds);
  REQUIRE(plain.bench);
  CHECK(plain.bench->max_concurrency == 8);
  CHECK(plain.bench->output_throughput == 1000);
  CHECK(plain.bench->mean_tpot_ms == 7.5);
  CHECK(plain.bench->input_tokens_per_request == 1000);
  CHECK(plain.bench->output_tokens_per_request == 200);
  CHECK(plain.bench->completed == 400);
  const ServingCounts& drafted = runs.units[1];
  CHECK(drafted.line == 3);
  CHECK(drafted.label("draft") == "d");
  CHECK(drafted.shape == traces::DraftShape::chain);
  CHECK(drafted.gamma == 3);
  CHECK(drafted.rounds == 4000);
  CHECK(drafted.drafted == 12000);
  CHECK(drafted.accepted == 6000);
  // Where one of throughput and time is missing all that run decode: 8 / 1600 s.
  CHECK(drafted.bench->mean_tpot_ms == Approx(5));
}

TEST_CASE("columns of a table of runs have other names, separators and order, and lengths without a sample") {
  const CountsTaken runs = taken(
      "\xef\xbb\xbf"
      "Acceptance Length;Mean-TPOT-ms;num_speculative_tokens;Batch\r\n2.5;4;3;8\r\n;9;0;8\r\n");
  REQUIRE(runs.units.size() == 2);
  CHECK(runs.units[0].engine == traces::run_table_engine);
  CHECK(runs.units[0].tokens_per_round == 2.5);
  CHECK_FALSE(runs.units[0].rounds);
  CHECK_FALSE(runs.units[0].bench->max_concurrency);
  CHECK(runs.units[0].bench->output_throughput == Approx(2000));
  CHECK_FALSE(runs.units[1].tokens_per_round);
  CHECK(taken("concurrency,gamma,ms_per_token,topk\n1,3,4,1\n1,3,4,4\n").units[0].shape == traces::DraftShape::chain);
  CHECK(taken("concurrency,gamma,ms_per_token,topk\n1,3,4,1\n1,3,4,4\n").units[1].shape == traces::DraftShape::tree);
}

TEST_CASE("a tree in a table of runs has its depth, topk and verified tokens, by SGLang's names, too") {
  const auto runs = taken("concurrency,num_steps,ms_per_token,topk,num_draft_tokens\n1,5,4,8,32\n1,5,4,1,6\n");
  CHECK(runs.units[0].shape == traces::DraftShape::tree);
  CHECK(runs.units[0].gamma == 5);
  CHECK(runs.units[0].top_k == 8);
  CHECK(runs.units[0].verified_per_round == 32);
  CHECK(runs.units[1].shape == traces::DraftShape::chain);
  CHECK_FALSE(runs.units[1].top_k);
  CHECK_FALSE(runs.units[1].verified_per_round);
  const std::string header = "concurrency,gamma,ms_per_token,topk,verified_tokens\n";
  CHECK(refusal(header + "1,5,4,8,5\n") ==
        "runs.csv:2: verified_tokens is 5, but must be at least 6, gamma and the root");
  CHECK(refusal(header + "1,5,4,1,32\n") ==
        "runs.csv:2: verified_tokens is 32, but must be 6 or empty where topk is 1");
}

TEST_CASE("a table of runs is told from other tables by the columns that it must have") {
  CHECK(tests::recognises(format, "concurrency,gamma,ms_per_token\n"));
  CHECK(tests::recognises(format, "concurrency\tms_per_token\n"));
  CHECK(tests::recognises(format, "\n\ngamma;output_throughput\n"));
  CHECK_FALSE(tests::recognises(format, "batch,tokens,context,seconds\n1,1,0,0.01\n"));
  CHECK_FALSE(tests::recognises(format, "concurrency\n"));
  CHECK_FALSE(tests::recognises(format, "{\"gamma\": 3, \"concurrency\": 2}\n"));
  CHECK_FALSE(tests::recognises(format, ""));
  const tests::AllCounts counts = tests::counts_of({"concurrency,gamma,ms_per_token\n1,0,6\n"});
  CHECK(counts.units.size() == 1);
}

TEST_CASE("what a table of runs lacks or contradicts is refused with line and column") {
  const std::string columns =
      "one of concurrency, batch, gamma, output_tokens_per_second, ms_per_token, tokens_per_step, rounds, topk, "
      "verified_tokens, input_tokens, output_tokens, requests, model, draft, engine, server";
  CHECK(refusal("concurrency,gamma,tok/s\n") == "runs.csv:1: column tok/s is there, but must be " + columns);
  CHECK(refusal("concurrency,gamma,tokens_per_step\n") ==
        "runs.csv:1: column output_tokens_per_second or ms_per_token is missing, but must be in the header of a table "
        "of runs");
  CHECK_THAT(refusal("gamma,ms_per_token\n"), StartsWith("runs.csv:1: column concurrency or batch is missing"));
  CHECK_THAT(refusal("concurrency,ms_per_token\n"), StartsWith("runs.csv:1: column gamma is missing"));
  CHECK_THAT(refusal("concurrency,max_concurrency,gamma,ms_per_token\n"),
             StartsWith("runs.csv:1: column concurrency is there twice"));
  const std::string header = "concurrency,gamma,output_tokens_per_second,ms_per_token,tokens_per_step,rounds,batch\n";
  CHECK(refusal(header) == "runs.csv: the number of runs is 0, but must be 1 or more");
  CHECK_THAT(refusal(header + "1,0,100\n"), StartsWith("runs.csv:2: row is 3 fields long"));
  CHECK(refusal(header + "0,0,100,,,,\n") == "runs.csv:2: concurrency is 0, but must be a number above 0");
  CHECK(refusal(header + "1,1.5,100,,,,\n") == "runs.csv:2: gamma is 1.5, but must be a whole number, 0 or above");
  CHECK_THAT(refusal(header + "1,,100,,,,\n"), StartsWith("runs.csv:2: gamma is missing"));
  CHECK_THAT(refusal(header + "1,9999999,100,,,,\n"), StartsWith("runs.csv:2: gamma is 9999999, but must be at most"));
  CHECK_THAT(refusal(header + ",0,100,,,,\n"), StartsWith("runs.csv:2: concurrency is missing"));
  CHECK_THAT(refusal(header + "1,0,,,,,\n"), StartsWith("runs.csv:2: output_tokens_per_second is missing"));
  CHECK_THAT(refusal(header + "1,0,fast,,,,\n"), StartsWith("runs.csv:2: output_tokens_per_second is fast"));
  CHECK(refusal(header + "1,0,100,,2,,\n") ==
        "runs.csv:2: tokens_per_step is 2, but must be 1 or empty where gamma is 0");
  CHECK(refusal(header + "1,3,100,,4.5,,\n") ==
        "runs.csv:2: tokens_per_step is 4.5, but must be in [1, 4], with 3 drafted");
  CHECK_THAT(refusal(header + "1,3,100,,0.5,,\n"), StartsWith("runs.csv:2: tokens_per_step is 0.5"));
  CHECK(refusal(header + "1,3,100,,,50,\n") ==
        "runs.csv:2: tokens_per_step is missing, but must be given, since rounds are");
  CHECK(refusal(header + "8,3,1000,6,2,,8\n") ==
        "runs.csv:2: batch is 8, but must be 6, the output tokens per second times the time of each");
}
