#include "planner/checkup/checkup.hpp"

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/checkup/count_checks.hpp"
#include "planner/checkup/finding.hpp"
#include "planner/checkup/run_checks.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using planner::check_up;
using planner::Checkup;
using planner::CheckupQuestion;
using planner::Finding;
using planner::Severity;
using planner::Suspicions;

namespace {

namespace fs = std::filesystem;

const std::string samples = tests::source_dir() + "/traces/samples/";

std::string content_of(const std::string& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

/// A folder of changed files, removed at its end.
class Faults {
 public:
  Faults() {
    std::string name = (fs::temp_directory_path() / "specdec-checkup-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Faults() { fs::remove_all(folder_); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  std::string written(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  /// The sample with every match of `pattern` replaced; there must be one.
  std::string changed(const std::string& sample, const std::string& pattern, const std::string& by) const {
    const std::string content = content_of(samples + sample);
    const std::string result = std::regex_replace(content, std::regex(pattern), by);
    REQUIRE(result != content);
    return written(fs::path(sample).filename().string(), result);
  }

 private:
  fs::path folder_;
};

Checkup checked(std::vector<std::string> files) {
  CheckupQuestion question;
  question.files = std::move(files);
  return check_up(question);
}

bool finds(const std::vector<Finding>& findings, const std::string& code) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.code == code; });
}

std::int64_t alarms(const std::vector<Finding>& findings) {
  return std::count_if(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.severity != Severity::note; });
}

/// Drafts of a simulated server.
struct Drafts {
  double lowest = 0.5, highest = 0.9;
  std::int64_t gamma = 5;
  /// Factors of the acceptance of the first draft, and of those behind `trained_for`.
  double first = 1, beyond = 1;
  std::int64_t trained_for = 5;
};

/// Requests whose rates of acceptance differ evenly, each counted by position.
estimate::ServingSummary simulated(const Drafts& drafts, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  estimate::ServingSummaries summaries;
  for (int request = 0; request < 40; ++request) {
    const double alpha = drafts.lowest + (drafts.highest - drafts.lowest) * uniform(random);
    traces::ServingCounts counts;
    counts.unit = traces::CountUnit::request;
    counts.file = "simulated";
    counts.shape = traces::DraftShape::chain;
    counts.gamma = drafts.gamma;
    const int rounds = 20 + static_cast<int>(100 * uniform(random));
    counts.rounds_by_accepted.assign(static_cast<std::size_t>(drafts.gamma) + 1, 0);
    double accepted = 0;
    for (int round = 0; round < rounds; ++round) {
      std::int64_t taken = 0;
      while (taken < drafts.gamma) {
        double rate = alpha;
        if (taken == 0) rate *= drafts.first;
        if (taken >= drafts.trained_for) rate *= drafts.beyond;
        if (uniform(random) >= rate) break;
        ++taken;
      }
      ++counts.rounds_by_accepted[static_cast<std::size_t>(taken)];
      accepted += static_cast<double>(taken);
    }
    counts.rounds = rounds;
    counts.accepted = accepted;
    counts.drafted = static_cast<double>(rounds * drafts.gamma);
    summaries.add(counts);
  }
  return summaries.summaries().at(0);
}

std::vector<Finding> findings_of(const Drafts& drafts, std::uint64_t seed) {
  Suspicions suspicions(planner::checkup_false_alarm_rate);
  planner::check_acceptance(simulated(drafts, seed), suspicions);
  return suspicions.findings();
}

}  // namespace

TEST_CASE("two hundred simulated servers without faults raise less than five alarms") {
  // Each of 200 runs raises one with probability 0.01 at most, so that 5 or more come once in 19 tests of worst cases;
  // the margins of the tests make it far rarer.
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::int64_t raised = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Drafts drafts;
    drafts.lowest = 0.2 + 0.5 * uniform(random);
    drafts.highest = std::min(0.98, drafts.lowest + 0.4 * uniform(random));
    drafts.gamma = drafts.trained_for = 1 + static_cast<std::int64_t>(seed % 7);
    raised += alarms(findings_of(drafts, seed));
  }
  CHECK(raised < 5);
}

TEST_CASE("the faults of simulated servers are found, which the faultless ones do not have") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(finds(findings_of({.first = 0}, seed), "draft_never_accepted"));
    CHECK(finds(findings_of({.lowest = 0.01, .highest = 0.03}, seed), "draft_hardly_accepted"));
    CHECK(finds(findings_of({.first = 0.4}, seed), "first_position_below_second"));
    CHECK(finds(findings_of({.beyond = 0.2, .trained_for = 2}, seed), "drop_behind_position"));
  }
}

