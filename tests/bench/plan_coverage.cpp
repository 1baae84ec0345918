// How often do plans from deployments hold? Servers are drawn, run, written down as benchmark results or as counters of
// requests, and planned from; the truth is that of endlessly many requests. docs/validation.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/planning/bench_plan.hpp"
#include "analysis/planning/deployment_plan.hpp"

using namespace specdec;
using Random = std::mt19937_64;

namespace {

/// Output tokens of every request, or their mean over requests.
constexpr std::int64_t output_tokens = 200;
constexpr std::int64_t most_gamma = 8;
constexpr double input_tokens = 1000;

/// Shares of requests by their output tokens.
using Lengths = std::map<std::int64_t, double>;

Lengths one_length() { return {{output_tokens, 1}}; }

/// Log-normal with a deviation of .8 about the mean of output_tokens, between a tenth and five times of it.
Lengths natural_lengths() {
  constexpr double deviation = 0.8;
  Lengths lengths;
  double sum = 0;
  for (std::int64_t tokens = output_tokens / 10; tokens <= 5 * output_tokens; ++tokens) {
    const double z = std::log(static_cast<double>(tokens) / output_tokens) / deviation + deviation / 2;
    const double share = std::exp(-z * z / 2) / static_cast<double>(tokens);
    lengths[tokens] = share;
    sum += share;
  }
  for (auto& [tokens, share] : lengths) share /= sum;
  return lengths;
}

/// Expected rounds of a request until all of its tokens are out, by renewal, for gammas 0 to most_gamma on a grid of
/// rates.
class RoundTable {
 public:
  explicit RoundTable(const Lengths& lengths) {
    for (const auto& [tokens, share] : lengths) mean_tokens_ += share * static_cast<double>(tokens);
    for (std::size_t i = 0; i <= steps; ++i) {
      for (std::int64_t gamma = 0; gamma <= most_gamma; ++gamma) {
        rounds_.push_back(expected(static_cast<double>(i) / steps, gamma, lengths));
      }
    }
  }

  double mean_tokens() const { return mean_tokens_; }

  double operator()(double alpha, std::int64_t gamma) const {
    const double place = alpha * steps;
    const auto below = std::min(static_cast<std::size_t>(place), steps - 1);
    const double share = place - static_cast<double>(below);
    return (1 - share) * at(below, gamma) + share * at(below + 1, gamma);
  }

 private:
  static constexpr std::size_t steps = 1000;

  double at(std::size_t i, std::int64_t gamma) const {
    return rounds_[i * (most_gamma + 1) + static_cast<std::size_t>(gamma)];
  }

  static double expected(double alpha, std::int64_t gamma, const Lengths& lengths) {
    const std::int64_t longest = lengths.rbegin()->first;
    std::vector<double> rounds(static_cast<std::size_t>(longest) + 1, 0.0);
    for (std::int64_t left = 1; left <= longest; ++left) {
      double sum = 1, survival = 1;
      for (std::int64_t k = 1; k <= gamma + 1; ++k) {
        const double probability = k <= gamma ? survival * (1 - alpha) : survival;
        if (left > k) sum += probability * rounds[static_cast<std::size_t>(left - k)];
        survival *= alpha;
      }
      rounds[static_cast<std::size_t>(left)] = sum;
    }
    double mean = 0;
    for (const auto& [tokens, share] : lengths) mean += share * rounds[static_cast<std::size_t>(tokens)];
    return mean;
  }

  double mean_tokens_ = 0;
  std::vector<double> rounds_;
};

/// A server: what its requests accept and what its rounds cost.
struct Server {
  double alpha = 0.7;
  /// Standard deviation of the rate over requests; constant within one.
  double spread = 0.1;
  double fixed = 0, per_draft = 0, per_drafted = 0, per_verified = 0;
  /// Seconds of a speculative round, and of each sequence in it.
  double per_round = 0, per_sequence_of_round = 0;
  /// Total tokens from which on the fixed part grows; none where it does not.
  std::optional<double> knee = {};
  /// Seconds of all experts, and how many there are for each that a token takes.
  double all_experts = 0, experts = 1;
  /// Factors of the starts of the server, one with each gamma.
  std::vector<double> starts = std::vector<double>(most_gamma + 1, 1.0);

