#include <sys/resource.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::tests;
using nlohmann::ordered_json;

namespace {

ordered_json analysis_of(const std::string& options) { return document_of_run("analyze " + options); }

/// The text of reference value (.9, .3, .5, .8, .2, .7), as often as asked for, each a sequence.
std::string reference_text(const ScratchFolder& folder, int sequences, const Metadata& metadata = {}) {
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  for (int s = 0; s < sequences; ++s) {
    for (const double a : {0.9, 0.3, 0.5, 0.8, 0.2, 0.7}) {
      acceptance.push_back(a);
      sequence.push_back(s);
    }
  }
  return scalar_trace(folder / "trace.safetensors", acceptance, sequence, metadata).string();
}

// AddressSanitizer's own memory would be measured.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

const std::string samples = std::string(SPECDEC_SOURCE_DIR) + "/traces/samples/llamacpp/";
const std::string llamacpp = "--target " + samples + "target.kld --draft " + samples + "draft.kld";

}  // namespace

TEST_CASE("the JSON of analyze has every key, in order, whatever the recording lacks") {
  const ScratchFolder folder;
  const ordered_json json = analysis_of(reference_text(folder, 2));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"schema",
                                         "version",
                                         "inputs",
                                         "assumptions",
                                         "warnings",
                                         "positions",
                                         "sequences",
                                         "tasks",
                                         "by_task",
                                         "tiers",
                                         "acceptance",
                                         "alpha",
                                         "alpha_emitted",
                                         "alpha_by_rule",
                                         "text_source",
                                         "d_lk",
                                         "d_lk_bounds",
                                         "d_lk_ci95",
                                         "kl_pq",
                                         "kl_pq_ci95",
                                         "kl_qp",
                                         "kl_qp_ci95",
                                         "kl_infinite_share",
                                         "target_entropy",
                                         "target_entropy_ci95",
                                         "draft_entropy",
                                         "draft_entropy_ci95",
                                         "top1_agreement",
                                         "top1_agreement_ci95",
                                         "beta_quantiles",
                                         "beta_quantile_error",
                                         "beta_histogram",
                                         "beta_below",
                                         "autocorrelation",
                                         "calibration",
                                         "position_acceptance",
                                         "gammas",
                                         "optimal",
                                         "lenience",
                                         "standardisation",
                                         "adaptive"});
  CHECK(json["schema"] == "specdec.analyze/1");
  CHECK(json["inputs"]["files"].size() == 1);
  CHECK(json["alpha"].is_null());
  CHECK(warns(json, "no_mean_acceptance"));
  CHECK(warns(json, "no_cost"));
}

TEST_CASE("two numbers a token replay every gamma exactly") {
  const ScratchFolder folder;
  const ordered_json json = analysis_of(reference_text(folder, 3) + " --gamma 1,2,3,8 --samples 400");
  CHECK(json["positions"] == 18);
  CHECK(json["sequences"] == 3);
  CHECK(json["alpha_emitted"]["value"].get<double>() == Approx(17.0 / 30).epsilon(1e-6));
  // Reference: expected runs over (.9, .3, .5, .8, .2, .7), from the enumeration behind docs/theory.md#replay.
  const std::vector<double> runs = {4.0554, 3.503, 3.4104, 3.3};
  REQUIRE(json["gammas"].size() == 4);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ordered_json& tokens = json["gammas"][i]["tokens_per_step"];
    CHECK(tokens["replay"].get<double>() == Approx(6 / runs[i]).epsilon(1e-5));
    CHECK(std::abs(tokens["monte_carlo_z"].get<double>()) < 5);
    CHECK(tokens["iid"].get<double>() - tokens["replay"].get<double>() ==
          Approx(tokens["iid_minus_replay"].get<double>()).epsilon(1e-9));
  }
  CHECK(json["gammas"][0]["speedup"]["replay"].is_null());
  CHECK(json["optimal"]["gamma"].is_null());
}

