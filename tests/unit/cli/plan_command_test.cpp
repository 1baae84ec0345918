#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
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
                                         "crossover_interval",
                                         "config",
                                         "bench",
                                         "runs",
                                         "backtest",
                                         "relative"});
  CHECK(plan["schema"] == "specdec.plan/2");
  CHECK(plan["inputs"]["tolerance"] == 0.01);
  CHECK(plan["inputs"]["gamma"].is_null());
  CHECK(plan["decision"]["gamma"] == 8);
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
  CHECK(run.out ==
        "gamma,expected_tokens,speedup,operations_factor,memory_access_factor,speedup_interval_low,"
        "speedup_interval_high,extrapolated,finite_speedup,worst_regret\n"
        "0,1.0,1.0,1.0,1.0,,,false,,\n"
        "1,1.5,1.0,1.6666666666666667,0.6666666666666666,,,false,,\n");
  CHECK(run.err.empty());
}

TEST_CASE("a regret above --max-regret exits with 1 and says so, one below does not") {
  const Run alarm = run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.16");
  CHECK(alarm.exit_code == 1);
  CHECK(alarm.out.find("Warning (max_regret_exceeded): gamma 3 is 0.1698 behind what is recommended, above") !=
        std::string::npos);
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.17").exit_code == 0);
}

TEST_CASE("an interval of rates gives every gamma the range of its speedup") {
  const ordered_json plan = json_of("--alpha 0.6:0.9 --c 0.05");
  const auto speedup = [](double alpha, double gamma) {
    return (1 - std::pow(alpha, gamma + 1)) / (1 - alpha) / (0.05 * gamma + 1);
  };
  for (const ordered_json& row : plan["points"][0]["rows"]) {
    CHECK(row["speedup"]["ci95"][0].get<double>() == Approx(speedup(0.6, row["gamma"])));
    CHECK(row["speedup"]["ci95"][1].get<double>() == Approx(speedup(0.9, row["gamma"])));
  }
  const std::string text = run_specdec("plan --alpha 0.6:0.9 --c 0.05").out;
  CHECK(text.rfind("Draft 8 tokens per step: 2.64x (1.77x to 4.38x over the range of alpha)", 0) == 0);
  CHECK(text.find("gamma  tokens  speedup         range  operations") != std::string::npos);
}

TEST_CASE("the other of alpha and its rejection has the decimals of what was typed") {
  CHECK(json_of("--alpha 0.68 --c 0.02")["rejection"] == 0.32);
  CHECK(json_of("--rejection 0.32 --c 0.02")["alpha"] == 0.68);
  CHECK(json_of("--rejection 0.32 --c 0.02 --batch 1")["rejection"] == 0.32);
  CHECK(json_of("--alpha 0.7:0.9 --c 0.02")["interval"]["rejection_interval"] == ordered_json({0.1, 0.3}));
  CHECK(json_of("--rejection 1e-12 --c 0.02")["rejection"] == 1e-12);
}

