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

TEST_CASE("the JSON output starts with the envelope and the decision") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05");
  std::vector<std::string> keys;
  for (const auto& [key, value] : plan.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"schema", "version", "decision", "inputs", "assumptions", "warnings",
                                         "assumed_verification", "points", "closed_form", "drafts",
                                         "recommended_draft", "schedule", "crossover_batch", "config", "bench", "runs",
                                         "backtest"});
  CHECK(plan["schema"] == "specdec.plan/2");
  CHECK(plan["inputs"]["gamma"].is_null());
  CHECK(plan["decision"]["gamma"] == 8);
  CHECK(plan["points"][0]["deployed"].is_null());
}

TEST_CASE("the text begins with what to draft and what it gains") {
  const Run run = run_specdec("plan --alpha 0.8 --c 0.05");
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("Draft 8 tokens: about 3.09x plain decoding.\nSure to gain 5%."));
  CHECK(run.out.find("\n           8         4.33  3.09           recommended\n") != std::string::npos);
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
  const std::string header = run.out.substr(0, run.out.find('\n'));
  CHECK(header.starts_with("batch,context,gamma,tokens_per_step_value,"));
  CHECK(header.ends_with(",operations_factor,memory_access_factor,finite_speedup"));
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 3);
  CHECK(run.out.find("\n1.0,0.0,1,1.5,") != std::string::npos);
  CHECK(run.err.empty());
}

TEST_CASE("a regret above --max-regret exits with 1 and says so, one below does not") {
  const Run alarm = run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.16");
  CHECK(alarm.exit_code == 1);
  CHECK(alarm.out.find("gamma 3 is up to 0.1698 behind") != std::string::npos);
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --gamma 3 --max-regret 0.17").exit_code == 0);
}

TEST_CASE("an interval of rates gives every gamma the range of its speedup") {
  const ordered_json plan = json_of("--alpha 0.6:0.9 --c 0.05");
  const auto speedup = [](double alpha, double gamma) {
    return (1 - std::pow(alpha, gamma + 1)) / (1 - alpha) / (0.05 * gamma + 1);
  };
  for (const ordered_json& row : plan["points"][0]["rows"]) {
    if (row["gamma"] == 0) continue;
    CHECK(row["speedup"]["bounds"][0].get<double>() == Approx(speedup(0.6, row["gamma"])));
    CHECK(row["speedup"]["bounds"][1].get<double>() == Approx(speedup(0.9, row["gamma"])));
  }
  CHECK(run_specdec("plan --alpha 0.6:0.9 --c 0.05").out.find("(1.77 to 4.38)  recommended") != std::string::npos);
}

TEST_CASE("the other of alpha and its rejection has the decimals of what was typed") {
  CHECK(json_of("--alpha 0.68 --c 0.02")["closed_form"]["rejection"] == 0.32);
  CHECK(json_of("--rejection 0.32 --c 0.02")["closed_form"]["alpha"] == 0.68);
  CHECK(json_of("--rejection 0.32 --c 0.02 --batch 1")["closed_form"]["rejection"] == 0.32);
  CHECK(json_of("--rejection 1e-12 --c 0.02")["closed_form"]["rejection"] == 1e-12);
}

TEST_CASE("the option --max-regret never complains of what the same answer recommends") {
  for (const std::string acceptance :
       {"--alpha 0.75", "--alpha 0.7:0.8", "--alpha 0.6:0.9", "--alpha 0.2:0.9", "--acceptance-length 3.0 --at 4",
        "--acceptance-per-position 0.8,0.63,0.49", "--alpha 0.3 --min-gain 0.5"}) {
    CAPTURE(acceptance);
    const std::string question = "plan --c 0.05 " + acceptance + " --format json";
    const std::string gamma = ordered_json::parse(run_specdec(question).out)["decision"]["gamma"].dump();
    const Run run = run_specdec(question + " --max-regret 0 --gamma " + gamma);
    CHECK(run.exit_code == 0);
    CHECK(ordered_json::parse(run.out)["points"][0]["deployed"]["behind_recommended"] == 0);
  }
}

TEST_CASE("the option --rejection keeps digits that --alpha has lost") {
  CHECK(json_of("--rejection 1e-12 --c 0.1")["closed_form"]["rejection"] == 1e-12);
  CHECK(json_of("--alpha 0.999999999999 --c 0.1")["closed_form"]["rejection"] != 1e-12);
}

TEST_CASE("a closed form is that of one rate, and lengths have none") {
  CHECK(json_of("--alpha 0.8 --c 0.05")["closed_form"]["alpha"] == 0.8);
  CHECK(json_of("--acceptance-length 3.68928 --at 5 --c 0.05")["closed_form"].is_null());
}