TEST_CASE("a cost gives speedups, the best gamma and adaptive drafting") {
  const ScratchFolder folder;
  const ordered_json json = analysis_of(reference_text(folder, 10) + " --c 0.1 --gamma 1:6");
  const ordered_json& row = json["gammas"][1];
  // A step that starts within the last two tokens drafts less than 2, so it costs less.
  CHECK(row["speedup"]["replay"].get<double>() > 6 / 3.503 / 1.2);
  CHECK(json["optimal"]["gamma"].is_number_integer());
  CHECK(json["optimal"]["bootstrap_share_best"] == 1);
  CHECK(json["optimal"]["expected_regret"] == 0);
  REQUIRE(json["adaptive"]["policies"].size() == 5);
  CHECK(json["adaptive"]["policies"][4]["is_bound"] == true);
  CHECK(json["adaptive"]["policies"][0]["at_grid_edge"].is_null());
  bool at_edge = false;
  for (const std::size_t policy : {1, 2}) at_edge |= json["adaptive"]["policies"][policy]["at_grid_edge"].get<bool>();
  CHECK(warns(json, "threshold_at_grid_edge") == at_edge);
  CHECK_FALSE(warns(json, "no_cost"));
}

TEST_CASE("the largest gamma over many short sequences stays within 256 MB") {
  const ScratchFolder folder;
  const std::string trace = (folder / "trace.safetensors").string();
  REQUIRE(run_specdec("trace generate --sequences 150 --tokens 64 --output " + trace).exit_code == 0);
  analysis_of(trace + " --gamma 512 --c 0.1 --samples 0");
  rusage children{};
  REQUIRE(getrusage(RUSAGE_CHILDREN, &children) == 0);
  if (!sanitized) CHECK(children.ru_maxrss < 256 * 1024);
}

TEST_CASE("a text that is not the target's own is replayed only by force") {
  const ScratchFolder folder;
  const std::string trace = reference_text(folder, 3, {{"path", "other"}});
  const ordered_json refused = analysis_of(trace + " --c 0.1");
  REQUIRE(refused["gammas"].size() == 16);
  const ordered_json& row = refused["gammas"][1];
  CHECK(row["tokens_per_step"]["replay"].is_null());
  CHECK(row["tokens_per_step"]["monte_carlo"].is_null());
  // Eq. 1 at alpha = 3.4 / 6: 1 + alpha + alpha^2.
  CHECK(row["tokens_per_step"]["iid"].get<double>() == Approx(1.8877777).epsilon(1e-6));
  CHECK(row["speedup"]["replay"].is_null());
  CHECK(row["speedup"]["iid"].get<double>() == Approx(1.8877777 / 1.2).epsilon(1e-6));
  CHECK(refused["position_acceptance"].empty());
  CHECK(refused["optimal"]["gamma"].is_null());
  CHECK(warns(refused, "path_other"));
  const std::string text = run_specdec("analyze --c 0.1 " + trace).out;
  CHECK(text.find("The text is not the target's own, as the recording says.") != std::string::npos);
  CHECK(text.find("By alpha alone (Theorem 3.8), gamma 3 would be best: 1.59x at c 0.1.") != std::string::npos);
  CHECK(text.find("2       -  1.888      -          -        -   1.573     -") != std::string::npos);
  const ordered_json forced = analysis_of(trace + " --c 0.1 --force-replay");
  CHECK(forced["gammas"].size() == 16);
  CHECK_FALSE(warns(forced, "path_other"));
}