  /// @param full  with fixed parts of a speculative round, a knee, in half of the servers experts, and starts that
  ///              differ by 1.5%
  static Server draw(Random& random, bool full) {
    const auto uniform = [&](double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(random); };
    const auto between = [&](double lo, double hi) { return std::exp(uniform(std::log(lo), std::log(hi))); };
    Server server;
    server.alpha = uniform(0.5, 0.85);
    server.fixed = 0.01;
    server.per_draft = 0.01 * std::exp(uniform(std::log(0.01), std::log(0.15)));
    server.per_verified = 0.01 * std::exp(uniform(std::log(0.001), std::log(0.02)));
    server.per_drafted = server.per_verified * uniform(0.05, 0.5);
    if (!full) return server;
    server.per_round = server.fixed * between(0.02, 0.5);
    server.per_sequence_of_round = server.fixed * between(1e-4, 0.01);
    server.knee = between(100, 1000);
    if (uniform(0, 1) < 0.5) {
      server.all_experts = server.fixed * between(0.3, 3);
      server.experts = between(4, 50);
    }
    for (double& start : server.starts) start = std::exp(0.015 * std::normal_distribution<double>(0, 1)(random));
    return server;
  }

  double round(std::int64_t gamma, double batch) const {
    const auto g = static_cast<double>(gamma);
    const double tokens = (g + 1) * batch;
    const double of_drafts = per_draft * g + per_drafted * g * batch;
    const double of_round = gamma > 0 ? per_round + per_sequence_of_round * batch : 0;
    const double of_experts = all_experts * (1 - std::pow(1 - 1 / experts, tokens));
    return fixed * (knee ? std::hypot(1, tokens / *knee) : 1) + of_drafts + of_round + per_verified * tokens +
           of_experts;
  }

  double rate(Random& random) const {
    const double concentration = alpha * (1 - alpha) / (spread * spread) - 1;
    const double a = std::gamma_distribution<double>(alpha * concentration)(random);
    const double b = std::gamma_distribution<double>((1 - alpha) * concentration)(random);
    return a / (a + b);
  }
};

/// The limit for endlessly many requests.
class Truth {
 public:
  Truth(const Server& server, const RoundTable& table)
      : server_(server), mean_tokens_(table.mean_tokens()), rounds_(most_gamma + 1, 0.0), tokens_(most_gamma + 1, 0.0) {
    // The law of the rate by its density at many places.
    const double concentration = server.alpha * (1 - server.alpha) / (server.spread * server.spread) - 1;
    const double a = server.alpha * concentration, b = (1 - server.alpha) * concentration;
    double mass = 0;
    constexpr int places = 2000;
    for (int i = 0; i < places; ++i) {
      const double x = (i + 0.5) / places;
      const double density = std::exp((a - 1) * std::log(x) + (b - 1) * std::log1p(-x));
      mass += density;
      for (std::int64_t gamma = 0; gamma <= most_gamma; ++gamma) {
        const double rounds = density * table(x, gamma);
        double survival = 1, per_round = 1;
        for (std::int64_t j = 1; j <= gamma; ++j) per_round += survival *= x;
        rounds_[place(gamma)] += rounds;
        tokens_[place(gamma)] += rounds * per_round;
      }
    }
    for (std::size_t gamma = 0; gamma <= most_gamma; ++gamma) tokens_[gamma] /= rounds_[gamma];
    for (double& rounds : rounds_) rounds /= mass;
  }

  double speedup(std::int64_t gamma, double batch) const {
    return server_.round(0, batch) * mean_tokens_ / (server_.round(gamma, batch) * rounds_[place(gamma)]);
  }
  /// Tokens of a round, those cut off at the end of a request included.
  double tokens(std::int64_t gamma) const { return tokens_[place(gamma)]; }
  double delivered_tokens(std::int64_t gamma) const { return mean_tokens_ / rounds_[place(gamma)]; }

  std::int64_t best(double batch, std::int64_t up_to) const {
    std::int64_t best = 0;
    for (std::int64_t gamma = 1; gamma <= up_to; ++gamma) {
      if (speedup(gamma, batch) > speedup(best, batch)) best = gamma;
    }
    return best;
  }

 private:
  static std::size_t place(std::int64_t gamma) { return static_cast<std::size_t>(gamma); }
  Server server_;
  double mean_tokens_ = 0;
  std::vector<double> rounds_, tokens_;
};

/// One request's counts.
struct Request {
  std::int64_t tokens = 0;
  double rounds = 0, accepted = 0;
  std::vector<double> accepted_at;
};

Request run_request(double alpha, std::int64_t gamma, std::int64_t length, Random& random) {
  Request request;
  request.tokens = length;
  request.accepted_at.assign(static_cast<std::size_t>(gamma), 0.0);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::int64_t tokens = 0; tokens < length;) {
    std::int64_t accepted = 0;
    while (accepted < gamma && uniform(random) < alpha) ++request.accepted_at[static_cast<std::size_t>(accepted++)];
    request.accepted += static_cast<double>(accepted);
    request.rounds += 1;
    tokens += accepted + 1;
  }
  return request;
}

