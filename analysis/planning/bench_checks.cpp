#include "analysis/planning/bench_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace specdec::planning::bench {
namespace {

using traces::ServingCounts;

/// "temperature is 0 and 1"; empty where two runs have the same labels, but for those by which runs are told apart.
std::string differing_labels(const ServingCounts& a, const ServingCounts& b) {
  std::vector<std::string> differing;
  for (const traces::CountLabel& label : a.labels) {
    const std::string_view other = b.label(label.name);
    if (label.name == "model_name" || label.name == "server" || label.name == "category") continue;
    if (!label.value.empty() && !other.empty() && label.value != other)
      differing.push_back(fmt::format("{} is {} and {}", label.name, label.value, other));
  }
  return fmt::format("{}", fmt::join(differing, ", "));
}

/// Tokens per step that differ by less than this factor beyond their intervals differ only by rounding.
constexpr double same_acceptance = 1.02;
/// Repeated runs that differ by more than this factor contradict each other.
constexpr double runs_agree = 1.2;
/// Neighbouring times per token of one server never differ by this factor.
constexpr double far_apart = 20;

/// A plain run by how much its steps may take longer where its requests do not end and begin together.
struct PlainInStep {
  const Run* plain = nullptr;
  double factor = 1;
  /// The drafting run that says so; null if none does.
  const Run* beside = nullptr;
};

/// Requests of one length that begin together end together. Then all new prompts are read between plain tokens of
/// nobody, while drafts, accepted by chance, put requests out of step, whose tokens wait for the prompts of others.
/// With s the share of the clients that decode (batch / concurrency) and r the ratio of throughputs, a plain request
/// out of step would wait for its first token as long as a drafting one does, a share (1 - s) / r of its life:
///
///   factor = (1 - (1 - s) / r) / (share of clients that decode in the plain run)
///
/// Only where more of the clients decode with drafts, by more than chance: out of step it is fewer.
std::vector<PlainInStep> plain_in_step(const Runs& runs) {
  constexpr double more_decode = 1.01;
  const auto share = [](const Run& run) { return run.figures.batch / *run.figures.max_concurrency; };
  const auto throughput = [](const Run& run) { return run.figures.batch / run.figures.seconds_per_output_token; };
  const auto by_littles_law = [](const Run& run) {
    return run.figures.max_concurrency.value_or(1) > 1 && !run.counts->bench->batch;
  };
  std::vector<PlainInStep> found;
  for (const Run& plain : runs) {
    if (plain.speculative() || !by_littles_law(plain)) continue;
    PlainInStep its{&plain};
    for (const Run& run : runs) {
      if (!run.speculative() || !is_plain_of(plain, run) || share(run) < more_decode * share(plain)) continue;
      const double waiting = std::max(0.0, 1 - share(run)) * throughput(plain) / throughput(run);
      const double factor = (1 - waiting) / share(plain);
      if (factor > its.factor) its = {&plain, factor, &run};
    }
    found.push_back(its);
  }
  return found;
}

class Checks {
 public:
  Checks(const Runs& runs, const BenchQuestion& question, const std::string& model)
      : runs_(runs), question_(question), model_(model) {}

  std::vector<Note> notes() {
    check_acceptance();
    check_repeats();
    check_units();
    note_left_out_trees();
    return std::move(notes_);
  }

 private:
  void note(std::string code, std::string message) { notes_.push_back({std::move(code), std::move(message)}); }
  void check_acceptance();
  void check_repeats();
  void check_units();
  void note_left_out_trees();

  const Runs& runs_;
  const BenchQuestion& question_;
  const std::string& model_;
  std::vector<Note> notes_;
};

/// Warns of acceptance that the runs do not count, or not precisely.
void Checks::check_acceptance() {
  const auto list = [&](auto concerned) {
    std::vector<std::string> places;
    for (const Run& run : runs_)
      if (concerned(run)) places.push_back(run.counts->place());
    return fmt::format("{}", fmt::join(places, ", "));
  };
  const bool none_drafted = std::none_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.speculative(); });
  if (none_drafted && !question_.acceptance)
    note("acceptance_from_prior",
         "no run drafted: acceptance is that of published drafts, which a run with drafts replaces");
  const std::string silent = list([](const Run& run) { return run.speculative() && !run.says_acceptance(); });
  if (!silent.empty()) {
    note("acceptance_of_other_source",
         fmt::format(
             "{} does not say how many tokens a step made: beside a plain run its speed is known all the same, and "
             "other gammas as far as {} and all rounds together tell",
             silent,
             question_.acceptance          ? "the acceptance given beside the runs"
             : counted_runs(runs_).empty() ? "what is usual of such drafts"
                                           : "the other runs"));
  }
}

void Checks::check_repeats() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    for (std::size_t j = i + 1; j < runs_.size(); ++j) {
      const Run& a = runs_[i];
      const Run& b = runs_[j];
      if (!are_repeats(a, b)) continue;
      const std::string places = fmt::format("{} and {}", a.counts->place(), b.counts->place());
      const std::string apart = differing_labels(*a.counts, *b.counts);
      const double ratio = a.figures.seconds_per_output_token / b.figures.seconds_per_output_token;
      if (ratio < 1 / runs_agree || runs_agree < ratio) {
        note(std::string(runs_disagree),
             fmt::format("{} ran the same at {} with gamma {}, but took {:.4g} and {:.4g} ms per token{}", places,
                         load_text(a), a.figures.gamma, 1e3 * a.figures.seconds_per_output_token,
                         1e3 * b.figures.seconds_per_output_token,
                         apart.empty() ? "" : fmt::format("; {}: give the runs of one alone", apart)));
      } else if (const bool of_drafts = a.counts->label("label") != b.counts->label("label") ||
                                        a.counts->label("tag") != b.counts->label("tag");
                 of_drafts && a.speculative() && !apart.empty()) {
        note("labels_differ", fmt::format("{} ran the same; {}: are they of one draft?", places, apart));
      }
    }
  }
}

