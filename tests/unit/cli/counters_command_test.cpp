#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::tests;
using nlohmann::ordered_json;

namespace {

const std::string samples = specdec::tests::source_dir() + "/traces/samples/serving/";
const std::string requests = samples + "vllm_requests.jsonl";
const std::string scrapes = samples + "vllm_before.prom " + samples + "vllm_after.prom";

std::string written(const ScratchFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return (folder / name).string();
}

ordered_json summary_of(const std::string& arguments) { return document_of_run("counters " + arguments); }

ordered_json only_group(const ordered_json& document) {
  REQUIRE(document["groups"].size() == 1);
  return document["groups"][0];
}

void check_refused(const std::string& arguments, const std::string& message) {
  check_run_refused("counters " + arguments, message);
}

std::vector<std::string> keys_of(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

/// The text of a scrape of vLLM; survivors by position.
std::string scrape(const std::string& model, double rounds, const std::vector<double>& survivors) {
  double accepted = 0;
  std::ostringstream text;
  for (std::size_t j = 0; j < survivors.size(); ++j) {
    accepted += survivors[j];
    text << "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"" << model << "\",position=\""
         << j << "\"} " << survivors[j] << '\n';
  }
  const auto put = [&](const char* name, double value) {
    text << "vllm:spec_decode_" << name << "_total{engine=\"0\",model_name=\"" << model << "\"} " << value << '\n';
  };
  put("num_drafts", rounds);
  put("num_draft_tokens", rounds * static_cast<double>(survivors.size()));
  put("num_accepted_tokens", accepted);
  return text.str();
}

}  // namespace

TEST_CASE("one scrape gives the counted figures, alpha by the censored geometric law, and says how unsure that is") {
  const ScratchFolder folder;
  const std::string file = written(folder, "metrics", scrape("m", 1000, {700, 480, 350, 270}));
  const ordered_json document = summary_of(file);
  const ordered_json group = only_group(document);
  CHECK(group["model_name"] == "m");
  CHECK(group["group"].is_null());
  CHECK(group["unit"] == "total");
  CHECK(group["shape"] == "chain");
  CHECK(group["gamma"] == 4);
  CHECK(group["acceptance"] == "unknown");
  CHECK(group["rounds"] == 1000);
  CHECK(group["drafted"] == 4000);
  CHECK(group["accepted"] == 1800);
  // Figures: by hand, and from the reference on estimators (pooled rate).
  CHECK(group["tokens_per_step"]["value"].get<double>() == Approx(2.8));
  CHECK(group["draft_acceptance_rate"]["value"].get<double>() == Approx(0.45));
  CHECK(group["alpha_hat"]["value"].get<double>() == Approx(.711462450593).epsilon(1e-10));
  CHECK(group["alpha_hat"]["estimator"] == "censored_geometric");
  CHECK(group["alpha_hat"]["method"] == "iid_rounds");
  CHECK(group["tokens_per_step_by_one_rate"].get<double>() == Approx(2.8339854883).epsilon(1e-9));
  CHECK(warns(document, "iid_rounds"));
  REQUIRE(group["positions"].size() == 4);
  CHECK(group["positions"][1]["unconditional"]["value"].get<double>() == Approx(0.48));
  CHECK(group["positions"][1]["conditional"]["value"].get<double>() == Approx(480.0 / 700));
  REQUIRE(group["gammas"].size() == 12);
  const ordered_json& measured = group["gammas"][3];
  CHECK(measured["measured"] == true);
  CHECK(measured["tokens_per_step"]["value"].get<double>() == Approx(2.8));
  CHECK(measured["extrapolated"] == false);
  CHECK(group["gammas"][4]["extrapolated"] == true);
  CHECK(group["gammas"][4]["measured"] == false);
}

TEST_CASE("counts of a server that drafted in few of its steps say so, with the tokens of all steps") {
  const auto code = [](const ordered_json& note) { return note["code"] == "steps_without_drafts"; };
  const ordered_json found =
      summary_of(samples + "vllm_ngram_before.prom " + samples + "vllm_ngram_after.prom")["warnings"];
  const auto warning = std::find_if(found.begin(), found.end(), code);
  REQUIRE(warning != found.end());
  CHECK_THAT((*warning)["message"].get<std::string>(),
             Catch::Matchers::Contains("35% of the steps") && Catch::Matchers::Contains("put out 1.547 tokens"));
  for (const std::string& drafting : {scrapes, requests}) {
    const ordered_json others = summary_of(drafting)["warnings"];
    CHECK(std::none_of(others.begin(), others.end(), code));
  }
}

TEST_CASE("the JSON of a group has every key, in order") {
  const ordered_json document = summary_of(requests);
  CHECK(keys_of(document) ==
        std::vector<std::string>{"schema", "version", "decision", "inputs", "assumptions", "warnings", "groups"});
  CHECK(document["schema"] == "specdec.counters/2");
  CHECK(document["inputs"]["files"].size() == 1);
  CHECK(keys_of(only_group(document)) == std::vector<std::string>{"model_name",
                                                                  "group",
                                                                  "engines",
                                                                  "formats",
                                                                  "files",
                                                                  "unit",
                                                                  "units",
                                                                  "clusters",
                                                                  "interval_basis",
                                                                  "from_rates",
                                                                  "unweighted_means",
                                                                  "acceptance",
                                                                  "shape",
                                                                  "gamma",
                                                                  "longest_draft",
                                                                  "verified_per_round",
                                                                  "rounds",
                                                                  "drafted",
                                                                  "accepted",
                                                                  "emitted",
                                                                  "tokens_per_step",
                                                                  "alpha_hat",
                                                                  "draft_acceptance_rate",
                                                                  "draft_acceptance_rate_note",
                                                                  "tokens_per_step_by_one_rate",
                                                                  "design_effect",
                                                                  "positions",
                                                                  "histogram",
                                                                  "gammas"});
}

TEST_CASE("two scrapes are their difference, which is the sum of the requests in between") {
  const ordered_json window = only_group(summary_of(scrapes));
  const ordered_json clusters = only_group(summary_of(requests));
  CHECK(window["unit"] == "window");
  CHECK(clusters["unit"] == "request");
  CHECK(clusters["units"] == 60);
  CHECK(clusters["interval_basis"] == "clusters");
  for (const char* const key : {"rounds", "drafted", "accepted"}) CHECK(window[key] == clusters[key]);
  CHECK(window["alpha_hat"]["value"].get<double>() == Approx(clusters["alpha_hat"]["value"].get<double>()));
  for (std::size_t j = 0; j < 4; ++j) {
    CHECK(window["positions"][j]["accepted"] == clusters["positions"][j]["accepted"]);
  }
  // Requests differ by more than their rounds' luck, so that an interval over rounds is too narrow.
  CHECK(clusters["design_effect"].get<double>() > 2);
  const auto width = [](const ordered_json& ci95) { return ci95[1].get<double>() - ci95[0].get<double>(); };
  CHECK(width(clusters["alpha_hat"]["ci95"]) > 1.4 * width(window["alpha_hat"]["ci95"]));
}

TEST_CASE("several models are several groups, and no figure sums them") {
  const ScratchFolder folder;
  const std::string file = written(folder, "metrics", scrape("a", 100, {90, 80}) + scrape("b", 100, {30, 10}));
  const ordered_json document = summary_of(file);
  REQUIRE(document["groups"].size() == 2);
  CHECK(document["groups"][0]["model_name"] == "a");
  CHECK(document["groups"][0]["accepted"] == 170);
  CHECK(document["groups"][1]["model_name"] == "b");
  CHECK(document["groups"][1]["accepted"] == 40);
}

TEST_CASE("long names of groups are cut in the middle, between characters") {
  const ScratchFolder folder;
  const std::string file =
      written(folder, "metrics", scrape("abcdefghijklmnop\xc3\xa9qrst", 100, {90, 80}) + scrape("b", 100, {30, 10}));
  const Run run = run_specdec("counters " + file);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("abcdefghi...op\xc3\xa9qrst  ") != std::string::npos);
}