traces::ServingCounts counts_of(const std::vector<Request>& requests, std::int64_t gamma) {
  traces::ServingCounts counts;
  counts.engine = "vllm";
  counts.labels = {{"model_name", "m"}};
  counts.line = 1;
  counts.shape = traces::DraftShape::chain;
  counts.gamma = gamma;
  counts.accepted_at.assign(static_cast<std::size_t>(gamma), 0.0);
  double rounds = 0, accepted = 0;
  for (const Request& request : requests) {
    rounds += request.rounds;
    accepted += request.accepted;
    for (std::size_t j = 0; j < request.accepted_at.size(); ++j) counts.accepted_at[j] += request.accepted_at[j];
  }
  counts.rounds = rounds;
  counts.accepted = accepted;
  counts.drafted = rounds * static_cast<double>(gamma);
  return counts;
}

/// The output tokens of a benchmark's requests, which are the same in all of its runs.
std::vector<std::int64_t> draw_requests(const Lengths& lengths, std::int64_t count, Random& random) {
  std::vector<double> shares;
  for (const auto& one : lengths) shares.push_back(one.second);
  std::discrete_distribution<std::int64_t> draw(shares.begin(), shares.end());
  std::vector<std::int64_t> requests;
  for (std::int64_t i = 0; i < count; ++i) requests.push_back(std::next(lengths.begin(), draw(random))->first);
  return requests;
}

std::vector<Request> run_requests(const Server& server, std::int64_t gamma, const std::vector<std::int64_t>& lengths,
                                  Random& random) {
  std::vector<Request> requests;
  for (const std::int64_t length : lengths) requests.push_back(run_request(server.rate(random), gamma, length, random));
  return requests;
}

/// A benchmark run of one gamma at one concurrency. As benchmarks do, the time per token is a mean over requests, and
/// the throughput counts tokens.
traces::ServingCounts bench_run(const Server& server, std::int64_t gamma, double concurrency,
                                const std::vector<std::int64_t>& lengths, double noise, Random& random) {
  const auto count = static_cast<double>(lengths.size());
  const double batch = concurrency * (gamma == 0 ? 0.95 : 0.9);
  const std::vector<Request> requests = run_requests(server, gamma, lengths, random);
  traces::ServingCounts counts;
  if (gamma > 0) {
    counts = counts_of(requests, gamma);
  } else {
    counts.labels = {{"model_name", "m"}};
    counts.line = 1;
  }
  counts.unit = traces::CountUnit::run;
  counts.file = fmt::format("g{}_c{}.json", gamma, concurrency);
  double tokens = 0, rounds = 0, rounds_per_token = 0;
  for (const Request& request : requests) {
    const auto its_tokens = static_cast<double>(request.tokens);
    tokens += its_tokens;
    rounds += request.rounds;
    rounds_per_token += request.rounds / its_tokens / count;
  }
  const double factor = std::exp(noise * std::normal_distribution<double>(0, 1)(random));
  const double seconds = server.round(gamma, batch) * server.starts[static_cast<std::size_t>(gamma)] * factor;
  traces::BenchRun bench;
  bench.max_concurrency = concurrency;
  bench.completed = bench.num_prompts = count;
  bench.total_input_tokens = count * input_tokens;
  bench.total_output_tokens = tokens;
  bench.mean_tpot_ms = 1e3 * seconds * rounds_per_token;
  bench.output_throughput = batch * tokens / (seconds * rounds);
  bench.duration_s = tokens / *bench.output_throughput;
  counts.bench = bench;
  return counts;
}

/// Counts of what plans got right.
struct Tally {
  std::int64_t points = 0, speculating = 0, covered_best = 0, optimal = 0, near = 0;
  std::int64_t measured_rows = 0, covered_measured = 0, other_rows = 0, covered_other = 0;
  std::int64_t yes = 0, wrong_yes = 0, no = 0, wrong_no = 0, unsure = 0;
  std::vector<double> regrets, widths;