TEST_CASE("where the tail is unknown every figure is a bracket") {
  const ScratchFolder folder;
  const std::string trace = top_k_trace(folder / "trace.safetensors", 200).string();
  const ordered_json json = analysis_of(trace + " --c 0.1 --gamma 1,2");
  CHECK(json["alpha"]["value"].is_null());
  const double low = json["alpha"]["bounds"][0];
  const double high = json["alpha"]["bounds"][1];
  CHECK(low < high);
  CHECK(json["alpha"]["ci95"][0] <= low);
  const ordered_json& tokens = json["gammas"][0]["tokens_per_step"];
  CHECK(tokens["replay"].is_null());
  CHECK(tokens["replay_bounds"][0] < tokens["replay_bounds"][1]);
  // Both ends are simulated: 5 standard errors, false alarm 6e-7 at each.
  CHECK(tokens["monte_carlo"].is_null());
  const double error = tokens["monte_carlo_standard_error"];
  for (const std::size_t end : {0, 1}) {
    const double simulated = tokens["monte_carlo_bounds"][end];
    CHECK(std::abs(simulated - tokens["replay_bounds"][end].get<double>()) <= 5 * error);
  }
  CHECK_FALSE(warns(json, "monte_carlo_disagrees"));
  CHECK(json["optimal"]["gamma"].is_null());
  CHECK(json["optimal"]["gamma_bounds"].size() == 2);
  CHECK(warns(json, "bracketed"));
  CHECK(warns(json, "adaptive_needs_exact_acceptance"));
  // gamma, tokens, Eq. 1, its error, simulated
  const std::string text = run_specdec("analyze " + trace + " --c 0.1 --gamma 1").out;
  CHECK(std::regex_search(text, std::regex("\n +1 +1\\.\\d{3}\\.\\.1\\.\\d{3} +- +- +1\\.\\d{3}\\.\\.1\\.\\d{3} ")));
}

TEST_CASE("at temperature 0 the top-k tier gives rejection the value of greedy") {
  const ScratchFolder folder;
  const std::string full = full_trace(folder / "full.safetensors", recorded_pair(12, 80, 20, 8, {0, 0, 1}),
                                      {{"temperature", "0"}, {"logprob_space", "raw"}})
                               .string();
  const std::string top = (folder / "top.safetensors").string();
  REQUIRE(run_specdec("trace convert --tier topk --k 4 --output " + top + ' ' + full).exit_code == 0);
  const ordered_json rules = analysis_of(top)["alpha_by_rule"];
  CHECK(rules["greedy"]["value"].is_number());
  CHECK(rules["rejection"]["value"] == rules["greedy"]["value"]);
}

TEST_CASE("Eq. 1 takes the alpha that is known exactly where the other one is a bracket") {
  const ScratchFolder folder;
  const std::string trace = top_k_trace(folder / "trace.safetensors", 200, true).string();
  const ordered_json json = analysis_of(trace + " --gamma 1");
  CHECK(json["alpha"]["value"].is_null());
  CHECK(json["alpha_emitted"]["value"].get<double>() == Approx(0.65).epsilon(1e-6));
  CHECK(json["gammas"][0]["tokens_per_step"]["iid"].get<double>() == Approx(1.65).epsilon(1e-6));
  CHECK(json["gammas"][0]["tokens_per_step"]["replay_bounds"].is_null());
}

TEST_CASE("intervals of tokens per step and speedup stay where a text can get to, as printed too") {
  const ScratchFolder folder;
  // Nearly every draft accepted: the interval lies close to the end of its range.
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  for (int i = 0; i < 200; ++i) {
    acceptance.push_back(i % 67 == 3 ? 0.1 : 0.999);
    sequence.push_back(i / 50);
  }
  const std::string trace = scalar_trace(folder / "trace.safetensors", acceptance, sequence).string();
  for (const double c : {0.0, 0.2}) {
    const ordered_json json = analysis_of(trace + " --gamma 1:8 --c " + std::to_string(c));
    double fastest = 1, slowest = 1;
    for (const ordered_json& row : json["gammas"]) {
      const int gamma = row["gamma"];
      fastest = std::max(fastest, (gamma + 1) / (1 + c * gamma));
      slowest = std::min(slowest, 1 / (1 + c * gamma));
      CAPTURE(gamma, c);
      const ordered_json& tokens = row["tokens_per_step"]["replay_ci95"];
      CHECK(tokens[0].get<double>() >= 1);
      CHECK(tokens[1].get<double>() <= gamma + 1);
      const ordered_json& speedup = row["speedup"]["replay_ci95"];
      CHECK(speedup[0].get<double>() >= slowest);
      CHECK(speedup[1].get<double>() <= fastest);
      CHECK(speedup[0].get<double>() <= row["speedup"]["replay"].get<double>());
      CHECK(speedup[1].get<double>() >= row["speedup"]["replay"].get<double>());
    }
  }
  CHECK(std::regex_search(run_specdec("analyze " + trace + " --gamma 1").out,
                          std::regex("1\\.9\\d\\d \\[1\\.\\d{3}, (1\\.\\d{3}|2\\.000)\\]")));
}