TEST_CASE("a label or the file groups further") {
  const ordered_json document = summary_of("--by category " + requests);
  REQUIRE(document["groups"].size() == 2);
  CHECK(document["groups"][0]["group"] == "chat");
  CHECK(document["groups"][1]["group"] == "code");
  CHECK(document["groups"][0]["units"] == 40);
  CHECK(document["groups"][0]["alpha_hat"]["value"].get<double>() <
        document["groups"][1]["alpha_hat"]["value"].get<double>());
  const ScratchFolder folder;
  const std::string one = written(folder, "one", scrape("m", 100, {90, 80}));
  CHECK(summary_of("--by file " + one + " " + requests)["groups"].size() == 2);
}

TEST_CASE("means without counts give tokens per step, and with gamma a rate, but no rounds") {
  const ScratchFolder folder;
  const std::string file = written(folder, "server.log",
                                   "[2026-09-08 00:21:09] Decode batch, #running-req: 1, accept len: 2.85, accept "
                                   "rate: 0.62, gen throughput (token/s): 0.73, #queue-req: 0\n"
                                   "[2026-09-08 00:21:19] Decode batch, #running-req: 1, accept len: 2.65, accept "
                                   "rate: 0.55, gen throughput (token/s): 0.73, #queue-req: 0\n");
  const ordered_json document = summary_of(file);
  const ordered_json group = only_group(document);
  CHECK(group["rounds"].is_null());
  CHECK(group["unweighted_means"] == true);
  CHECK(group["tokens_per_step"]["value"].get<double>() == Approx(2.75));
  CHECK(group["alpha_hat"]["value"].is_null());
  CHECK(warns(document, "mean_without_counts"));
  const ordered_json chain = only_group(summary_of("--gamma 3 " + file));
  // The rate whose geometric law has this length: 1 + a + a^2 + a^3 = 2.75.
  const double alpha = chain["alpha_hat"]["value"].get<double>();
  CHECK(1 + alpha + alpha * alpha + alpha * alpha * alpha == Approx(2.75));
  CHECK(chain["gammas"][0]["tokens_per_step"]["ci95"].is_array());

  // One mean is taken over 40 rounds, with the interval of as many that are alike: by hand, 1.96 of the deviation of a
  // round's tokens, 1.24 at this alpha, over the root of 40.
  const std::string alone = written(folder, "one.prom", "sglang:spec_accept_length{model_name=\"m\"} 2.75\n");
  const ordered_json one = only_group(summary_of("--at 3 " + alone));
  REQUIRE(!one["gammas"].empty());
  for (const ordered_json& row : one["gammas"]) {
    CHECK(row["tokens_per_step"]["ci95"].is_array());
    CHECK(row["tokens_per_step"]["method"] == "iid_rounds");
  }
  const ordered_json& measured = one["gammas"][2]["tokens_per_step"]["ci95"];
  CHECK(measured[1].get<double>() - measured[0].get<double>() ==
        Approx(2 * 2.02 * 1.24 / std::sqrt(40.0)).epsilon(0.05));
}