TEST_CASE("a test counts all looks, and one that does not would find something in files without faults") {
  // Uniform p-values are those of tests where nothing is wrong: 400 runs of 20 tests each. A run finds something with
  // probability at most 0.01, 4 times in 400: 17 or more come less than once in 10^6.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  int with_findings = 0, without_correction = 0;
  for (int run = 0; run < 400; ++run) {
    Suspicions suspicions(0.01);
    bool any = false;
    for (int look = 0; look < 20; ++look) {
      const double p = uniform(random);
      any = any || p < 0.01;
      suspicions.test(p, {"chance"});
    }
    CHECK(suspicions.tests() == 20);
    with_findings += suspicions.findings().empty() ? 0 : 1;
    without_correction += any ? 1 : 0;
  }
  CHECK(with_findings < 17);
  CHECK(without_correction >= 17);
  CHECK_THROWS_AS(Suspicions(0.01).test(NAN, {}), std::domain_error);
}

TEST_CASE("errors come first, and a tested finding says its probability with all looks") {
  Suspicions suspicions(0.01);
  suspicions.add({"known", Severity::warning});
  suspicions.test(1e-5, {"tested", Severity::error});
  suspicions.test(0.004, {"twice_looked_at", Severity::error});
  suspicions.test(0.5, {"nothing", Severity::error});
  const std::vector<Finding> findings = suspicions.findings();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "tested");
  CHECK(findings[0].adjusted_p_value == Approx(3e-5));
  CHECK(findings[1].code == "known");
  CHECK_FALSE(findings[1].adjusted_p_value);
}

TEST_CASE("files of engines without faults raise no alarm") {
  for (const std::string file :
       {"serving/vllm_requests.jsonl", "serving/vllm_k4.log", "serving/vllm_plain.log", "llamacpp/server.log",
        "llamacpp/server-answers.jsonl", "bench/runs.csv", "llamacpp/speculative-simple.log"}) {
    INFO(file);
    const Checkup checkup = checked({samples + file});
    for (const Finding& finding : checkup.findings) UNSCOPED_INFO(finding.message);
    CHECK(alarms(checkup.findings) == 0);
    CHECK(checkup.files.at(0).kind == "counts");
  }
  CHECK(alarms(checked({samples + "serving/vllm_before.prom", samples + "serving/vllm_after.prom"}).findings) == 0);
  std::vector<std::string> runs;
  for (const std::string concurrency : {"c1", "c8", "c32", "c64"}) {
    for (const std::string kind : {"plain", "k3", "k5"})
      runs.push_back(samples + "bench/" + concurrency + "-" + kind + ".json");
  }
  CHECK(alarms(checked(runs).findings) == 0);
  const Checkup recorded = checked({tests::source_dir() + "/sim/models/recording.safetensors"});
  CHECK(alarms(recorded.findings) == 0);
  CHECK(recorded.files.at(0).kind == "recording");
}

TEST_CASE("a draft that is never accepted is found in a log and in a run") {
  const Faults faults;
  const std::string log = faults.changed(
      "serving/vllm_k4.log",
      "Mean acceptance length: [0-9.]+, Accepted throughput: [0-9.]+ (.*)Accepted: [0-9]+ (.*)rate: [0-9., ]+, Avg "
      "Draft "
      "acceptance rate: [0-9.]+%",
      "Mean acceptance length: 1.00, Accepted throughput: 0.00 $1Accepted: 0 $2rate: 0.000, 0.000, 0.000, 0.000, Avg "
      "Draft acceptance rate: 0.0%");
  const Checkup checkup = checked({log});
  CHECK(finds(checkup.findings, "draft_never_accepted"));
  CHECK(checkup.count(Severity::error) == 1);
  CHECK(checkup.findings.at(0).evidence.at(0).file == log);
}

TEST_CASE("percentages in the place of shares are found by line and key") {
  const Faults faults;
  const Checkup checkup =
      checked({faults.changed("bench/c1-k3.json", "(per_position_acceptance_rates\": \\[)0\\.([0-9][0-9])", "$1$2.")});
  REQUIRE(finds(checkup.findings, "percentages_as_shares"));
  CHECK(checkup.findings.at(0).evidence.at(0).value.value() > 1);
}