TEST_CASE("the option --max-regret never complains of what the same answer recommends") {
  for (const std::string acceptance :
       {"--alpha 0.75", "--alpha 0.7:0.8", "--alpha 0.6:0.9", "--alpha 0.2:0.9", "--acceptance-length 3.0 --at 4",
        "--acceptance-per-position 0.8,0.63,0.49", "--alpha 0.3 --min-gain 0.5", "--alpha 0.6:0.9 --batch 1,8"}) {
    CAPTURE(acceptance);
    const std::string question = "plan --c 0.05 " + acceptance + " --format json";
    const ordered_json plan = ordered_json::parse(run_specdec(question).out);
    const bool drafts = plan["points"][0]["verdict"] != "no";
    const ordered_json& best = plan["recommended"].is_null() ? plan["points"][0]["optimal"] : plan["recommended"];
    const std::string gamma = drafts ? best["gamma"].dump() : "0";
    const Run run = run_specdec(question + " --max-regret 0 --gamma " + gamma);
    CHECK(run.exit_code == 0);
    const ordered_json used = ordered_json::parse(run.out);
    const ordered_json& deployed = used["deployed"].is_null() ? used["points"][0]["deployed"] : used["deployed"];
    CHECK(deployed["behind_recommended"] == 0);
  }
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
    CHECK(plan["points"][0]["rows"][2]["tokens_per_step"]["value"].get<double>() == Approx(2.4).epsilon(1e-12));
    CHECK(plan["points"][0]["rows"][3]["tokens_per_step"]["value"].get<double>() == Approx(2.8).epsilon(1e-12));
    // Rates of .8, .75 and .67 go on to fall; one that stayed at the last is an end of the range.
    CHECK(plan["points"][0]["rows"][4]["tokens_per_step"]["value"].get<double>() < 2.8 + 0.4 * 2 / 3);
    CHECK(plan["points"][0]["rows"][4]["tokens_per_step"]["value"].get<double>() > 2.8 + 0.4 * 0.55);
    CHECK(plan["points"][0]["rows"][4]["speedup"]["ci95"][1].get<double>() * 1.08 >= 2.8 + 0.4 * 2 / 3);
    CHECK(plan["points"][0]["rows"][3]["extrapolated"] == false);
    CHECK(plan["points"][0]["rows"][4]["extrapolated"] == true);
    CHECK(warns(plan, "extrapolated"));
    CHECK_FALSE(warns(plan, "non_monotone_survival"));
  }
}

TEST_CASE("input that gives no rate to go on with is planned for within the measured positions, and says so") {
  for (const char* acceptance : {"--acceptance-length 1:1.50,2:2.10", "--acceptance-per-position 0.8,0.8",
                                 "--acceptance-per-position 0.85,0.9"}) {
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
  CHECK(plan["decision"]["gamma"] == 4);
  const std::string text = run_specdec("plan " + options).out;
  CHECK(text.find("Draft 3 tokens per step: 2.08x") == 0);
  CHECK(text.find("Gamma 4 would reach 2.10x if") != std::string::npos);
  const ordered_json points = json_of(options + " --batch 1,2");
  CHECK(points["points"][0]["gamma"] == 3);
  CHECK(points["points"][0]["passed_over_gamma"] == 4);
  CHECK(warns(points, "measured_preferred"));
  CHECK(json_of("--alpha 0.8 --c 0.15 --batch 1,2")["points"][0]["passed_over_gamma"].is_null());
}

TEST_CASE("plain decoding is recommended where what was measured is slower and nothing else surely gains") {
  const std::string typed = "--acceptance-length 1.8 --at 1 --c 0.5 --overhead 0.35";
  for (const char* more : {"", " --rounds 20", " --batch 1", " --batch 1 --rounds 20"}) {
    INFO(more);
    const ordered_json plan = json_of(typed + more);
    CHECK(plan["recommended"] == ordered_json({{"gamma", 0}, {"basis", "not_worth_it"}}));
    CHECK(plan["worth_it"] == false);
    CHECK(plan["points"][0]["gamma"] == 0);
    CHECK(plan["points"][0]["passed_over_gamma"] == 2);
    CHECK(plan["points"][0]["verdict"] == "open");
    CHECK(plan["schedule"][0]["gamma"] == 0);
    const std::string text = run_specdec("plan " + typed + more).out;
    CHECK(text.find("by the estimate no gamma that was measured is") != std::string::npos);
    CHECK(text.find("the best that was measured") == std::string::npos);
  }
  const std::string text = run_specdec("plan " + typed).out;
  CHECK(text.find("up to 5% is given up for plain decoding.") != std::string::npos);
  CHECK(text.find("\n    0   1.000    1.000  1.00 to 1.00       1.000   1.000  recommended\n") != std::string::npos);
  CHECK(run_specdec("plan " + typed + " --max-gamma 3 --min-gain 0.3")
            .out.starts_with("Do not speculate: no gamma that was measured is faster than plain decoding"));
  CHECK(run_specdec("plan " + typed + " --batch 1,2 --max-gamma 3 --min-gain 0.3")
            .out.starts_with(
                "Do not speculate at batch 1 to 2: no gamma that was measured is faster than plain decoding."));
}

TEST_CASE("a recommendation beyond the measured positions says so in its first sentence") {
  for (const char* acceptance : {"--acceptance-length 1:1.84,2:2.51", "--acceptance-length 1.84 --at 1"}) {
    const std::string text = run_specdec(std::string("plan --c 0.02 ") + acceptance).out;
    const std::size_t at = text.find(", extrapolated");
    CHECK(at < text.find("Within"));
  }
}

TEST_CASE("a typed length leaves room beyond its gamma, and rounds give it an interval") {
  const ordered_json plan = json_of("--acceptance-length 2.92 --at 3 --c 0.04");
  const auto interval = [](const ordered_json& of, std::size_t gamma) {
    return of["rows"][gamma]["speedup"]["ci95"].get<std::vector<double>>();
  };
  // At three drafts the rounding of 2.92 alone; at eight what rates do that fall by 30% a draft or rise by 10%.
  CHECK(interval(plan, 3)[1] - interval(plan, 3)[0] == Approx(0.01 / 1.12).epsilon(1e-6));
  CHECK(interval(plan, 8)[1] == Approx(5.711609180131889 / 1.32).epsilon(1e-9));
  CHECK(interval(plan, 8)[0] == Approx(3.04322556099529 / 1.32).epsilon(1e-9));
  CHECK(plan["decision"]["gamma"].get<int>() < 8);
  CHECK(json_of("--alpha 0.8 --c 0.05")["points"][0]["rows"][3]["speedup"]["ci95"].is_null());
  const ordered_json counted = json_of("--acceptance-length 2.92 --at 3 --c 0.04 --rounds 1000");
  CHECK(interval(counted, 3)[0] < interval(plan, 3)[0] - 0.05);
  CHECK(counted["points"][0]["rows"][3]["speedup"]["ci95"][1].get<double>() == Approx(interval(counted, 3)[1]));
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --rounds 100").err ==
        "specdec: error: --rounds is given, but goes with --acceptance-length or --acceptance-per-position only\n");
}