/// Milliseconds given as seconds, or vice versa, leave a gap between times per token.
void Checks::check_units() {
  std::vector<const Run*> rising;
  for (const Run& run : runs_) rising.push_back(&run);
  const auto milliseconds = [](const Run* run) { return 1e3 * run->figures.seconds_per_output_token; };
  std::stable_sort(rising.begin(), rising.end(),
                   [&](const Run* a, const Run* b) { return milliseconds(a) < milliseconds(b); });
  for (std::size_t i = 1; i < rising.size(); ++i) {
    const Run* const below = rising[i - 1];
    const Run* const above = rising[i];
    if (milliseconds(above) < far_apart * milliseconds(below)) continue;
    note("times_far_apart",
         fmt::format("{} of {} runs took up to {:.3g} ms per token ({}), and the others {:.3g} or more ({}): "
                     "some may be in another unit",
                     i, rising.size(), milliseconds(below), below->counts->place(), milliseconds(above),
                     above->counts->place()));
    return;
  }
}

/// Notes the trees that are left out, with their time beside the plain run of the same lengths and load.
void Checks::note_left_out_trees() {
  for (const ServingCounts& tree : question_.runs) {
    if (tree.label("model_name") != model_ || !is_left_out(tree, question_)) continue;
    BenchFigures lengths;
    take_lengths(*tree.bench, lengths);
    const auto plain = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
      return !run.speculative() && same_load(*run.counts, tree) && same_workload(run.figures, lengths);
    });
    std::string measured;
    if (plain != runs_.end() && tree.bench->mean_tpot_ms.value_or(0) > 0) {
      const double milliseconds = *tree.bench->mean_tpot_ms;
      measured = fmt::format("; it took {:.4g} ms per token, {:.2f}x the speed of {}", milliseconds,
                             1e3 * plain->figures.seconds_per_output_token / milliseconds, plain->counts->place());
    }
    note("tree_left_out",
         fmt::format("{} drafted trees (topk above 1), and the acceptance that is given is one of chains: what a tree "
                     "accepts of that traffic only a run of it tells{}",
                     tree.place(), measured));
  }
}

}  // namespace

std::optional<Note> contradicted_acceptance(const Runs& runs, const BenchQuestion& question,
                                            const estimate::AcceptanceCurve& of_runs) {
  double furthest = same_acceptance;
  std::string found;
  for (const Run& run : runs) {
    if (!run.says_acceptance() || run.figures.tree) continue;
    const std::int64_t gamma = run.figures.gamma;
    estimate::TokensPerStep given;
    try {
      given = question.acceptance->tokens_per_step(gamma);
    } catch (const std::domain_error&) {
      continue;  // the acceptance ends before this gamma
    }
    const estimate::TokensPerStep counted = of_runs.tokens_per_step(gamma);
    const estimate::Interval a = given.ci95, b = counted.ci95;
    const double apart = std::max(a.lo / b.hi, b.lo / a.hi);
    if (apart <= furthest) continue;
    furthest = apart;
    found = fmt::format(
        "at gamma {} the acceptance that is given makes {:.3g} tokens a step{}, and the runs counted "
        "{:.3g}{}",
        gamma, given.value, interval_text(a), counted.value, interval_text(b));
  }
  if (found.empty()) return std::nullopt;
  return Note{
      "acceptance_contradicts_runs",
      fmt::format("{}; the plan takes what is given, which is right where its traffic is not that of the runs", found)};
}

std::optional<OutOfStep> plain_out_of_step(const Runs& all) {
  constexpr double least_factor = 1.03;
  const std::vector<PlainInStep> runs = plain_in_step(all);
  if (runs.empty()) return std::nullopt;
  const PlainInStep worst =
      *std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.factor < b.factor; });
  if (worst.factor < least_factor) return std::nullopt;
  // The cost outlives the runs. Of repeats the largest factor counts.
  std::map<double, double> log_factors;
  for (const PlainInStep& run : runs) {
    double& its = log_factors[std::log(run.plain->figures.batch)];
    its = std::max(its, std::log(run.factor));
  }
  OutOfStep found;
  found.factor = [log_factors](double batch) {
    const auto above = log_factors.lower_bound(std::log(batch));
    if (above == log_factors.begin()) return std::exp(above->second);
    const auto below = std::prev(above);
    if (above == log_factors.end()) return std::exp(below->second);
    const double way = (std::log(batch) - below->first) / (above->first - below->first);
    return std::exp(std::lerp(below->second, above->second, way));
  };
  const BenchFigures &plain = worst.plain->figures, &beside = worst.beside->figures;
  found.note = {
      "plain_in_step",
      fmt::format("{}: {:.3g} of {:g} requests were decoding on average, and {:.3g} in {}: as where requests of one "
                  "length end and begin together without drafts, so that no token waits for the prompts of others, as "
                  "it does with drafts. Out of step plain tokens may take up to {:.3g} times as long, which the "
                  "intervals hold; runs whose requests differ more in length tell",
                  worst.plain->counts->place(), plain.batch, *plain.max_concurrency, beside.batch,
                  worst.beside->counts->place(), worst.factor)};
  return found;
}

std::vector<Note> notes_of_runs(const Runs& runs, const BenchQuestion& question, const std::string& model) {
  return Checks(runs, question, model).notes();
}

}  // namespace specdec::planning::bench