  void add(const planning::PointPlan& point, const std::vector<std::int64_t>& measured, double min_gain,
           const std::vector<double>& truth) {
    const auto best = static_cast<std::size_t>(std::max_element(truth.begin(), truth.end()) - truth.begin());
    const auto holds = [&](const planning::DeploymentRow& row) {
      const double value = truth[static_cast<std::size_t>(row.gamma)];
      return row.speedup_ci95.lo <= value && value <= row.speedup_ci95.hi;
    };
    ++points;
    const double loss = 1 - truth[point.optimal_row] / truth[best];
    optimal += point.optimal_row == best ? 1 : 0;
    near += loss <= 0.01 ? 1 : 0;
    regrets.push_back(loss);
    if (point.optimal_row > 0) {
      ++speculating;
      covered_best += holds(point.optimal()) ? 1 : 0;
      widths.push_back(std::log(point.optimal().speedup_ci95.hi / point.optimal().speedup_ci95.lo) / 2);
    }
    for (const planning::DeploymentRow& row : point.rows) {
      if (row.gamma == 0) continue;
      const bool ran = std::find(measured.begin(), measured.end(), row.gamma) != measured.end();
      ++(ran ? measured_rows : other_rows);
      if (holds(row)) ++(ran ? covered_measured : covered_other);
    }
    if (point.certainty == worlds::Certainty::sure) {
      ++yes;
      wrong_yes += truth[point.drafting_row] < 1 + min_gain ? 1 : 0;
    } else if (point.certainty == worlds::Certainty::no) {
      ++no;
      wrong_no += truth[best] >= 1 + min_gain ? 1 : 0;
    } else {
      ++unsure;
    }
  }

  void print(const std::string& what) {
    std::sort(regrets.begin(), regrets.end());
    std::sort(widths.begin(), widths.end());
    const auto share = [](std::int64_t part, std::int64_t of) {
      return of == 0 ? std::string("-")
                     : fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(of));
    };
    const auto at = [](const std::vector<double>& sorted, double q) {
      return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
    };
    fmt::print("| {} | {} | {} | {} | {:.1f}% | {} | {} | {:.2f}% | {:.2f}% | {} of {} | {} of {} | {} |\n", what,
               share(covered_best, speculating), share(covered_measured, measured_rows),
               share(covered_other, other_rows), 100 * at(widths, 0.5), share(optimal, points), share(near, points),
               100 * std::accumulate(regrets.begin(), regrets.end(), 0.0) / static_cast<double>(regrets.size()),
               100 * at(regrets, 0.95), wrong_yes, yes, wrong_no, no, share(unsure, points));
  }
};

struct Setting {
  std::string name;
  std::vector<std::int64_t> gammas;
  std::vector<double> concurrencies;
  std::int64_t requests;
  double noise;
  /// The required gain lies within 10% of the true best speedup of one point, and that point alone counts.
  bool hard = false;
  /// Servers with all parts, and requests of natural lengths.
  bool full = false;
};

/// A required gain that the best speedup reaches or misses by up to 10%.
double close_gain(double best, Random& random) {
  return std::max(0.0, best * std::exp(std::uniform_real_distribution<double>(-0.1, 0.1)(random)) - 1);
}

Tally bench_tally(const Setting& setting, std::int64_t draws, std::uint64_t seed, double min_gain) {
  const Lengths lengths = setting.full ? natural_lengths() : one_length();
  const RoundTable table(lengths);
  Tally tally;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    Random random(seed + static_cast<std::uint64_t>(draw));
    const Server server = Server::draw(random, setting.full);
    const Truth truth(server, table);
    planning::BenchQuestion question;
    question.max_gamma = most_gamma;
    question.min_gain = min_gain;
    question.seed = seed;
    const std::vector<std::int64_t> requests = draw_requests(lengths, setting.requests, random);
    for (const double concurrency : setting.concurrencies) {
      question.runs.push_back(bench_run(server, 0, concurrency, requests, setting.noise, random));
      for (const std::int64_t gamma : setting.gammas) {
        question.runs.push_back(bench_run(server, gamma, concurrency, requests, setting.noise, random));
      }
    }
    const std::size_t asked = std::uniform_int_distribution<std::size_t>(0, setting.concurrencies.size() - 1)(random);
    if (setting.hard) {
      const double batch = 0.95 * setting.concurrencies[asked];
      question.min_gain = close_gain(truth.speedup(truth.best(batch, most_gamma), batch), random);
    }
    const planning::BenchPlan plan = planning::plan_bench(question);
    const auto& points = plan.plan.drafts[0].points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (setting.hard && i != asked) continue;
      std::vector<double> speedups;
      for (const planning::DeploymentRow& row : points[i].rows) {
        speedups.push_back(truth.speedup(row.gamma, points[i].batch));
      }
      tally.add(points[i], setting.gammas, question.min_gain, speedups);
    }
  }
  return tally;
}