TEST_CASE("percentages are named so in every format whose rates are shares") {
  const Faults faults;
  const std::vector<std::string> files = {
      faults.changed("serving/vllm_k4.log", "rate: 0\\.([0-9][0-9])([0-9]), [0-9., ]+, Avg", "rate: $1.$2, Avg"),
      faults.changed("serving/vllm_requests.jsonl", "draft_acceptance_rate\": 0\\.([0-9][0-9])",
                     "draft_acceptance_rate\": $1."),
      faults.changed("llamacpp/server.log", "draft acceptance = 0\\.([0-9][0-9])", "draft acceptance = $1.")};
  for (const std::string& file : files) {
    INFO(file);
    const Checkup checkup = checked({file});
    REQUIRE(checkup.findings.size() == 1);
    CHECK(checkup.findings[0].code == "percentages_as_shares");
    CHECK(checkup.findings[0].evidence.at(0).value.value() > 1);
    CHECK(checkup.findings[0].remedy.starts_with("divide by 100"));
  }
}

TEST_CASE("tokens per step without the target's own token are found as plan finds them") {
  const Faults faults;
  std::istringstream sample(content_of(samples + "bench/runs.csv"));
  std::string without, line;
  while (std::getline(sample, line)) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    if (!without.empty() && cells.at(1) != "0") cells.at(4) = std::to_string(std::stod(cells.at(4)) - 1);
    for (std::size_t i = 0; i < cells.size(); ++i) without += (i > 0 ? "," : "") + cells[i];
    without += '\n';
  }
  const Checkup checkup = checked({faults.written("runs.csv", without)});
  REQUIRE(finds(checkup.findings, "round_below_target_pass"));
  CHECK(checkup.findings.at(0).remedy.find("hold the target's own token") != std::string::npos);
}

TEST_CASE("throughput of one request in the place of all requests' is found") {
  const Faults faults;
  const Checkup checkup = checked({faults.written("runs.csv",
                                                  "concurrency,gamma,output_tokens_per_second,tokens_per_step\n"
                                                  "1,0,50,1\n8,0,45.5,1\n32,0,33.3,1\n")});
  REQUIRE(finds(checkup.findings, "throughput_falls_with_load"));
  CHECK(checkup.findings.at(0).remedy.find("of all requests together") != std::string::npos);
}

TEST_CASE("requests that are there twice are found, and count once") {
  const Faults faults;
  const std::string once = content_of(samples + "serving/vllm_requests.jsonl");
  const Checkup checkup = checked({faults.written("twice.jsonl", once + once)});
  CHECK(finds(checkup.findings, "request_given_twice"));
  CHECK(alarms(checked({samples + "serving/vllm_requests.jsonl"}).findings) == 0);
}

TEST_CASE("random prompts, and plain runs unlike the speculative one, are found") {
  const Faults faults;
  const std::string plain = samples + "bench/c1-plain.json";
  const std::string spec = samples + "bench/c1-k3.json";
  CHECK(finds(
      checked({faults.changed("bench/c1-k3.json", "\\{\"date\"", "{\"dataset_name\": \"random\", \"date\"")}).findings,
      "random_prompts"));
  CHECK_FALSE(finds(checked({plain, spec}).findings, "plain_run_differs"));
  CHECK(finds(checked({samples + "bench/c8-plain.json", spec}).findings, "plain_run_differs"));
  CHECK(finds(
      checked({faults.changed("bench/c1-plain.json", "\"total_input_tokens\": 32768", "\"total_input_tokens\": 16384"),
               spec})
          .findings,
      "plain_run_differs"));
  CHECK(finds(checked({faults.changed("bench/c1-plain.json", "target-8b", "target-70b"), spec}).findings,
              "plain_run_differs"));
}

TEST_CASE("a plain time that another run contradicts is found") {
  const Faults faults;
  const std::string slow = "1,0,50.0,20.0,,,1024,257";
  const Checkup contradicted = checked({faults.changed("bench/runs.csv", "1,0,163.2,6.145,,,1024,257", slow)});
  CHECK(finds(contradicted.findings, "round_below_target_pass"));
  CHECK_FALSE(finds(contradicted.findings, "plain_time_contradicted"));
  const Checkup repeated = checked({faults.changed("bench/runs.csv", "(1,0,163.2,6.145,,,1024,257)", "$1\n" + slow)});
  CHECK(finds(repeated.findings, "plain_time_contradicted"));
}