TEST_CASE("lengths rounded to two digits go on, and say that no one rate gives them") {
  const ordered_json plan =
      json_of("--acceptance-length 1:1.84,2:2.50,3:2.95,4:3.28,5:3.55,6:3.78,7:3.91,8:4.06 --c 0.02");
  CHECK_FALSE(warns(plan, "non_monotone_survival"));
  CHECK_FALSE(warns(plan, "not_extrapolated"));
  CHECK(warns(plan, "constant_alpha_falsified"));
  CHECK_FALSE(warns(json_of("--acceptance-length 1:1.80,2:2.44,3:2.95 --c 0.02"), "constant_alpha_falsified"));
}

TEST_CASE("only with rounds does a warning say that formulas in one alpha do not hold") {
  const auto message = [](const ordered_json& plan) {
    for (const ordered_json& warning : plan["warnings"]) {
      if (warning["code"] == "constant_alpha_falsified") return warning["message"].get<std::string>();
    }
    return std::string();
  };
  const std::string falling = "--acceptance-length 1:1.86,2:2.55,3:3.08 --c 0.02";
  CHECK(message(json_of(falling)) ==
        "no one acceptance rate gives the figures typed, whatever their rounding: it would be 0.86 at gamma 1 and "
        "0.828 at gamma 3; whether that is more than their sampling error only --rounds can tell");
  CHECK(message(json_of(falling + " --rounds 1000000")) ==
        "no one acceptance rate gives the figures typed, whatever their rounding and sampling: it would be 0.86 at "
        "gamma 1 and 0.828 at gamma 3; formulas in one alpha do not hold for this draft");
  CHECK(message(json_of(falling + " --rounds 100")).empty());
}