/// From counters of single requests and a cost that is known; the truth is that of all tokens or of those delivered.
Tally counters_tally(std::int64_t gamma, std::int64_t requests, bool delivered, bool hard, std::int64_t draws,
                     std::uint64_t seed, double min_gain) {
  const RoundTable table(one_length());
  Tally tally;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    Random random(seed + static_cast<std::uint64_t>(draw));
    const Server server = Server::draw(random, false);
    const Truth truth(server, table);
    const double c = std::uniform_real_distribution<double>(0.02, 0.4)(random);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(requests), output_tokens);
    estimate::ServingSummaries summaries;
    for (const Request& request : run_requests(server, gamma, lengths, random)) {
      traces::ServingCounts counts = counts_of({request}, gamma);
      counts.unit = traces::CountUnit::request;
      summaries.add(counts);
    }
    planning::DeploymentQuestion question;
    question.drafts = {{"draft", std::make_shared<estimate::MeasuredAcceptance>(summaries.summaries().front()),
                        std::make_shared<cost::ConstantCost>(cost::ConstantOptions{.step = {.c = c}})}};
    question.max_gamma = most_gamma;
    question.min_gain = min_gain;
    std::vector<double> speedups;
    for (std::int64_t g = 0; g <= most_gamma; ++g) {
      const double tokens = delivered ? truth.delivered_tokens(g) : truth.tokens(g);
      speedups.push_back(tokens / (1 + c * static_cast<double>(g)));
    }
    if (hard) question.min_gain = close_gain(*std::max_element(speedups.begin(), speedups.end()), random);
    const planning::DeploymentPlan plan = planning::plan_deployment(question);
    tally.add(plan.drafts[0].points[0], {gamma}, question.min_gain, speedups);
  }
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t draws = 1000;
  std::uint64_t seed = 1;
  double min_gain = 0.05;
  CLI::App app("Coverage and choices of plans from simulated deployments");
  app.add_option("--draws", draws)->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--min-gain", min_gain)->capture_default_str();
  std::vector<std::size_t> rows;
  app.add_option("--rows", rows, "numbers of the table's rows, from 1 [all]");
  CLI11_PARSE(app, argc, argv);

  fmt::print(
      "| planned from | holds, best gamma | holds, gammas that ran | holds, other gammas | half-width, median | best "
      "gamma "
      "found | within 1% of it | regret, mean | regret, 95% quantile | wrong of \"sure\" | wrong of \"no\" | neither |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Setting> settings = {
      {"4 concurrencies, gamma 0, 2, 5; noise 2%", {2, 5}, {1, 8, 32, 128}, 100, 0.02},
      {"6 concurrencies, gamma 0, 1, 3, 7; noise 2%", {1, 3, 7}, {1, 4, 16, 32, 64, 128}, 100, 0.02},
      {"4 concurrencies, gamma 0, 4; noise 2%", {4}, {1, 8, 32, 128}, 100, 0.02},
      {"4 concurrencies, gamma 0, 2, 5; noise 5%", {2, 5}, {1, 8, 32, 128}, 100, 0.05},
      {"4 concurrencies, gamma 0, 2, 5; noise 0.5%, 30 requests", {2, 5}, {1, 8, 32, 128}, 30, 0.005},
      {"4 concurrencies, gamma 0, 2, 5; noise 2%; close required gain", {2, 5}, {1, 8, 32, 128}, 100, 0.02, true}};
  const std::size_t simple = settings.size();
  for (std::size_t i = 0; i < simple; ++i) {
    Setting& full = settings.emplace_back(settings[i]);
    full.name += "; all parts";
    full.full = true;
  }
  std::size_t row = 0;
  const auto wanted = [&] {
    ++row;
    return rows.empty() || std::find(rows.begin(), rows.end(), row) != rows.end();
  };
  for (const Setting& setting : settings) {
    if (wanted()) bench_tally(setting, draws, seed, min_gain).print(setting.name);
  }
  for (const auto& [gamma, requests, delivered, hard] :
       {std::tuple(3, 50, false, false), std::tuple(5, 200, false, false), std::tuple(5, 200, true, false),
        std::tuple(3, 50, false, true)}) {
    if (!wanted()) continue;
    counters_tally(gamma, requests, delivered, hard, draws, seed, min_gain)
        .print(fmt::format("counters of {} requests, gamma {}, cost known{}{}", requests, gamma,
                           delivered ? "; against delivered tokens" : "", hard ? "; close required gain" : ""));
  }
  return 0;
}