TEST_CASE("lengths and rates per position are met within their rounding and marked beyond the last one") {
  for (const char* acceptance : {"--acceptance-length 1:1.800,2:2.400,3:2.800", "--acceptance-per-position .800,.600,.400",
                                 "--acceptance-per-position 0.8000,0.7500,0.6667 --conditional"}) {
    INFO(acceptance);
    const ordered_json plan = json_of(std::string(acceptance) + " --c 0.02");
    const ordered_json& rows = plan["points"][0]["rows"];
    // Rounds of one draft weigh easy requests more than those of three.
    CHECK(rows[1]["tokens_per_step"]["value"].get<double>() == Approx(1.8).epsilon(0.015));
    CHECK(rows[2]["tokens_per_step"]["value"].get<double>() == Approx(2.4).epsilon(0.01));
    CHECK(rows[3]["tokens_per_step"]["value"].get<double>() == Approx(2.8).margin(1e-3));
    // A rate that stays at the last, 2/3, is within the range.
    CHECK(rows[4]["tokens_per_step"]["ci95"][0].get<double>() < 2.8 + 0.4 * 2 / 3);
    CHECK(rows[4]["tokens_per_step"]["ci95"][1].get<double>() > 2.8 + 0.4 * 2 / 3);
    CHECK(rows[3]["extrapolated"] == false);
    CHECK(rows[4]["extrapolated"] == true);
    CHECK_FALSE(warns(plan, "non_monotone_survival"));
  }
}

TEST_CASE("drafts longer than typed are judged by the population, also where the figures rise") {
  for (const char* acceptance : {"--acceptance-length 1:1.50,2:2.10", "--acceptance-per-position 0.8,0.8",
                                 "--acceptance-per-position 0.85,0.9"}) {
    INFO(acceptance);
    const ordered_json plan = json_of(std::string(acceptance) + " --c 0.05");
    CHECK(plan["decision"]["gamma"] > 2);
    CHECK(plan["points"][0]["rows"][3]["extrapolated"] == true);
  }
}

TEST_CASE("plain decoding is recommended where it loses least, and the run that would tell is named") {
  const std::string typed = "--acceptance-length 1.8 --at 1 --c 0.5 --overhead 0.35";
  for (const char* more : {"", " --rounds 20", " --batch 1 --rounds 20"}) {
    INFO(more);
    const ordered_json plan = json_of(typed + more);
    CHECK(plan["decision"]["gamma"] == 0);
    CHECK(plan["points"][0]["verdict"] != "sure");
    CHECK(plan["decision"]["schedule"][0]["gamma"] == 0);
    CHECK(plan["decision"]["next"].is_string());
    CHECK(run_specdec("plan " + typed + more).out.starts_with("Do not draft"));
  }
}

TEST_CASE("a typed length leaves room beyond its gamma, and rounds give it an interval") {
  const auto width = [](const ordered_json& of, std::size_t gamma) {
    const ordered_json& interval = of["points"][0]["rows"][gamma]["speedup"]["ci95"];
    return interval[1].get<double>() - interval[0].get<double>();
  };
  const ordered_json plan = json_of("--acceptance-length 2.92 --at 3 --c 0.04");
  // At three drafts the rounding of 2.92 alone.
  CHECK(width(plan, 3) < 0.012 / 1.12);
  CHECK(width(plan, 3) > 0.008 / 1.12);
  CHECK(width(plan, 8) > 10 * width(plan, 3));
  CHECK(json_of("--alpha 0.8 --c 0.05")["points"][0]["rows"][3]["speedup"]["ci95"].is_null());
  const double few = width(json_of("--acceptance-length 2.92 --at 3 --c 0.04 --rounds 100"), 3);
  const double many = width(json_of("--acceptance-length 2.92 --at 3 --c 0.04 --rounds 10000"), 3);
  CHECK(few > 5 * many);
  CHECK(many > width(plan, 3));
  check_run_refused("plan --alpha 0.8 --c 0.05 --rounds 100",
                    "--rounds is given, but goes with --acceptance-length, --acceptance-rate or "
                    "--acceptance-per-position only");
}

TEST_CASE("lengths rounded to two digits go on") {
  const ordered_json plan =
      json_of("--acceptance-length 1:1.84,2:2.50,3:2.95,4:3.28,5:3.55,6:3.78,7:3.91,8:4.06 --c 0.02");
  CHECK_FALSE(warns(plan, "non_monotone_survival"));
  CHECK_FALSE(warns(plan, "not_extrapolated"));
  CHECK(json_of("--acceptance-per-position 0.80,0.505,0.51 --c 0.02")["decision"]["gamma"] > 0);
}