TEST_CASE("a rate published with lenience warns that the text is not the target's own") {
  CHECK(warns(json_of("--published lm1b-gpt-6m-t1 --c 0.05"), "text_not_from_target") == false);
  const ordered_json published = ordered_json::parse(run_specdec("list published --format json").out)["published"];
  int lenient = 0;
  for (const ordered_json& one : published) {
    const bool is_lenient = one["lenience"].get<double>() < 1;
    lenient += is_lenient ? 1 : 0;
    const std::string name = one["name"];
    INFO(name);
    CHECK(warns(json_of("--published " + name + " --c 0.05"), "text_not_from_target") == is_lenient);
    CHECK(warns(json_of("--published " + name + " --c 0.05 --batch 1"), "text_not_from_target") == is_lenient);
  }
  CHECK(lenient > 0);
}

TEST_CASE("ranges of typed figures say that they hold no sampling error until --rounds tells it") {
  const std::string typed = "--acceptance-length 3:2.92,5:3.6 --c 0.05";
  for (const std::string& options :
       {typed, std::string("--acceptance-per-position 0.8,0.6 --c 0.05"), typed + " --batch 1"}) {
    CHECK(warns(json_of(options), "no_sampling_error"));
    std::string first = run_specdec("plan " + options).out.substr(0, 200);
    std::replace(first.begin(), first.end(), '\n', ' ');
    CHECK(first.find(" without sampling error") != std::string::npos);
    CHECK(first.find("--rounds adds") != std::string::npos);
    const std::string sampled = options + " --rounds 500";
    CHECK_FALSE(warns(json_of(sampled), "no_sampling_error"));
    CHECK(run_specdec("plan " + sampled).out.find("sampling error, which") == std::string::npos);
  }
  CHECK_FALSE(warns(json_of("--alpha 0.8 --c 0.05"), "no_sampling_error"));
}

TEST_CASE("a single rate is said to be taken as exact at every depth, an interval or typed figures are not") {
  for (const char* options : {"--alpha 0.8 --c 0.05", "--rejection 0.2 --c 0.05", "--alpha 0.8 --c 0.05 --batch 1,8"}) {
    CHECK(warns(json_of(options), "rate_taken_as_exact"));
  }
  for (const char* options : {"--alpha 0.7:0.8 --c 0.05", "--acceptance-length 2.92 --at 3 --c 0.05",
                              "--published lm1b-gpt-6m-t1 --c 0.05"}) {
    CHECK_FALSE(warns(json_of(options), "rate_taken_as_exact"));
  }
}

TEST_CASE("assumptions are printed without the digits of arithmetic") {
  CHECK(run_specdec("plan --alpha 0.66:0.7 --c 0.05").out.find("interval 0.68 (default)") != std::string::npos);
}

TEST_CASE("gammas below the shortest draft that was measured are marked, and taken where they are the fastest") {
  const ordered_json plan = json_of("--acceptance-length 2.5 --at 5 --c 0.2");
  CHECK(warns(plan, "extrapolated_below"));
  for (const ordered_json& row : plan["points"][0]["rows"]) {
    const std::int64_t gamma = row["gamma"];
    CHECK(row["extrapolated"] == (gamma != 0 && gamma != 5));
  }
  CHECK(plan["decision"]["gamma"] == 2);
  const std::string out = run_specdec("plan --acceptance-length 2.5 --at 5 --c 0.2").out;
  CHECK(out.find("extrapolated below") != std::string::npos);
  // In the closed form as at its point, also where the longer one gains too little.
  for (const char* const slow :
       {"1.6 --at 2 --c 0.32", "1.5 --at 2 --c 0.22", "2.6 --at 5 --c 0.185 --min-gain 0.36"}) {
    INFO(slow);
    const ordered_json shorter = json_of(std::string("--acceptance-length ") + slow);
    CHECK(shorter["decision"]["gamma"] == shorter["decision"]["gamma"]);
    CHECK(shorter["decision"]["gamma"] == shorter["points"][0]["gamma"]);
    CHECK(shorter["points"][0]["verdict"] == "sure");
  }
  CHECK_FALSE(warns(json_of("--acceptance-length 1:1.7,5:2.5 --c 0.2"), "extrapolated_below"));
}

