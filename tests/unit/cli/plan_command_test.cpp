#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

ordered_json json_of(const std::string& options) { return document_of_run("plan " + options); }

}  // namespace

TEST_CASE("the JSON output starts with the envelope and goes on with the answer") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05");
  std::vector<std::string> keys;
  for (const auto& [key, value] : plan.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"schema",
                                         "version",
                                         "inputs",
                                         "assumptions",
                                         "warnings",
                                         "alpha",
                                         "rejection",
                                         "c",
                                         "c_hat",
                                         "worth_it",
                                         "break_even_alpha",
                                         "optimal",
                                         "recommended",
                                         "oracle_speedup",
                                         "near_optimal_gammas",
                                         "near_optimal_ranges",
                                         "limit",
                                         "deployed",
                                         "interval",
                                         "finite",
                                         "rows",
                                         "points",
                                         "drafts",
                                         "recommended_draft",
                                         "schedule",
                                         "crossover_batch",
                                         "config",
                                         "bench",
                                         "runs",
                                         "backtest"});
  CHECK(plan["schema"] == "specdec.plan/1");
  CHECK(plan["inputs"]["tolerance"] == 0.01);
  CHECK(plan["inputs"]["gamma"].is_null());
  CHECK(plan["optimal"]["gamma"] == 8);
  CHECK(plan["near_optimal_gammas"] == ordered_json({7, 8, 9}));
  CHECK(plan["deployed"].is_null());
}

TEST_CASE("the table answers in a sentence first") {
  const Run run = run_specdec("plan --alpha 0.8 --c 0.05");
  CHECK(run.exit_code == 0);
  CHECK(run.out.rfind("Draft 8 tokens per step: 3.09x the speed of plain decoding (alpha 0.8, c 0.05).\n", 0) == 0);
  CHECK(run.out.find("\n    8   4.329    3.092       2.171   0.231  best\n") != std::string::npos);
}