TEST_CASE("a server on its way up is found in its log, and not where the first window is like the others") {
  std::vector<traces::ServingCounts> windows;
  for (int window = 0; window < 12; ++window) {
    traces::ServingCounts one;
    one.file = "server.log";
    one.line = window + 1;
    one.unit = traces::CountUnit::window;
    one.window = traces::EngineWindow{4, 0, 0, 400.0 + (window % 3)};
    windows.push_back(one);
  }
  Suspicions steady(0.01);
  planner::check_start(windows, steady);
  CHECK(steady.tests() == 1);
  CHECK(steady.findings().empty());
  windows.front().window->generation_tokens_per_second = 250;
  Suspicions rising(0.01);
  planner::check_start(windows, rising);
  REQUIRE(rising.findings().size() == 1);
  CHECK(rising.findings()[0].code == "server_warming_up");
}

TEST_CASE("a mean over requests in the place of tokens per step is found") {
  std::vector<traces::ServingCounts> counts;
  for (const auto& [rounds, accepted] : {std::pair(100.0, 100.0), std::pair(300.0, 600.0)}) {
    traces::ServingCounts one;
    one.file = "requests.jsonl";
    one.unit = traces::CountUnit::request;
    one.rounds = rounds;
    one.accepted = accepted;
    counts.push_back(one);
  }
  traces::ServingCounts stated;
  stated.file = "report";
  stated.unit = traces::CountUnit::total;
  for (const auto& [length, is_wrong] : {std::pair(2.5, true), std::pair(2.75, false)}) {
    stated.tokens_per_round = length;
    counts.push_back(stated);
    Suspicions suspicions(0.01);
    planner::check_means(counts, suspicions);
    counts.pop_back();
    CHECK(finds(suspicions.findings(), "mean_over_requests") == is_wrong);
  }
  // The same number by chance, of a run that counts its rounds itself, or has another gamma.
  stated.tokens_per_round = 2.5;
  traces::ServingCounts counted = stated, other = stated;
  counted.rounds = 1000;
  counted.accepted = 1500;
  other.gamma = 5;
  for (traces::ServingCounts& one : counts) one.gamma = 3;
  for (const traces::ServingCounts& chance : {counted, other}) {
    counts.push_back(chance);
    Suspicions suspicions(0.01);
    planner::check_means(counts, suspicions);
    counts.pop_back();
    CHECK_FALSE(finds(suspicions.findings(), "mean_over_requests"));
  }
}

TEST_CASE("answers that all end at one length are noted") {
  std::vector<traces::ServingCounts> counts(8);
  for (traces::ServingCounts& one : counts) {
    one.unit = traces::CountUnit::request;
    one.bench = traces::BenchRun{};
    one.bench->total_output_tokens = 64;
  }
  Suspicions equal(0.01);
  planner::check_ends(counts, equal);
  CHECK(finds(equal.findings(), "outputs_all_equal"));
  CHECK(alarms(equal.findings()) == 0);
  counts.back().bench->total_output_tokens = 63;
  Suspicions different(0.01);
  planner::check_ends(counts, different);
  CHECK(different.findings().empty());
}

TEST_CASE("the same answers in two files are found, and files that differ in one byte are not taken for the same") {
  const Faults faults;
  const std::string answers = "serving/vllm_requests.jsonl";
  const std::string copy = faults.written("copy.jsonl", content_of(samples + answers));
  CHECK(finds(checked({samples + answers, copy}).findings, "same_content"));
  const std::string other =
      faults.changed(answers, "\"num_accepted_draft_tokens\": 346", "\"num_accepted_draft_tokens\": 345");
  CHECK_FALSE(finds(checked({samples + answers, other}).findings, "same_content"));
}

TEST_CASE("a gamma given beside files that say another one is found") {
  CheckupQuestion question;
  question.files = {samples + "serving/vllm_requests.jsonl"};
  const Checkup silent = check_up(question);
  CHECK_FALSE(finds(silent.findings, "gamma_differs"));
  question.gamma = 9;
  CHECK(finds(check_up(question).findings, "gamma_differs"));
}

TEST_CASE("requests of a benchmark that failed are found") {
  const Faults faults;
  const std::string failed = faults.changed("bench/c8-k3.json", "\"completed\": [0-9]+", "\"completed\": 3");
  CHECK(finds(checked({failed}).findings, "requests_failed"));
  CHECK_FALSE(finds(checked({samples + "bench/c8-k3.json"}).findings, "requests_failed"));
}

TEST_CASE("a time that was written in seconds among milliseconds is found, with its unit") {
  const Faults faults;
  const std::string seconds =
      faults.changed("bench/c8-plain.json", "\"output_throughput\": [^,]*,(.*)\"mean_tpot_ms\": ([0-9])\\.",
                     "$1\"mean_tpot_ms\": 0.00$2");
  const Checkup checkup = checked({samples + "bench/c1-plain.json", seconds, samples + "bench/c32-plain.json"});
  const auto found = std::find_if(checkup.findings.begin(), checkup.findings.end(),
                                  [](const Finding& finding) { return finding.code == "times_far_apart"; });
  REQUIRE(found != checkup.findings.end());
  CHECK(found->message.find("the shorter may be seconds") != std::string::npos);
  CHECK(found->evidence.front().file == seconds);
  CHECK_FALSE(
      finds(checked({samples + "bench/c1-plain.json", samples + "bench/c64-k5.json"}).findings, "times_far_apart"));
}