TEST_CASE("lengths that contradict each other widen the ranges by how far they are missed") {
  const ordered_json plan = json_of("--acceptance-length 3:2.9,5:2.95,7:4.1 --c 0.05");
  CHECK(warns(plan, "non_monotone_survival"));
  for (const auto& [gamma, length] : {std::pair(3, 2.9), std::pair(5, 2.95), std::pair(7, 4.1)}) {
    const ordered_json& row = plan["points"][0]["rows"][static_cast<std::size_t>(gamma)];
    const double speedup = length / (1 + 0.05 * gamma);
    CHECK(row["speedup"]["ci95"][0].get<double>() <= speedup);
    CHECK(row["speedup"]["ci95"][1].get<double>() >= speedup);
  }
}

TEST_CASE("the ratio beyond typed figures is no user's, and says whether they or published drafts tell it") {
  const auto named = [](const std::string& options, const std::string& end) {
    const ordered_json plan = json_of(options);
    for (const ordered_json& assumption : plan["assumptions"]) {
      const auto name = assumption["name"].get<std::string>();
      if (name.rfind("rate of a draft beyond gamma 3", 0) != 0) continue;
      return assumption["source"] == "default" && name.size() >= end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    }
    return false;
  };
  CHECK(named("--acceptance-length 1:1.84,2:2.51,3:3.01 --c 0.1", ", as the figures fall"));
  CHECK(named("--acceptance-length 2.92 --at 3 --c 0.1", ", the median of published drafts"));
}

TEST_CASE("an interval is never answered with 0 tokens to draft, and around break-even it is warned of") {
  const ordered_json plan = json_of("--alpha 0:0.4 --c 0.25");
  CHECK(plan["worth_it"] == true);
  CHECK(warns(plan, "break_even_inside_interval"));
  CHECK_FALSE(warns(plan, "not_worth_it"));
  // As of a point: the interval does not tell.
  CHECK(run_specdec("plan --alpha 0:0.4 --c 0.25").out.rfind("Cannot tell: ", 0) == 0);
  CHECK(run_specdec("plan --alpha 0:1 --c 0").out.find("would reach 2.00x, at the middle") != std::string::npos);
}

TEST_CASE("both ends of an interval are printed in the same form, with digits that tell them apart") {
  CHECK(run_specdec("plan --rejection 1e-13:2e-13 --c 0.05").out.find("1 - alpha 1e-13 to 2e-13") != std::string::npos);
  std::string wide = run_specdec("plan --alpha 0.1:0.999999 --c 0.05").out;
  std::replace(wide.begin(), wide.end(), '\n', ' ');
  CHECK(wide.find("1 - alpha 1e-06 to 0.9") != std::string::npos);
}

TEST_CASE("an interval of rejections keeps its digits") {
  CHECK(json_of("--rejection 1e-17:2e-17 --c 0.05")["rejection"].get<double>() == Approx(1.5e-17).epsilon(1e-14));
  CHECK(json_of("--rejection 1e-17:2e-17 --c 0.05")["decision"]["gamma"].is_number());
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
}

TEST_CASE(
    "a position that is accepted more often than one before it is refused by its place, where rounding allows none") {
  check_run_refused(
      "plan --acceptance-per-position 0.80,0.50,0.60 --c 0.02",
      "--acceptance-per-position: position 3 is 0.6, but must be at most 0.5, that of position 2: a draft is "
      "looked at only where all before it were accepted (--conditional says that the rates are of those "
      "alone)");
  CHECK(json_of("--acceptance-per-position 0.80,0.50,0.60 --conditional --c 0.02")["worth_it"] == true);
  CHECK(json_of("--acceptance-per-position 0.80,0.505,0.51 --c 0.02")["worth_it"] == true);
}