TEST_CASE("whole rows give every figure, and the two estimates of alpha agree on the target's own text") {
  const ScratchFolder folder;
  const RecordedPair pair = recorded_pair(40, 2000, 100, 7);
  const std::string trace = full_trace(folder / "trace.safetensors", pair, {{"path", "target"}}).string();
  const ordered_json json = analysis_of(
      trace + " --lenience 1,0.5 --standardise 'temperature=1;draft:temperature=0.5,top_p=0.9' --c 0.1 --samples 16");
  double beta = 0;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    for (std::size_t x = 0; x < 40; ++x) beta += std::min<double>(pair.target_row(i)[x], pair.draft_row(i)[x]);
  }
  const double alpha = json["alpha"]["value"];
  CHECK(alpha == Approx(beta / 2000).epsilon(1e-6));
  CHECK(json["alpha_emitted"]["value"].get<double>() == Approx(alpha).margin(0.05));
  CHECK(json["d_lk"].get<double>() == Approx(1 - alpha).epsilon(1e-6));
  CHECK(json["lenience"][0]["alpha"].get<double>() == Approx(alpha).epsilon(1e-6));
  CHECK(json["lenience"][0]["tv_keep_residual"].get<double>() == Approx(0).margin(1e-6));
  // alpha_l - alpha_1 is the total variation of the kept residual: docs/theory.md#lenience.
  CHECK(json["lenience"][1]["tv_keep_residual"].get<double>() ==
        Approx(json["lenience"][1]["alpha"].get<double>() - alpha).epsilon(1e-5));
  CHECK(json["standardisation"][0]["alpha"].get<double>() == Approx(alpha).epsilon(1e-6));
  CHECK(json["standardisation"][1]["applies_to"] == "draft");
  CHECK(json["standardisation"][1]["top_p"] == 0.9);
  CHECK(json["text_source"]["suspicious"] == false);
  CHECK_FALSE(json["text_source"]["surprisal_z"].is_null());
  CHECK(json["calibration"].size() > 0);
  CHECK(json["autocorrelation"].size() == 16);
  CHECK(json["tiers"] == ordered_json::parse(R"([{"tier":"full","positions":2000}])"));
}

TEST_CASE("text sampled at another temperature than recorded is noticed") {
  const ScratchFolder folder;
  const RecordedPair pair = recorded_pair(40, 2000, 100, 7, {0.5, 0, 1});
  const std::string trace = full_trace(folder / "trace.safetensors", pair).string();
  const ordered_json json = analysis_of(trace + " --samples 0");
  CHECK(json["text_source"]["suspicious"] == true);
  CHECK(warns(json, "text_not_from_target"));
  CHECK(json["gammas"][0]["tokens_per_step"]["monte_carlo"].is_null());
  CHECK(run_specdec("analyze " + trace + " --samples 0").out.find("the tests say NO") != std::string::npos);
}