TEST_CASE("a draft far above its roofline or faster than the peaks is found, and one near it is not") {
  const Faults faults;
  const auto drafting = [&](const std::string& milliseconds) {
    return faults.written("draft.log",
                          "statistics draft-simple: #calls(b,g,a) = 1 100 100, #gen drafts = 100, #acc "
                          "drafts = 80, #gen tokens = 400, #acc tokens = 200, dur(b,g,a) = 0.1, " +
                              milliseconds + ", 0.2 ms\n");
  };
  const auto found = [&](const std::string& file) {
    CheckupQuestion question;
    question.draft_times = planner::DraftTimes{{file}, "h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}}};
    return check_up(question).findings;
  };
  // 2.5 GB at 3.35 TB/s take 0.74 ms, with launches 1.5 to 2.5 ms.
  CHECK(found(drafting("800")).empty());
  const std::vector<Finding> slow = found(drafting("8000"));
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].code == "draft_far_above_roofline");
  CHECK(slow[0].severity == Severity::warning);
  CHECK(slow[0].evidence[0].value == Approx(0.02));
  CHECK(slow[0].evidence[0].line == 1);
  CHECK(*slow[0].evidence[0].value > 3 * *slow[0].evidence[1].value);
  CHECK_FALSE(slow[0].remedy.empty());
  const std::string header = "batch,tokens,context,seconds\n";
  CHECK(found(faults.written("fast.csv", header + "1,1,100,0.002\n8,1,100,0.0022\n1,1,2000,0.05\n")).empty());
  CHECK(finds(found(faults.written("slow.csv", header + "1,1,100,0.02\n8,1,100,0.022\n1,1,2000,0.002\n")),
              "draft_far_above_roofline"));
  CHECK(
      finds(found(faults.written("impossible.csv", header + "1,1,100,0.0002\n8,1,100,0.0002\n")), "draft_below_peaks"));
  CheckupQuestion lookups;
  lookups.draft_times =
      planner::DraftTimes{{drafting("800")}, "h100", "llama-3.1-8b", {.draft = {.kind = cost::DraftKind::ngram}}};
  CHECK_THROWS_AS(check_up(lookups), planner::QuestionError);
}

TEST_CASE("a configuration is held against what the server counted") {
  const Faults faults;
  const std::string requests = samples + "serving/vllm_requests.jsonl";
  const auto configured = [&](const std::string& json) { return checked({faults.written("c.json", json), requests}); };
  const Checkup same = configured(R"({"method": "eagle3", "model": "d", "num_speculative_tokens": 4})");
  CHECK(alarms(same.findings) == 0);
  CHECK(same.files.at(0).kind == "configuration");
  CHECK(finds(configured(R"({"speculative_config": {"num_speculative_tokens": 7}})").findings,
              "gamma_not_as_configured"));
  CHECK(finds(configured(R"({"num_speculative_tokens": 4, "rejection_sample_method": "synthetic"})").findings,
              "synthetic_acceptance"));
}

TEST_CASE("a file that contradicts itself is a finding, and the others are read all the same") {
  const Faults faults;
  const std::string broken = faults.changed("serving/vllm_requests.jsonl", "\"num_accepted_draft_tokens\": 346",
                                            "\"num_accepted_draft_tokens\": 9346");
  const Checkup checkup = checked({broken, samples + "serving/vllm_k4.log"});
  REQUIRE(checkup.count(Severity::error) == 1);
  CHECK(checkup.findings[0].code == "refused");
  CHECK(checkup.findings[0].evidence.at(0).line == 1);
  CHECK(checkup.tests > 0);
}

TEST_CASE("what is no question, or in no known format, is refused") {
  CHECK_THROWS_AS(checked({}), planner::QuestionError);
  CHECK_THROWS_AS(checked({samples + "serving/vllm_k4.log", samples + "serving/vllm_k4.log"}), planner::QuestionError);
  CHECK_THROWS_AS(checked({tests::source_dir() + "/LICENSE"}), traces::FileError);
  CHECK_THROWS_AS(checked({samples + "llamacpp/target.kld"}), traces::FileError);
}
