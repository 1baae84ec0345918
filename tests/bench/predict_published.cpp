// Does a cost that is fitted to some runs of a server predict the others? Published throughputs, and servers that are
// made up with fixed parts and knees, are split into runs that are given and runs that are predicted.
// docs/validation.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"

using namespace specdec;

namespace {

struct Cell {
  std::int64_t gamma = 0;
  double batch = 1, seconds = 0, tokens = 1;
};

struct Server {
  std::string source, use;
  cost::DraftKind kind = cost::DraftKind::model;
  std::optional<bool> experts = {};
  std::vector<Cell> cells;
};

cost::DraftKind kind_of(const std::string& name) {
  const std::map<std::string, cost::DraftKind> kinds = {
      {"eagle", cost::DraftKind::eagle}, {"mtp", cost::DraftKind::mtp}, {"parallel", cost::DraftKind::parallel}};
  return kinds.at(name);
}

std::vector<Server> published(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(file.string() + " cannot be read");
  std::map<std::pair<std::string, std::string>, Server> servers;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#' || line.rfind("source,", 0) == 0) continue;
    std::vector<std::string> words;
    std::istringstream words_of(line);
    for (std::string word; std::getline(words_of, word, ',');) words.push_back(word);
    Server& server = servers[{words.at(0), words.at(1)}];
    server.source = words[0];
    server.kind = kind_of(words.at(2));
    server.use = words.at(3);
    server.experts = cost::named_with_experts(words[0] + " " + words[1]);
    Cell cell{std::stoll(words.at(4)), std::stod(words.at(5)), 0, std::stod(words.at(7))};
    cell.seconds = cell.batch * cell.tokens / std::stod(words.at(6));
    server.cells.push_back(cell);
  }
  std::vector<Server> list;
  for (auto& [name, server] : servers) list.push_back(std::move(server));
  return list;
}

/// Rounds with fixed parts and a knee, each off by 2%.
std::vector<Server> made_up(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](double lo, double hi) {
    return std::exp(std::uniform_real_distribution<double>(std::log(lo), std::log(hi))(random));
  };
  std::normal_distribution<double> normal(0, 0.02);
  std::vector<Server> servers;
  for (int i = 0; i < count; ++i) {
    const double draft = between(0.01, 0.2), drafted = between(1e-4, 0.004), verified = between(3e-4, 0.01);
    const double round = between(0.01, 0.5), of_round = between(1e-4, 0.01), knee = between(100, 1000);
    Server server{fmt::format("made up {}", i), "made up", cost::DraftKind::model, false, {}};
    for (std::int64_t gamma = 0; gamma <= 8; ++gamma) {
      for (const double batch : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0}) {
        const auto g = static_cast<double>(gamma);
        const double tokens = (g + 1) * batch;
        const double seconds = std::hypot(1, tokens / knee) + verified * tokens + g * (draft + drafted * batch) +
                               (gamma > 0 ? round + of_round * batch : 0);
        server.cells.push_back(
            {gamma, batch, 0.01 * seconds * std::exp(normal(random)), 1 + 0.6 * (1 - std::pow(0.6, g)) / 0.4});
      }
    }
    servers.push_back(std::move(server));
  }
  return servers;
}

using Cells = std::vector<Cell>;

struct Split {
  std::string row;
  Cells given, asked;
};