TEST_CASE("accepted over drafted is given where rounds are not counted") {
  const ScratchFolder folder;
  std::string log;
  for (int i = 0; i < 20; ++i) {
    const int accepted = 40 + i;
    log += "slot print_timing: id 0 | task " + std::to_string(i) + " | draft acceptance rate = 0." +
           std::to_string(accepted) + "000 ( " + std::to_string(accepted) + " accepted /   100 generated)\n";
  }
  const std::string file = written(folder, "server.log", log);
  const ordered_json document = summary_of("--gamma 4 " + file);
  const ordered_json group = only_group(document);
  CHECK(group["rounds"].is_null());
  CHECK(group["draft_acceptance_rate"]["value"].get<double>() == Approx(0.495));
  CHECK(warns(document, "counts_incomplete"));
  CHECK_FALSE(warns(document, "gamma_unknown"));
  const Run text = run_specdec("counters " + file);
  CHECK_THAT(text.out, Catch::Matchers::Contains("50% of the drafted tokens are accepted."));
}

TEST_CASE("groups that are warned of alike share one warning, and many of one kind are counted") {
  const ScratchFolder folder;
  const std::string file = written(folder, "metrics", scrape("a", 100, {90, 80}) + scrape("b", 100, {30, 10}));
  const ordered_json document = summary_of("--by engine " + file);
  const auto& warnings = document["warnings"];
  const auto is = [](const char* code) { return [code](const ordered_json& w) { return w["code"] == code; }; };
  CHECK(std::count_if(warnings.begin(), warnings.end(), is("iid_rounds")) == 1);
  std::string many;
  for (int model = 0; model < 9; ++model) many += scrape(std::to_string(model), 100, {90, 80});
  const ordered_json crowd = summary_of("--by engine " + written(folder, "many", many));
  CHECK(crowd["groups"].size() == 9);
  CHECK(crowd["warnings"].size() <= 6);
}