TEST_CASE("results do not depend on the number of threads") {
  const ScratchFolder folder;
  const std::string trace = full_trace(folder / "trace.safetensors", recorded_pair(40, 500, 50, 3)).string();
  ordered_json one = analysis_of(trace + " --c 0.1 --threads 1");
  ordered_json three = analysis_of(trace + " --c 0.1 --threads 3");
  one.erase("inputs");
  three.erase("inputs");
  CHECK(one == three);
}

TEST_CASE("each task has figures of its own") {
  const ScratchFolder folder;
  const std::string trace = scalar_trace(folder / "trace.safetensors", {0.9, 0.9, 0.5, 0.5, 0.5}, {0, 0, 1, 1, 2},
                                         {{"tasks", R"(["easy","hard"])"}}, {}, {0, 0, 1, 1, 1})
                                .string();
  const ordered_json json = analysis_of(trace + " --c 0.1 --gamma 1,2 --fixed-task-mix");
  REQUIRE(json["tasks"].size() == 2);
  CHECK(json["tasks"][1]["task"] == "hard");
  CHECK(json["tasks"][1]["positions"] == 3);
  CHECK(json["tasks"][1]["sequences"] == 2);
  CHECK(json["by_task"]["easy"]["alpha_emitted"]["value"].get<double>() == Approx(0.9).epsilon(1e-6));
  CHECK(json["by_task"]["hard"]["gammas"].size() == 2);
}

TEST_CASE("tasks of a text that is not the target's own have the figures of their alphas") {
  const ScratchFolder folder;
  const std::string trace = scalar_trace(folder / "trace.safetensors", {0.9, 0.9, 0.5, 0.5, 0.5}, {0, 0, 1, 1, 2},
                                         {{"tasks", R"(["easy","hard"])"}, {"path", "other"}}, {}, {0, 0, 1, 1, 1})
                                .string();
  const ordered_json json = analysis_of(trace + " --gamma 2");
  const ordered_json& tokens = json["by_task"]["hard"]["gammas"][0]["tokens_per_step"];
  CHECK(tokens["replay"].is_null());
  CHECK(tokens["iid"].get<double>() == Approx(1.75).epsilon(1e-6));
}

TEST_CASE("a recording of mixed tiers gives what each tier can, with a warning for the rest") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "shards");
  scalar_trace(folder / "shards/1.safetensors", {0.9, 0.3, 0.5}, {0, 0, 0}, {}, {0.5F, 0.5F, 0.5F});
  full_trace(folder / "shards/2.safetensors", recorded_pair(40, 300, 100, 5));
  const ordered_json json = analysis_of((folder / "shards").string() + " --standardise temperature=0.7 --lenience 0.5");
  CHECK(json["tiers"].size() == 2);
  CHECK(json["positions"] == 303);
  CHECK(json["standardisation"].empty());
  CHECK(warns(json, "sweep_needs_full_tier"));
  CHECK(json["lenience"].size() == 1);
  CHECK(warns(json, "lenience_of_full_tier"));
  CHECK(json["gammas"].size() == 16);
}

TEST_CASE("the llama.cpp sample gives the figures that its README states") {
  const ordered_json json = analysis_of(llamacpp);
  CHECK(json["positions"] == 124);
  CHECK(json["sequences"] == 4);
  CHECK(json["alpha"]["value"].get<double>() == Approx(0.6115222520).epsilon(1e-8));
  CHECK(json["alpha_emitted"]["value"].get<double>() > 0.7972);
  CHECK(json["alpha_emitted"]["value"].get<double>() < 0.7974);
  CHECK(json["alpha_by_rule"]["greedy_draft"]["value"].get<double>() == Approx(0.0762721292).epsilon(1e-7));
  CHECK(json["alpha_by_rule"]["greedy"]["value"].get<double>() == Approx(36.0 / 124).epsilon(1e-12));
}