TEST_CASE("rates of equally many digits that rise come from no falling ones, however few the digits") {
  for (const char* rates : {"0.5,0.6", "0.50,0.51", "0.7,0.5,0.6", "0.5,0.55,0.6"}) {
    const Run run = run_specdec(std::string("plan --c 0.02 --acceptance-per-position ") + rates);
    INFO(rates << " " << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("--conditional says that the rates are of those alone") != std::string::npos);
  }
  // 0.55 may be 0.554, and 0.6 anything from 0.55 on.
  CHECK(json_of("--acceptance-per-position 0.55,0.6 --c 0.02")["decision"]["gamma"] > 0);
  CHECK(json_of("--acceptance-per-position 0.6,0.6 --c 0.02")["decision"]["gamma"] > 0);
}

TEST_CASE("equal rates by position are asked whether they are conditional ones") {
  const auto asks = [](const char* rates) {
    return warns(json_of(std::string("--acceptance-per-position ") + rates + " --c 0.02"), "equal_positions");
  };
  CHECK(asks("0.6,0.6,0.6"));
  CHECK_FALSE(asks("0.90,0.50,0.10"));
  CHECK_FALSE(asks("0.6,1.0,1.0 --conditional"));
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
  CHECK(free_draft["closed_form"]["best_gamma"].is_null());
  CHECK(free_draft["closed_form"]["best_speedup"].get<double>() == Approx(5.0));
  CHECK(warns(free_draft, "no_finite_optimum"));
  CHECK(json_of("--alpha 0.5 --c 2")["closed_form"]["break_even_alpha"].is_null());
  CHECK(json_of("--alpha 1 --c 0")["closed_form"]["oracle_speedup"].is_null());
  CHECK(json_of("--alpha 0.8 --c 0.05 --overhead 0.1")["closed_form"]["oracle_speedup"].is_null());
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --overhead 0.1"), "no_gamma_real"));
  const ordered_json bound = json_of("--alpha 0.9 --c 0.001 --max-gamma 24");
  CHECK(bound["decision"]["gamma"] == 24);
  CHECK(warns(bound, "optimum_at_limit"));
  const ordered_json wide = json_of("--alpha 0.9 --c 0.001 --max-gamma 200");
  CHECK(std::abs(wide["closed_form"]["gamma_real"].get<double>() - wide["decision"]["gamma"].get<double>()) < 1);
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --tokens 1000000 --gamma 30"), "finite_not_computed"));
  CHECK(json_of("--rejection 1e-300 --c 1e-300")["closed_form"]["best_gamma"].is_null());
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
  CHECK(plan["points"][0]["deployed"]["gamma"] == 5);
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
  const std::string source = named["assumptions"][2]["value"];
  CHECK_THAT(source, Catch::Contains("0.75 (Table 3") && Catch::Contains("https://arxiv.org/abs/2211.17192"));
  CHECK_THAT(json_of("--published ende-t5-small-t1-l0.5 --c 0.02")["assumptions"][2]["value"].get<std::string>(),
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

TEST_CASE("a gain below --min-gain is not worth a draft, and its default may be typed") {
  const std::string weak = "plan --alpha 0.5 --c 0.45";
  CHECK(run_specdec(weak).out == run_specdec(weak + " --min-gain 0.05").out);
  CHECK(run_specdec(weak).out.starts_with(
      "Do not draft: the gain is too small.\nWith 1 token: sure not to gain 5%, 1.03x."));
  CHECK(run_specdec(weak + " --min-gain 0.03").out.starts_with("Draft 1 token: about 1.03x"));
}

TEST_CASE("the range of a figure at the bound of its lengths holds what rounds to it") {
  // 3.95, 3.995 and so on to 4 tokens in a step that takes 1.06 plain steps; 95% of that leaves out a fortieth each.
  for (const auto& [typed, lowest] :
       {std::pair("--acceptance-length 4.0 --at 3", 3.93), std::pair("--acceptance-length 4.00 --at 3", 3.99),
        std::pair("--acceptance-length 1:2.0,3:4.0", 3.93), std::pair("--acceptance-per-position 1.0,1.0,1.0", 3.85)}) {
    INFO(typed);
    const ordered_json range = json_of(std::string(typed) + " --c 0.02")["points"][0]["rows"][3]["speedup"]["ci95"];
    CHECK(range[0].get<double>() >= lowest / 1.06);
    CHECK(range[0].get<double>() < 3.995 / 1.06);
    CHECK(range[1].get<double>() == Approx(4 / 1.06).epsilon(1e-3));
    CHECK(range[1].get<double>() <= 4 / 1.06);
  }
}