TEST_CASE("grouping by a label that no count has is refused with the labels there are") {
  const ScratchFolder folder;
  const std::string file = written(folder, "metrics", scrape("a", 100, {90, 80}));
  check_run_refused("counters --by categry " + file,
                    "--by is categry, but must be file or a label of the counts: engine, model_name");
  check_run_refused("counters --by category:1,2 " + requests,
                    "--by is category:1,2, but must be a label without bounds, or one of numbers: category is chat");
  check_run_refused("plan --counters " + requests + " --by kind --mix code=1 --c 0.05 --batch 1",
                    "--by is kind, but must be file or a label of the counts: category, model_name");
  check_run_refused("counters --by \"\" " + file, "--by is \"\", but must be LABEL or LABEL:B1,B2,...");
  const std::string print = written(folder, "print",
                                    "n_draft = 4\nn_predict = 121\nn_drafted = 378\nn_accept = 25\n"
                                    "accept = 6.614%\n");
  check_run_refused("counters --by model " + print, "--by is model, but must be file, since the counts have no labels");
}

TEST_CASE("answers of llama.cpp whose drafts fall just short of a whole number tell their gamma") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/llamacpp/";
  const ordered_json answers = only_group(summary_of(folder + "server-answers.jsonl"));
  CHECK(answers["gamma"] == 3);
  CHECK(answers["tokens_per_step"]["value"].get<double>() == Approx(1 + 310.0 / 1265));
  CHECK(answers["gammas"][2]["tokens_per_step"]["value"].get<double>() == Approx(1 + 310.0 / 1265));
  const ordered_json log = only_group(summary_of(folder + "server.log"));
  CHECK(log["gamma"] == 3);
  // 25 of 1,265 passes may have drafted nothing, and each length is rounded to two decimals.
  CHECK(log["tokens_per_step"]["value"].get<double>() == Approx(1 + 310.0 / 1265).margin(0.01));
  CHECK(log["rounds"].get<double>() <= 1265);
}

TEST_CASE("files that cannot be read are left out where that is asked for") {
  const ScratchFolder scratch;
  const std::string good = specdec::tests::source_dir() + "/traces/samples/llamacpp/server.log";
  const std::string cut = written(scratch, "cut.log", "draft acceptance = 0.5\nmore\n");
  const std::string missing = (scratch / "missing.log").string();
  CHECK(run_specdec("counters " + good + " " + cut).exit_code == 2);
  const ordered_json kept = summary_of("--skip-unreadable " + cut + " " + good + " " + missing);
  CHECK(kept["groups"] == summary_of(good)["groups"]);
  int left_out = 0;
  for (const ordered_json& warning : kept["warnings"]) left_out += warning["code"] == "file_left_out" ? 1 : 0;
  CHECK(left_out == 2);
  CHECK(kept["inputs"]["files"].size() == 1);
  check_refused("--skip-unreadable " + cut,
                "no SOURCE can be read; left out: " + cut +
                    ":1: draft acceptance is \" = 0.5\", but must be followed by (N accepted / M generated)");
}

TEST_CASE("standard input is read like a file") {
  const ScratchFolder folder;
  const std::string out = (folder / "out").string();
  const std::string command =
      specdec::tests::specdec_binary() + " counters --format json --output " + out + " - <" + requests;
  REQUIRE(std::system(command.c_str()) == 0);
  const ordered_json document = ordered_json::parse(content_of(out));
  CHECK(only_group(document)["units"] == 60);
  CHECK(only_group(document)["files"] == ordered_json({"-"}));
  CHECK(document["inputs"]["files"][0]["path"] == "-");
}

TEST_CASE("the tables of counters are printed as CSV with model and group in front") {
  const auto first_line = [](const std::string& arguments) {
    const Run run = run_specdec("counters --format csv --quiet " + arguments);
    REQUIRE(run.exit_code == 0);
    return run.out.substr(0, run.out.find('\n'));
  };
  const std::string groups = first_line(requests);
  CHECK(groups.starts_with("model_name,group,engines,"));
  CHECK(groups.find("positions") == std::string::npos);
  CHECK(groups.find("gammas") == std::string::npos);
  CHECK(first_line("--table positions " + requests).starts_with("model_name,group,position,accepted,evaluated,"));
  CHECK(first_line("--table histogram " + requests) == "model_name,group,draft_length,accepted_drafts,rounds");
  CHECK(first_line("--table gammas " + requests).starts_with("model_name,group,gamma,tokens_per_step_value,"));
}

TEST_CASE("the text keeps within 100 columns and says what accepted over drafted is not") {
  for (const std::string& arguments :
       {requests, scrapes, "--by category " + requests}) {
    const Run run = run_specdec("counters " + arguments);
    REQUIRE(run.exit_code == 0);
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 100);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
  CHECK(run_specdec("counters " + requests).out.find("; not your engine's") != std::string::npos);
}