TEST_CASE("rates of equally many digits that rise come from no falling ones, however few the digits") {
  for (const char* rates : {"0.5,0.6", "0.50,0.51", "0.7,0.5,0.6", "0.5,0.55,0.6"}) {
    const Run run = run_specdec(std::string("plan --c 0.02 --acceptance-per-position ") + rates);
    INFO(rates << " " << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("--conditional says that the rates are of those alone") != std::string::npos);
  }
  // 0.55 may be 0.554, and 0.6 anything from 0.55 on.
  CHECK(json_of("--acceptance-per-position 0.55,0.6 --c 0.02")["worth_it"] == true);
  CHECK(json_of("--acceptance-per-position 0.6,0.6 --c 0.02")["worth_it"] == true);
}

TEST_CASE("equal rates by position are asked whether they are conditional ones") {
  const auto message_of = [](const char* options) {
    const ordered_json plan = json_of(std::string(options) + " --c 0.02");
    for (const auto& warning : plan["warnings"])
      if (warning["code"] == "constant_alpha_falsified") return warning["message"].get<std::string>();
    return std::string();
  };
  const std::string hint = "--conditional if each rate is given that the one before was accepted";
  CHECK(message_of("--acceptance-per-position 0.6,0.6,0.6").find(hint) != std::string::npos);
  CHECK_FALSE(message_of("--acceptance-per-position 0.90,0.50,0.10").empty());
  CHECK(message_of("--acceptance-per-position 0.90,0.50,0.10").find(hint) == std::string::npos);
  CHECK(message_of("--acceptance-per-position 0.6,1.0,1.0 --conditional").find(hint) == std::string::npos);
}

TEST_CASE("a target that scores several tokens in less time than one is doubted by name") {
  for (const char* factor : {"0.9", "2:1,4:0.95"}) {
    for (const char* form : {"", " --batch 1,2"}) {
      const std::string options = std::string("--alpha 0.8 --c 0.1 --verify-factor ");
      CHECK(warns(json_of(options + factor + form), "verify_factor_below_1"));
      CHECK_FALSE(warns(json_of(options + "2:1,4:1.02" + form), "verify_factor_below_1"));
    }
  }
}