/// The cells that the table's rows give and ask for.
std::vector<Split> splits_of(const Server& server) {
  std::set<std::int64_t> gamma_set;
  std::set<double> batch_set;
  for (const Cell& cell : server.cells) {
    if (cell.gamma > 0) gamma_set.insert(cell.gamma);
    batch_set.insert(cell.batch);
  }
  const std::vector<std::int64_t> gammas(gamma_set.begin(), gamma_set.end());
  const std::vector<double> batches(batch_set.begin(), batch_set.end());
  std::vector<Split> splits;
  const auto split = [&](const std::string& row, const std::function<bool(const Cell&)>& given,
                         const std::function<bool(const Cell&)>& asked) {
    Split one{row, {}, {}};
    for (const Cell& cell : server.cells) {
      if (given(cell))
        one.given.push_back(cell);
      else if (asked(cell))
        one.asked.push_back(cell);
    }
    if (!one.given.empty() && !one.asked.empty()) splits.push_back(std::move(one));
  };
  const auto among = [](const auto& values, auto value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  const auto any = [](const Cell&) { return true; };
  if (batches.size() == 1) {
    for (const std::int64_t gamma : gammas) {
      if (gammas.size() <= 3)
        split(
            "one batch: plain and a gamma -> others", [&](const Cell& c) { return c.gamma == 0 || c.gamma == gamma; },
            any);
      if (gammas.size() > 2)
        split(
            "one batch: all gammas but one -> that", [&](const Cell& c) { return c.gamma != gamma; }, any);
    }
    return splits;
  }
  std::vector<std::int64_t> two = {0, gammas.front()};
  if (gammas.size() > 1) two.push_back(gammas[std::min<std::size_t>(gammas.size() - 1, 3)]);
  const auto of_two = [&](const Cell& c) { return among(two, c.gamma); };
  const std::size_t n = batches.size();
  if (n == 3) {
    split(
        "two batches -> between them", [&](const Cell& c) { return c.batch != batches[1]; }, any);
    split(
        "two batches -> 2 to 8 times the larger", [&](const Cell& c) { return c.batch != batches[2]; }, any);
    return splits;
  }
  if (gammas.size() > 2) {
    split(
        "two batches, two gammas -> other gammas there",
        [&](const Cell& c) { return of_two(c) && (c.batch == batches[0] || c.batch == batches[2]); },
        [&](const Cell& c) { return c.batch == batches[0] || c.batch == batches[2]; });
    split(
        "one batch, two gammas -> other gammas", [&](const Cell& c) { return of_two(c) && c.batch == batches[1]; },
        [&](const Cell& c) { return c.batch == batches[1]; });
  }
  split(
      "two batches -> 2 to 8 times the larger",
      [&](const Cell& c) { return of_two(c) && (c.batch == batches[0] || c.batch == batches[n - 4]); },
      [&](const Cell& c) { return c.batch > batches[n - 4]; });
  split(
      "three batches -> the rest",
      [&](const Cell& c) {
        return of_two(c) && (c.batch == batches[0] || c.batch == batches[n / 2] || c.batch == batches[n - 1]);
      },
      any);
  split(
      "every other batch -> between them",
      [&](const Cell& c) {
        return of_two(c) && (among(batches, c.batch) &&
                             (std::lower_bound(batches.begin(), batches.end(), c.batch) - batches.begin()) % 2 == 0);
      },
      [&](const Cell& c) { return of_two(c) && c.batch < batches[n - 1 - (n - 1) % 2]; });
  return splits;
}

/// Errors of a simpler prediction from the same given cells.
struct Simple {
  std::vector<double> errors, regrets;
  int wrong_signs = 0;
};

struct Tally {
  std::vector<double> errors, widths, regrets;
  /// The straight line, and Theorem 3.8.
  Simple line, theorem;
  std::map<std::string, std::vector<double>> held;
  double covered = 0, score = 0;
  int signs = 0, wrong_signs = 0;
};

double median(std::vector<double> values, double share = 0.5) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Straight between, or through, the two nearest given cells: over gamma at each batch, then over the batch.
std::function<double(const Cell&)> straight_line(const Cells& given) {
  return [given](const Cell& asked) {
    const auto over = [](std::vector<std::pair<double, double>> points, double x) {
      std::sort(points.begin(), points.end());
      if (points.size() == 1) return points[0].second;
      std::size_t i = 1;
      while (i + 1 < points.size() && points[i].first < x) ++i;
      const auto& [a, ya] = points[i - 1];
      const auto& [b, yb] = points[i];
      return ya + (yb - ya) * (x - a) / (b - a);
    };
    std::map<double, std::vector<std::pair<double, double>>> by_batch;
    for (const Cell& cell : given) by_batch[cell.batch].push_back({static_cast<double>(cell.gamma), cell.seconds});
    std::vector<std::pair<double, double>> points;
    for (const auto& [batch, values] : by_batch)
      points.push_back({batch, over(values, static_cast<double>(asked.gamma))});
    return std::max(1e-6, over(points, asked.batch));
  };
}

/// Theorem 3.8's c, from the given cells with a plain one at their batch: the mean of (round / plain step - 1) / gamma.
std::optional<double> cost_ratio(const Cells& given) {
  double sum = 0, count = 0;
  for (const Cell& cell : given) {
    const auto plain = std::find_if(given.begin(), given.end(),
                                    [&](const Cell& other) { return other.gamma == 0 && other.batch == cell.batch; });
    if (cell.gamma == 0 || plain == given.end()) continue;
    sum += (cell.seconds / plain->seconds - 1) / static_cast<double>(cell.gamma);
    count += 1;
  }
  return count > 0 ? std::optional(std::max(0.0, sum / count)) : std::nullopt;
}

void add(const Server& server, const Split& split, Tally& tally) {
  std::vector<cost::ObservedRound> runs;
  for (const Cell& cell : split.given) {
    cost::ObservedRound run;
    run.gamma = static_cast<double>(cell.gamma);
    run.batch = cell.batch;
    run.seconds = cell.seconds;
    runs.push_back(run);
  }
  cost::FitOptions options;
  options.kind = server.kind;
  options.experts = server.experts;
  const cost::FittedCost cost(runs, options);
  std::mt19937_64 random(1);
  const auto line = straight_line(split.given);
  const std::optional<double> c = cost_ratio(split.given);
  std::map<double, std::vector<std::pair<double, double>>> choices, line_choices, theorem_choices;
  for (const Cell& cell : split.asked) {
    const auto plain = std::find_if(server.cells.begin(), server.cells.end(),
                                    [&](const Cell& other) { return other.gamma == 0 && other.batch == cell.batch; });
    const cost::RoundPoint point{.gamma = cell.gamma, .batch = cell.batch}, none{.gamma = 0, .batch = cell.batch};
    std::vector<double> draws(cost.replicates()), plains(cost.replicates());
    cost.totals_of_replicates(point, draws);
    double predicted = std::log(cost.round(point).total()), measured = std::log(cell.seconds);
    double by_line = std::log(line(cell));
    const bool ratio = cell.gamma > 0 && plain != server.cells.end();
    // Cells are runs, with an error of their own.
    std::normal_distribution<double> noise(0, cost.run_error());
    for (double& value : draws) value = std::log(value) + noise(random);
    std::optional<double> by_theorem;
    if (ratio && c) by_theorem = std::log(1 + *c * static_cast<double>(cell.gamma));
    if (ratio) {
      cost.totals_of_replicates(none, plains);
      for (std::size_t i = 0; i < draws.size(); ++i) draws[i] -= std::log(plains[i]) + noise(random);
      predicted -= std::log(cost.round(none).total());
      measured -= std::log(plain->seconds);
      by_line -= std::log(line({0, cell.batch, 0, 1}));
      const double speedup = std::log(cell.tokens) - measured;
      if (std::abs(speedup) > 0.05) {
        ++tally.signs;
        tally.wrong_signs += speedup * (std::log(cell.tokens) - predicted) < 0 ? 1 : 0;
        tally.line.wrong_signs += speedup * (std::log(cell.tokens) - by_line) < 0 ? 1 : 0;
        tally.theorem.wrong_signs += by_theorem && speedup * (std::log(cell.tokens) - *by_theorem) < 0 ? 1 : 0;
      }
      if (by_theorem) theorem_choices[cell.batch].push_back({std::log(cell.tokens) - *by_theorem, speedup});
      line_choices[cell.batch].push_back({std::log(cell.tokens) - by_line, speedup});
      choices[cell.batch].push_back({std::log(cell.tokens) - predicted, speedup});
    }
    const double lo = std::min(predicted, median(draws, 0.025)), hi = std::max(predicted, median(draws, 0.975));
    const double error = std::abs(predicted - measured);
    tally.errors.push_back(error);
    tally.line.errors.push_back(std::abs(by_line - measured));
    if (by_theorem) tally.theorem.errors.push_back(std::abs(*by_theorem - measured));
    tally.widths.push_back((hi - lo) / 2);
    const bool holds = lo <= measured && measured <= hi;
    tally.covered += holds ? 1 : 0;
    tally.held[server.source].push_back(holds ? 1 : 0);
    tally.score += hi - lo + 40 * std::max({0.0, lo - measured, measured - hi});
  }
  const auto add_regrets = [](auto& by_batch, std::vector<double>& regrets) {
    for (auto& [batch, of_batch] : by_batch) {
      of_batch.push_back({0, 0});
      const auto best =
          std::max_element(of_batch.begin(), of_batch.end(), [](auto a, auto b) { return a.second < b.second; });
      const auto taken = std::max_element(of_batch.begin(), of_batch.end());
      regrets.push_back(1 - std::exp(taken->second - best->second));
    }
  };
  add_regrets(choices, tally.regrets);
  add_regrets(line_choices, tally.line.regrets);
  add_regrets(theorem_choices, tally.theorem.regrets);
}

/// The goals that a row is asked to reach and does not; "met" where it reaches all.
std::string missed_goals(const std::string& row, const Tally& tally, double by_source) {
  const bool beyond = row.find("larger") != std::string::npos;
  std::string missed;
  const auto require = [&](bool met, const char* goal) {
    if (!met) missed += fmt::format("{}{}", missed.empty() ? "" : ", ", goal);
  };
  require(median(tally.errors) <= (beyond ? 0.2 : 0.04), beyond ? "error 20%" : "error 4%");
  require(by_source >= 0.9, "in 95%");
  require(tally.wrong_signs <= 0.01 * tally.signs, "signs");
  require(tally.regrets.empty() || (median(tally.regrets) < 0.01 && median(tally.regrets, 0.95) < 0.05), "regret");
  return missed.empty() ? "met" : "not " + missed;
}

void print(const std::string& use, const std::map<std::string, Tally>& rows) {
  fmt::print(
      "\n{}:\n\n| given -> predicted | cells | median error | 90% | in 95% | by source | half-width | interval score | "
      "wrong signs | regret, median and 95% | goals | straight line: error | 90% | wrong signs | regret | "
      "Theorem 3.8: error | 90% | wrong signs | regret |\n|{}\n",
      use, "---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
  const auto simple = [](const Simple& one) {
    return fmt::format("{:.1f}% | {:.1f}% | {} | {:.1f}, {:.1f}%", 100 * median(one.errors),
                       100 * median(one.errors, 0.9), one.wrong_signs, 100 * median(one.regrets),
                       100 * median(one.regrets, 0.95));
  };
  for (const auto& [row, tally] : rows) {
    const auto n = static_cast<double>(tally.errors.size());
    double by_source = 0;
    for (const auto& [source, held] : tally.held) {
      double sum = 0;
      for (const double one : held) sum += one;
      by_source += sum / static_cast<double>(held.size() * tally.held.size());
    }
    fmt::print(
        "| {} | {} | {:.1f}% | {:.1f}% | {:.0f}% | {:.0f}% | {:.1f}% | {:.2f} | {} of {} | {:.1f}, {:.1f}% | {} | "
        "{} | {} |\n",
        row, tally.errors.size(), 100 * median(tally.errors), 100 * median(tally.errors, 0.9), 100 * tally.covered / n,
        100 * by_source, 100 * median(tally.widths), tally.score / n, tally.wrong_signs, tally.signs,
        100 * median(tally.regrets), 100 * median(tally.regrets, 0.95), missed_goals(row, tally, by_source),
        simple(tally.line), simple(tally.theorem));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path rounds = "tests/bench/published_rounds.csv";
  int servers = 60;
  CLI::App app("Predicts published rounds from others of the same server");
  app.add_option("--rounds", rounds, "published rounds")->capture_default_str();
  app.add_option("--made-up", servers, "servers of known laws")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::vector<Server> all = published(rounds);
  for (Server& server : made_up(servers, 1)) all.push_back(std::move(server));
  std::map<std::string, std::map<std::string, Tally>> tables;
  for (const Server& server : all)
    for (const Split& split : splits_of(server)) add(server, split, tables[server.use][split.row]);
  for (const auto& [use, rows] : tables) print(use, rows);
}