TEST_CASE("drafts that the user says are trees have no alpha and no other gammas") {
  const ScratchFolder folder;
  const std::string file =
      written(folder, "meta.json",
              R"({"text":"x","meta_info":{"completion_tokens":201,"spec_verify_ct":100,"spec_accept_token_num":100,)"
              R"("spec_draft_token_num":700,"spec_accept_histogram":[40,30,20,10]}})");
  const ordered_json document = summary_of("--tree 3,8 " + file);
  const ordered_json group = only_group(document);
  CHECK(group["shape"] == "tree");
  CHECK(group["longest_draft"] == 3);
  CHECK(group["verified_per_round"] == 8);
  CHECK(group["alpha_hat"]["value"].is_null());
  CHECK(group["gammas"].empty());
  CHECK(warns(document, "no_gammas"));
  CHECK(group["positions"].size() == 3);
}

TEST_CASE("a shape or a gamma that the counts do not show is asked for, never guessed") {
  const ScratchFolder folder;
  const std::string file =
      written(folder, "meta.json",
              R"({"text":"x","meta_info":{"completion_tokens":201,"spec_verify_ct":100,"spec_accept_token_num":100,)"
              R"("spec_draft_token_num":300,"spec_accept_histogram":[40,30,20,10]}})");
  const ordered_json open = summary_of(file);
  CHECK(only_group(open)["shape"] == "unknown");
  CHECK(only_group(open)["alpha_hat"]["value"].is_null());
  CHECK(warns(open, "no_gammas"));
  const ordered_json said = summary_of("--gamma 3 " + file);
  CHECK(only_group(said)["shape"] == "chain");
  CHECK(only_group(said)["alpha_hat"]["value"].get<double>() == Approx(100.0 / 190));
  CHECK(said["assumptions"][0] == ordered_json({{"name", "gamma"}, {"value", 3}, {"source", "user"}}));
}

TEST_CASE("impossible questions are refused in one line") {
  const ScratchFolder folder;
  check_refused("", "SOURCE is missing: files of counts, - for standard input, or --scrape");
  check_refused("--tree 3 x.prom",
                "--tree is 3, but must be DEPTH,TOKENS: its depth, and the positions verified a "
                "round");
  check_refused("--tree 3,3 x.prom", "tokens in --tree is 3, but must be an integer in [4, 1000000]");
  check_refused("--tree 3,8 --gamma 3 x.prom",
                "--tree is given beside --at, but a tree has its own depth: --tree DEPTH,TOKENS");
  const std::string chain = written(folder, "metrics", scrape("m", 100, {90, 80}));
  check_refused("--tree 2,6 " + chain, chain + ":1: the shape of drafts is chain, but must be a tree, as --tree says");
  const std::string broken = written(folder, "broken",
                                     "vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 10\n"
                                     "vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"m\"} 30\n"
                                     "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\",model_name=\"m\"} 31\n");
  const Run run = run_specdec("counters " + broken);
  CHECK(run.exit_code == 2);
  CHECK(run.err.find(broken + ":1: accepted is 31, but must be at most 30, the drafted tokens") != std::string::npos);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("the files of AIPerf are counted and planned from as they are") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/aiperf/";
  const ordered_json records = only_group(summary_of(folder + "records.jsonl"));
  const ordered_json run = only_group(summary_of(folder + "speculative.json"));
  CHECK(records["formats"] == ordered_json::parse(R"(["aiperf records"])"));
  CHECK(run["formats"] == ordered_json::parse(R"(["aiperf summary"])"));
  CHECK(records["units"] == 12);
  CHECK(records["rounds"] == run["rounds"]);
  CHECK(records["tokens_per_step"]["value"] == run["tokens_per_step"]["value"]);
  CHECK(records["interval_basis"] == "clusters");
  const ordered_json plan = document_of_run("plan --bench " + folder + "plain.json " + folder + "speculative.json");
  CHECK(plan["schema"] == "specdec.plan/2");
}

TEST_CASE("a plan from guidellm's reports finds the 20 ms that each round of their server took") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/guidellm/";
  const ordered_json plan = document_of_run("plan --bench " + folder + "plain.json " + folder + "speculative.json");
  REQUIRE(plan["runs"].size() == 4);
  // A sleep of 20 ms and what a machine adds to it.
  for (const ordered_json& run : plan["runs"]) CHECK(run["round_seconds"] == Approx(0.0203).epsilon(0.03));
  CHECK(only_group(summary_of(folder + "speculative.json"))["formats"] ==
        ordered_json::parse(R"(["guidellm report"])"));
}