TEST_CASE("the text answers first and keeps to its width") {
  const ScratchFolder folder;
  const std::string trace = full_trace(folder / "trace.safetensors", recorded_pair(40, 1000, 100, 7)).string();
  const std::string text = run_specdec("analyze --c 0.1 " + trace).out;
  CHECK(text.starts_with("alpha 0."));
  CHECK(text.find("Draft ") < text.find("gamma"));
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    CHECK(end - start <= 100);
    start = end + 1;
  }
}

TEST_CASE("every table of analyze is printed as CSV, the gammas unless another is asked for") {
  const ScratchFolder folder;
  const std::string trace = full_trace(folder / "trace.safetensors", recorded_pair(40, 500, 50, 3)).string();
  const auto header = [&](const std::string& table) {
    const std::string out = run_specdec("analyze --c 0.1 --format csv --quiet " + table + ' ' + trace).out;
    return out.substr(0, out.find('\n'));
  };
  CHECK(header("").starts_with("gamma,tokens_per_step_replay,"));
  CHECK(header("--table positions").starts_with("position,unconditional,"));
  CHECK(header("--table lenience").starts_with("lenience,alpha,alpha_ci95_low,"));
  CHECK(header("--table standardisation").starts_with("applies_to,temperature,"));
  CHECK(header("--table beta_histogram") == "from,to,positions,positions_of_upper_ends");
  CHECK(header("--table autocorrelation") == "row,value");
  CHECK(header("--table calibration") == "by,from,to,positions,confidence,acceptance");
  CHECK(header("--table adaptive").starts_with("policy,is_bound,"));
}

TEST_CASE("wrong options of analyze are refused with what is legal") {
  check_run_refused("analyze", "TRACE is missing: a recording, or --target and --draft");
  check_run_refused("analyze --target a", "--target is given, but needs --draft beside it");
  check_run_refused("analyze --draft a", "--draft is given, but needs --target beside it");
  check_run_refused("analyze t --target a --draft b", "TRACE is t, but must not be given beside --target and --draft");
  check_run_refused("analyze t --gamma 3:2", "--gamma is 2, but must be an integer in [3, 512]");
  check_run_refused("analyze t --gamma 2,2", "--gamma is 2, but must be an integer in [3, 512]");
  check_run_refused("analyze t --gamma 0", "--gamma is 0, but must be an integer in [1, 512]");
  check_run_refused("analyze t --lenience 0", "--lenience is 0, but must be a number in (0, 1]");
  check_run_refused("analyze t --samples 1", "--samples is 1, but must be 0 or an integer from 2 on");
  check_run_refused("analyze t --overhead 1", "--overhead is given, but needs --c beside it");
  check_run_refused(
      "analyze t --standardise draft:warmth=1",
      "--standardise is draft:warmth=1, but must be temperature=T, top_k=K and top_p=P, separated by commas, "
      "behind target: or draft: where one alone is meant");
  check_run_refused("analyze t --standardise top_p=0", "top_p in --standardise is 0, but must be a number in (0, 1]");
  check_run_refused("analyze t --acceptance typical",
                    "--acceptance is typical, but must be one of recorded, rejection, greedy-draft, greedy");
}

TEST_CASE("a recording that cannot answer is refused with what to record instead") {
  const ScratchFolder folder;
  const std::string raw = reference_text(folder, 2, {{"logprob_space", "raw"}, {"temperature", "0.7"}});
  const Run refused = run_specdec("analyze " + raw);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--assume-processed") != std::string::npos);
  CHECK(run_specdec("analyze " + raw + " --assume-processed").exit_code == 0);

  const std::vector<float> zeros(8, 0);
  const std::string empty_rows =
      write_tensors(folder / "zeros.safetensors", {floats("p.probs", {2, 4}, zeros), floats("q.probs", {2, 4}, zeros)})
          .string();
  const Run zero = run_specdec("analyze " + empty_rows);
  CHECK(zero.exit_code == 2);
  CHECK(zero.err.find("p.probs row 0 is ") != std::string::npos);
}