TEST_CASE("what has no answer is null, with a warning that says why") {
  const ordered_json free_draft = json_of("--alpha 0.8 --c 0");
  CHECK(free_draft["decision"]["gamma"].is_null());
  CHECK(free_draft["limit"]["speedup"].get<double>() == Approx(5.0));
  CHECK(warns(free_draft, "no_finite_optimum"));
  CHECK(warns(free_draft, "near_optimal_list_cut"));
  CHECK(free_draft["near_optimal_ranges"] == ordered_json::parse("[[20, null]]"));
  CHECK(warns(json_of("--alpha 0.05 --c 0.1"), "not_worth_it"));
  CHECK(warns(json_of("--alpha 0.5 --c 2"), "no_break_even"));
  CHECK(warns(json_of("--alpha 1 --c 0"), "oracle_unbounded"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --overhead 0.1"), "no_oracle"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --overhead 0.1"), "no_gamma_real"));
  // Where --max-gamma binds, the real-valued optimum would be that of another gamma than the one beside it.
  const ordered_json bound = json_of("--alpha 0.9 --c 0.001 --max-gamma 24");
  CHECK(bound["decision"]["gamma"] == 24);
  CHECK(bound["optimal"]["gamma_real"].is_null());
  CHECK(warns(bound, "no_gamma_real"));
  const ordered_json free = json_of("--alpha 0.9 --c 0.001 --max-gamma 200");
  CHECK(std::abs(free["optimal"]["gamma_real"].get<double>() - free["decision"]["gamma"].get<double>()) < 1);
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --max-gamma 4"), "max_gamma_binds"));
  CHECK(warns(json_of("--alpha 0.5:0.9999999 --c 1e-7"), "optimal_gammas_cut"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --tokens 1000000 --gamma 30"), "finite_not_computed"));
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --verify-factor 2:1.1,4:1.2"), "verify_factor_extrapolated"));
  const ordered_json huge = json_of("--rejection 1e-300 --c 1e-300");
  CHECK(huge["decision"]["gamma"].is_null());
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
  CHECK(ordered_json::parse(content_of(file))["schema"] == "specdec.plan/2");
}

TEST_CASE("a published rate plans as its interval does, names its source, and is a draft to choose among") {
  const ordered_json named = json_of("--published ENDE_t5-small-t0 --c 0.02");
  // 0.75 +- (0.005 + 1.96 sqrt(0.75 0.25 / 10000))
  const ordered_json stated = json_of("--alpha 0.736513:0.763487 --c 0.02");
  CHECK(named["inputs"]["published"] == "ENDE_t5-small-t0");
  CHECK(named["decision"]["gamma"] == stated["decision"]["gamma"]);
  CHECK(named["decision"]["speedup"]["value"].get<double>() == Approx(stated["decision"]["speedup"]["value"].get<double>()).epsilon(1e-5));
  CHECK(named["near_optimal_gammas"] == stated["near_optimal_gammas"]);
  CHECK_THAT(named["assumptions"][1]["value"].get<std::string>(),
             Catch::Contains("0.75 (Table 3") && Catch::Contains("https://arxiv.org/abs/2211.17192"));
  CHECK_THAT(run_specdec("plan --published ende-t5-small-t0 --c 0.02 --batch 1").out,
             Catch::Contains("alpha 0.75 (Table 3"));
  CHECK_THAT(json_of("--published ende-t5-small-t1-l0.5 --c 0.02")["assumptions"][1]["value"].get<std::string>(),
             Catch::Contains("0.71 at lenience 0.5, at which the text is not the target's own (Table 5"));
  const ordered_json chosen = json_of(
      "--draft small:published=ende-t5-small-t1,c=0.02 --draft large:published=ende-t5-large-t1,c=0.11 --batch 1");
  REQUIRE(chosen["drafts"].size() == 2);
  CHECK(chosen["drafts"][0]["acceptance"]["alpha"] == 0.62);
  CHECK(chosen["drafts"][0]["acceptance"]["rule"].is_null());
}

TEST_CASE("a rate published at temperature 0 is that of greedy decoding unless --acceptance says otherwise") {
  const std::string question = "--c 0.02 --batch 1 --published ";
  const ordered_json plan = json_of(question + "ende-t5-small-t0");
  CHECK(plan["drafts"][0]["acceptance"]["rule"] == "greedy");
  CHECK(plan["assumptions"].back()["value"] == "greedy");
  CHECK(plan["assumptions"].back()["source"] == "preset");
  CHECK(json_of(question + "ende-t5-small-t1")["drafts"][0]["acceptance"]["rule"].is_null());
  const ordered_json stated = json_of(question + "ende-t5-small-t0 --acceptance rejection");
  CHECK(stated["drafts"][0]["acceptance"]["rule"] == "rejection");
}

TEST_CASE("what the closed forms say first is the verdict of the same question at batch 1") {
  const auto word_of = [](const std::string& verdict) {
    return verdict == "sure" ? "Draft " : verdict == "open" ? "Cannot tell: " : "Do not speculate: ";
  };
  for (const char* options :
       {"--alpha 0.5 --c 0.45", "--alpha 0.8 --c 0.05", "--alpha 0.05 --c 0.1",
        "--acceptance-length 1.0 --at 3 --c 0.02 --rounds 50", "--acceptance-length 1.15 --at 3 --c 0.03 --rounds 50",
        "--alpha 0.1:0.6 --c 0.3", "--alpha 0.5 --c 0.45 --min-gain 0.01", "--alpha 0.03 --c 0"}) {
    INFO(options);
    const std::string verdict = json_of(std::string(options) + " --batch 1")["points"][0]["verdict"];
    CHECK(json_of(options)["points"][0]["verdict"] == verdict);
    CHECK(run_specdec(std::string("plan ") + options).out.rfind(word_of(verdict), 0) == 0);
  }
}

TEST_CASE("an option's own default changes no answer of the closed forms") {
  const auto first_line = [](const std::string& options) {
    const std::string text = run_specdec("plan " + options).out;
    return text.substr(0, text.find("\n\n"));
  };
  const std::string weak = "--alpha 0.5 --c 0.45";
  CHECK(first_line(weak) == first_line(weak + " --min-gain 0.05"));
  CHECK(first_line(weak).rfind("Do not speculate: the best gamma, 1, gives 1.03x, less than the 1.05x that --min-gain "
                               "asks for\n(alpha 0.5, c 0.45).",
                               0) == 0);
  CHECK(first_line(weak + " --min-gain 0.03").rfind("Draft 1 token per step: 1.03x", 0) == 0);
  const std::string none = run_specdec("plan --acceptance-length 1.0 --at 3 --c 0.02 --rounds 50").out;
  CHECK(none.rfind("Cannot tell: by the estimate no gamma is faster than plain decoding, but gamma 2 may give", 0) ==
        0);
  CHECK(none.find("(not_worth_it): by the estimate alone no gamma") != std::string::npos);
}

TEST_CASE("the range of a figure at the bound of its lengths holds what rounds to it") {
  // 3.95, 3.995 and so on to 4 tokens in a step that takes 1.06 plain steps.
  for (const auto& [typed, lowest] :
       {std::pair("--acceptance-length 4.0 --at 3", 3.95), std::pair("--acceptance-length 4.00 --at 3", 3.995),
        std::pair("--acceptance-length 1:2.0,3:4.0", 3.95), std::pair("--acceptance-per-position 1.0,1.0,1.0", 3.85)}) {
    INFO(typed);
    const ordered_json range = json_of(std::string(typed) + " --c 0.02")["points"][0]["rows"][3]["speedup"]["ci95"];
    CHECK(range[0].get<double>() == Approx(lowest / 1.06).epsilon(1e-9));
    CHECK(range[1].get<double>() == Approx(4 / 1.06).epsilon(1e-9));
  }
  const ordered_json none = json_of("--acceptance-length 1.0 --at 3 --c 0.02")["points"][0]["rows"][3]["speedup"]["ci95"];
  CHECK(none[1].get<double>() == Approx(1.05 / 1.06).epsilon(1e-9));
}

TEST_CASE("the sentence on what lies beyond the measurements says which was measured") {
  const std::string table = run_specdec("plan --alpha 0.8 --c 0.05 --max-gamma 6 --verify-factor 1:1,2:1.02,5:1.1").out;
  CHECK(table.find("the best within the\nverify factors given") != std::string::npos);
  CHECK(table.find("if the verify factor goes on as before") != std::string::npos);
  CHECK(table.find("acceptance goes on") == std::string::npos);
  const std::string lengths = run_specdec("plan --acceptance-length 1:1.84,2:2.51,3:3.01 --c 0.15").out;
  CHECK(lengths.find("if acceptance goes on as before") != std::string::npos);
}

TEST_CASE("what an interval loses under --max-gamma is against the gammas above it, too, and says so") {
  std::string text = run_specdec("plan --alpha 0.7:0.8 --c 0.05 --max-gamma 4 --gamma 2").out;
  std::replace(text.begin(), text.end(), '\n', ' ');
  CHECK(text.find("loses at most 9.4% to the gamma that is best there, also above --max-gamma;") != std::string::npos);
  CHECK(text.find("In the interval it loses at most 28%") != std::string::npos);
  CHECK(text.find("28%  in use") != std::string::npos);
}

TEST_CASE("a rate that is nothing but rounding is no threshold, and one best gamma of an interval loses nothing") {
  const std::string cheap = run_specdec("plan --alpha 0.8 --c 0.1 --verify-factor 2:0.9,5:1.1").out;
  CHECK(cheap.find("Any gain needs alpha above 0.\n") != std::string::npos);
  std::string narrow = run_specdec("plan --alpha 0.3:0.31 --c 0.2").out;
  std::replace(narrow.begin(), narrow.end(), '\n', ' ');
  CHECK(narrow.find("Wherever alpha lies in the interval, this is the best; the speedup is that at the middle.") !=
        std::string::npos);
}