TEST_CASE("a plan from speculators' sweep measures the speedup of the load that both have") {
  const ordered_json plan = document_of_run("plan --bench " + samples + "speculators_results_plain.csv " + samples +
                                            "speculators_results_speculative.csv");
  REQUIRE(plan["runs"].size() == 4);
  std::size_t measured = 0;
  for (const ordered_json& run : plan["runs"]) {
    if (run["measured_speedup"].is_null()) continue;
    ++measured;
    // The quotient of the two medians between tokens.
    CHECK(run["measured_speedup"]["value"] == Approx(20.268283239225063 / 8.48698616027832));
  }
  CHECK(measured == 1);
}

TEST_CASE("a plan from two files of speed_bench takes their concurrency as the batch") {
  const ScratchFolder folder;
  const auto result = [](int drafted, int accepted, double milliseconds) {
    return fmt::format(
        R"({{"id":"a","category":"coding","ok":true,"turns":1,"completion_tokens":401,"prompt_tokens":100,)"
        R"("draft_n":{},"draft_n_accepted":{},"predicted_ms":{}}})",
        drafted, accepted, milliseconds);
  };
  const auto run = [](const std::string& one) {
    return fmt::format(R"({{"completed_samples":1,"config":{{"concurrency":4,"model":"m"}},"failed_samples":0,)"
                       R"("results":[{}]}})",
                       one);
  };
  // 400 passes of 10 ms, and 160 rounds of 3 drafts that take 12 ms and put out 2.5 tokens.
  const std::string plain = written(folder, "plain.json", run(result(0, 0, 4000)));
  const std::string drafts = written(folder, "drafts.json", run(result(480, 240, 1920)));
  const ordered_json plan = document_of_run("plan --bench " + plain + " " + drafts);
  REQUIRE(plan["runs"].size() == 2);
  CHECK(plan["runs"][0]["round_seconds"] == Approx(0.010));
  CHECK(plan["runs"][1]["round_seconds"] == Approx(0.012));
  CHECK(plan["runs"][1]["gamma"] == 3);
  CHECK(plan["runs"][1]["tokens_per_step"] == Approx(2.5));
  for (const ordered_json& one : plan["runs"]) CHECK(one["batch"] == Approx(4));
  CHECK(plan["runs"][1]["measured_speedup"]["value"] == Approx(10 / (12 / 2.5)));
}

TEST_CASE("broken files of AIPerf are refused with line and key") {
  const ScratchFolder folder;
  const std::string records =
      written(folder, "records.jsonl",
              R"({"metadata":{"benchmark_phase":"profiling"},"metrics":{},"spec_decode_acceptance":)"
              R"({"engine":"vllm","acceptance_histogram":{"0":5,"3":2},"num_spec_steps":8}})");
  check_refused(records, records + ":1: rounds is 8, but must be 7, the sum of the histogram");
  const std::string summary = written(folder, "summary.json",
                                      R"({"aiperf_version":"0.13.0","request_count":{"unit":"requests","avg":12.0},)"
                                      R"("inter_token_latency":{"unit":"sec","avg":0.002}})");
  check_refused(summary, summary + ":1: inter_token_latency.unit is sec, but must be ms");
}

TEST_CASE("windows between scrapes follow one another, also where each scrape is a file of its own") {
  const ScratchFolder folder;
  std::string files;
  std::int64_t rounds = 0, accepted = 0;
  for (int scrape = 0; scrape <= 20; ++scrape) {
    const auto counter = [](const std::string& name, std::int64_t value) {
      return fmt::format("vllm:spec_decode_{}_total{{engine=\"0\",model_name=\"m\"}} {}\n", name, value);
    };
    files += ' ' + written(folder, fmt::format("scrape{:02}.prom", scrape),
                           counter("num_drafts", rounds) + counter("num_draft_tokens", 4 * rounds) +
                               counter("num_accepted_tokens", accepted));
    rounds += 200;
    // Ten windows of much acceptance, then ten of little.
    accepted += scrape < 10 ? 500 : 260;
  }
  const ordered_json summary = document_of_run("counters" + files);
  const auto& warnings = summary["warnings"];
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const auto& one) { return one["code"] == "windows_alike"; }));
}