TEST_CASE("no line of the table output is wider than 100 columns") {
  for (const char* options : {"--alpha 0.8 --c 0.05", "--alpha 0.7:0.8 --c 0.05 --tokens 1000000 --gamma 3",
                              "--alpha 0.8 --c 0", "--rejection 1e-12 --c 1e-12 --tokens 100",
                              "--acceptance-length 1:1.5,2:2.4 --c 0.02 --verify-factor 2:1.02,5:1.10"}) {
    std::istringstream lines(run_specdec(std::string("plan ") + options).out);
    for (std::string line; std::getline(lines, line);) {
      INFO(options << ": " << line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("CSV has one header line and a line for each row") {
  const Run run = run_specdec("plan --alpha 0.5 --c 0.5 --max-gamma 1 --format csv --quiet");
  CHECK(
      run.out ==
      "gamma,expected_tokens,speedup,operations_factor,memory_access_factor,extrapolated,finite_speedup,worst_regret\n"
      "0,1.0,1.0,1.0,1.0,false,,\n"
      "1,1.5,1.0,1.6666666666666667,0.6666666666666666,false,,\n");
  CHECK(run.err.empty());
}

TEST_CASE("a regret above --max-regret exits with 1 and says so, one below does not") {
  const Run alarm = run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.16");
  CHECK(alarm.exit_code == 1);
  CHECK(alarm.out.find("Warning (max_regret_exceeded): the regret of gamma 3 is 0.1698, above --max-regret 0.16.") !=
        std::string::npos);
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.17").exit_code == 0);
  // In an interval the worst regret counts: gamma 7 is best at 0.75, but loses 1.1% at 0.7.
  CHECK(run_specdec("plan --alpha 0.75 --c 0.05 --gamma 7 --max-regret 0.001").exit_code == 0);
  CHECK(run_specdec("plan --alpha 0.7:0.8 --c 0.05 --gamma 7 --max-regret 0.001").exit_code == 1);
}

TEST_CASE("the option --rejection keeps digits that --alpha has lost") {
  CHECK(json_of("--rejection 1e-12 --c 0.1")["rejection"] == 1e-12);
  CHECK(json_of("--alpha 0.999999999999 --c 0.1")["rejection"] != 1e-12);
}

// The length is Eq. (1) at alpha 0.8 and gamma 5.
TEST_CASE("an acceptance length is turned back into its rate") {
  CHECK(json_of("--acceptance-length 3.68928 --at 5 --c 0.05")["alpha"].get<double>() == Approx(0.8).epsilon(1e-12));
}

TEST_CASE("lengths and rates per position are used as they are up to the last one and marked beyond it") {
  for (const char* acceptance : {"--acceptance-length 1:1.8,2:2.4,3:2.8", "--acceptance-per-position 0.8,0.6,0.4",
                                 "--acceptance-per-position 0.8,0.75,0.66666666666666663 --conditional"}) {
    INFO(acceptance);
    const ordered_json plan = json_of(std::string(acceptance) + " --c 0.02");
    CHECK(plan["rows"][2]["expected_tokens"].get<double>() == Approx(2.4).epsilon(1e-12));
    CHECK(plan["rows"][3]["expected_tokens"].get<double>() == Approx(2.8).epsilon(1e-12));
    CHECK(plan["rows"][4]["expected_tokens"].get<double>() == Approx(2.8 + 0.4 * 2 / 3).epsilon(1e-12));
    CHECK(plan["rows"][3]["extrapolated"] == false);
    CHECK(plan["rows"][4]["extrapolated"] == true);
    CHECK(warns(plan, "extrapolated"));
    CHECK_FALSE(warns(plan, "non_monotone_survival"));
  }
}

TEST_CASE("input that gives no rate to go on with is planned for within the measured positions, and says so") {
  for (const char* acceptance :
       {"--acceptance-length 1:1.5,2:2.1", "--acceptance-per-position 0.8,0.8", "--acceptance-per-position 0.8,0.9"}) {
    const ordered_json plan = json_of(std::string(acceptance) + " --c 0.05");
    CHECK(plan["recommended"] == ordered_json({{"gamma", 2}, {"basis", "measured"}}));
    CHECK(warns(plan, "not_extrapolated"));
    CHECK(run_specdec(std::string("plan --c 0.05 ") + acceptance).out.find("best within the 2 measured") !=
          std::string::npos);
  }
  const Run beyond = run_specdec("plan --acceptance-per-position 0.8,0.8 --c 0.05 --gamma 3");
  CHECK(beyond.exit_code == 2);
  CHECK(beyond.err ==
        "specdec: error: --gamma is 3, but must be at most 2: the measured acceptance gives no rate to go on with\n");
}

TEST_CASE("what was measured is recommended where going beyond gains little, and one sentence says what is given up") {
  const std::string options = "--acceptance-length 1:1.84,2:2.51,3:3.01 --c 0.15";
  const ordered_json plan = json_of(options);
  CHECK(plan["recommended"] == ordered_json({{"gamma", 3}, {"basis", "measured"}}));
  CHECK(plan["optimal"]["gamma"] == 4);
  const std::string text = run_specdec("plan " + options).out;
  CHECK(text.find("Draft 3 tokens per step: 2.08x") == 0);
  CHECK(text.find("Gamma 4 would reach 2.11x if") != std::string::npos);
  const ordered_json points = json_of(options + " --batch 1,2");
  CHECK(points["points"][0]["optimal"]["gamma"] == 3);
  CHECK(points["points"][0]["passed_over_gamma"] == 4);
  CHECK(warns(points, "measured_preferred"));
  CHECK(json_of("--alpha 0.8 --c 0.15 --batch 1,2")["points"][0]["passed_over_gamma"].is_null());
}

TEST_CASE("a recommendation beyond the measured positions says so in its first sentence") {
  for (const char* acceptance : {"--acceptance-length 1:1.84,2:2.51,3:3.01", "--acceptance-length 2.92 --at 3"}) {
    const std::string text = run_specdec(std::string("plan --c 0.02 ") + acceptance).out;
    const std::size_t at = text.find(", extrapolated");
    CHECK(at < text.find("Within"));
  }
}

TEST_CASE("an interval is never answered with 0 tokens to draft, and around break-even it is warned of") {
  const ordered_json plan = json_of("--alpha 0:0.4 --c 0.25");
  CHECK(plan["worth_it"] == true);
  CHECK(warns(plan, "break_even_inside_interval"));
  CHECK_FALSE(warns(plan, "not_worth_it"));
  CHECK(run_specdec("plan --alpha 0:0.4 --c 0.25").out.rfind("Do not draft", 0) == 0);
  CHECK(run_specdec("plan --alpha 0:1 --c 0").out.find("would reach 2.00x, at the middle") != std::string::npos);
}

TEST_CASE("both ends of an interval are printed in the same form, with digits that tell them apart") {
  CHECK(run_specdec("plan --rejection 1e-13:2e-13 --c 0.05").out.find("1 - alpha 1e-13 to 2e-13") != std::string::npos);
  CHECK(run_specdec("plan --alpha 0.1:0.999999 --c 0.05").out.find("1 - alpha 1e-06 to 0.9") != std::string::npos);
}

TEST_CASE("an interval of rejections keeps its digits") {
  CHECK(json_of("--rejection 1e-17:2e-17 --c 0.05")["rejection"].get<double>() == Approx(1.5e-17).epsilon(1e-14));
  CHECK(json_of("--rejection 1e-17:2e-17 --c 0.05")["recommended"]["gamma"].is_number());
}

TEST_CASE("no share is printed as 1e+02%") {
  CHECK(run_specdec("plan --alpha 0.5:1 --c 0 --gamma 3").out.find("e+02") == std::string::npos);
}

TEST_CASE("the largest gammas there are do not leave the legal range") {
  CHECK(run_specdec("plan --alpha 0.7:0.8 --c 1e-18").exit_code == 0);
  CHECK(run_specdec("plan --alpha 0.7:0.8 --c 0.05 --gamma 9007199254740992").exit_code == 0);
}

TEST_CASE("an optimum beyond 2^53 is not called a limit") {
  CHECK(json_of("--rejection 1e-18 --c 1e-18")["limit"].is_null());
  CHECK(run_specdec("plan --rejection 1e-18 --c 1e-18").out.find("The best gamma exceeds 2^53") != std::string::npos);
}

TEST_CASE("input that is no survival function is flagged") {
  CHECK(warns(json_of("--acceptance-length 1:1.5,2:2.4 --c 0.02"), "non_monotone_survival"));
  CHECK(warns(json_of("--acceptance-per-position 0.5,0.6 --c 0.02"), "non_monotone_survival"));
}

TEST_CASE("what has no answer is null, with a warning that says why") {
  const ordered_json free_draft = json_of("--alpha 0.8 --c 0");
  CHECK(free_draft["optimal"]["gamma"].is_null());
  CHECK(free_draft["limit"]["speedup"].get<double>() == Approx(5.0));
  CHECK(warns(free_draft, "no_finite_optimum"));
  CHECK(warns(free_draft, "near_optimal_list_cut"));
  CHECK(free_draft["near_optimal_ranges"] == ordered_json::parse("[[20, null]]"));
  CHECK(warns(json_of("--alpha 0.05 --c 0.1"), "not_worth_it"));
  CHECK(warns(json_of("--alpha 0.5 --c 2"), "no_break_even"));
  CHECK(warns(json_of("--alpha 1 --c 0"), "oracle_unbounded"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --overhead 0.1"), "no_oracle"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --overhead 0.1"), "no_gamma_real"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --max-gamma 4"), "max_gamma_binds"));
  CHECK(warns(json_of("--alpha 0.5:0.9999999 --c 1e-7"), "optimal_gammas_cut"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --tokens 1000000 --gamma 30"), "finite_not_computed"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --verify-factor 2:1.1,4:1.2"), "verify_factor_extrapolated"));
  const ordered_json huge = json_of("--rejection 1e-300 --c 1e-300");
  CHECK(huge["optimal"]["gamma"].is_null());
  CHECK(warns(huge, "no_finite_optimum"));
}

TEST_CASE("an option's source is said: user or default") {
  const auto source = [](const ordered_json& plan, const std::string& name) {
    for (const auto& assumption : plan["assumptions"]) {
      if (assumption["name"] == name) return assumption["source"].get<std::string>();
    }
    return std::string("missing");
  };
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05 --verify-factor 1.1");
  CHECK(source(plan, "verify_factor") == "user");
  CHECK(source(plan, "c_hat") == "default");
  CHECK(source(json_of("--alpha 0.8 --c 0.05 --c-hat 0.05"), "c_hat") == "user");
  CHECK(source(plan, "overhead") == "default");
  CHECK(source(json_of("--alpha 0.8 --c 0.05 --overhead 0"), "overhead") == "user");
}

TEST_CASE("the option --output writes what standard output would have had and leaves nothing else") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "plan.csv").string();
  const Run run = run_specdec("plan --alpha 0.8 --c 0.05 --format csv --output " + file);
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(content_of(file) == run_specdec("plan --alpha 0.8 --c 0.05 --format csv").out);
  CHECK(scratch.files() == 1);
}

TEST_CASE("what --print-config writes, --config reads, and the command line overrides it") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "specdec.toml").string();
  const std::string options = "plan --acceptance-length 1:1.84,2:2.51 --c 0.05 --gamma 4 --format csv";
  std::ofstream(file) << run_specdec(options + " --print-config").out;
  CHECK(run_specdec("plan --config " + file).out == run_specdec(options).out);
  const ordered_json plan = json_of("--gamma 5 --config " + file);
  CHECK(plan["deployed"]["gamma"] == 5);
  CHECK(plan["inputs"]["config"]["size_bytes"] == content_of(file).size());
}

TEST_CASE("a configuration file takes lists without quotes and sections of other commands") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "specdec.toml").string();
  std::ofstream(file) << "[reproduce]\nformat = csv\n[plan]\nacceptance-length = 1:1.84,2:2.51\nc = 0.05\n";
  CHECK(run_specdec("plan --config " + file).out == run_specdec("plan --acceptance-length 1:1.84,2:2.51 --c 0.05").out);
}

TEST_CASE("help and version go to standard output") {
  CHECK(run_specdec("--version").out.rfind("specdec ", 0) == 0);
  for (const char* command : {"", "plan", "reproduce", "validate"}) {
    const Run run = run_specdec(std::string(command) + " --help");
    INFO(command);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("Usage: specdec") != std::string::npos);
    CHECK(run.err.empty());
  }
}

TEST_CASE("a path that is not UTF-8 does not spoil the JSON output") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "plan-\xff.json").string();
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --format json --output '" + file + "'").exit_code == 0);
  CHECK(ordered_json::parse(content_of(file))["schema"] == "specdec.plan/1");
}
