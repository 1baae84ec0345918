#include "analysis/estimate/replay_estimates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using Group = ReplayEstimates::Group;
using Groups = std::vector<Group>;

constexpr std::int64_t most_batches = 10;
/// A standard error below this fraction of its value is zero up to rounding.
constexpr double no_error = 1e-12;
/// More concurrent sequences would not keep the threads busier.
constexpr std::size_t most_sequences_at_once = 512;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

Group empty_group(std::size_t gammas) { return {0, 0, 0, std::vector<double>(gammas)}; }

void add_group(Group& sum, const Group& term, double factor = 1) {
  sum.sequences += term.sequences;
  sum.tokens += factor * term.tokens;
  sum.rejections += factor * term.rejections;
  for (std::size_t i = 0; i < sum.steps.size(); ++i) sum.steps[i] += factor * term.steps[i];
}

Group sum_of(const Groups& groups, std::size_t gammas) {
  Group sum = empty_group(gammas);
  for (const Group& group : groups) add_group(sum, group);
  return sum;
}

/// `sum` plus the rejections of more positions, the mean over their depths; one by one, so that the result does not
/// depend on how they are split into calls.
double add_rejections(double sum, std::span<const double> acceptance, std::int64_t depths) {
  for (const double a : acceptance) sum += (1 - a) / static_cast<double>(depths);
  return sum;
}

void require_acceptances(std::span<const double> acceptance, std::int64_t depths, std::int64_t first) {
  const auto bad = std::find_if_not(acceptance.begin(), acceptance.end(), [](double a) { return 0 <= a && a <= 1; });
  if (bad == acceptance.end()) return;
  const std::int64_t position = first + (bad - acceptance.begin()) / depths;
  core::require_in("ReplayEstimates::add", fmt::format("acceptance at position {}", position), *bad, 0, 1);
}

/// The data that a report is computed from.
struct Material {
  const Groups& groups;  ///< the clusters of the intervals
  Group total;
  std::int64_t sequences;
  std::string units;                       ///< unit of the groups
  std::int64_t longest;                    ///< tokens of the longest text
  const std::vector<double>& most_tokens;  ///< [gamma]: the most that the length of some text allows per step
  const ReplayEstimateOptions& options;

  double cost(const Group& group, std::size_t gamma) const {
    return group.steps[gamma] * (*options.cost)(static_cast<std::int64_t>(gamma));
  }
  double speedup(const Group& group, std::size_t gamma) const { return group.tokens / cost(group, gamma); }
  std::size_t gammas() const { return total.steps.size(); }
  double acceptances() const { return total.tokens - total.rejections; }
  /// Too few of the rarer outcomes happened for the groups to show how much another recording would differ.
  bool few() const { return std::min(total.rejections, acceptances()) < few_rejections; }
  /// Drafts of a step that the longest text has room for.
  std::int64_t useful_drafts(std::size_t gamma) const {
    return std::min(static_cast<std::int64_t>(gamma), longest - 1);
  }
  /// The standard error of sum a / sum b over the groups; empty if they determine none.
  template <class Numerator, class Denominator>
  std::optional<StandardError> error_of_ratio(Numerator a, Denominator b) const {
    std::vector<RatioTerm> terms;
    for (const Group& group : groups) terms.push_back({a(group), b(group)});
    return standard_error(terms);
  }
};

std::string method_of(const Material& material) {
  const std::string replayed = "exact replay; ";
  if (material.sequences == 1 && material.groups.size() < 2)
    return replayed + "one sequence, too short for an interval";
  if (material.groups.size() < 2) return replayed + "one prompt, which determines no interval";
  const std::string few = material.few() ? ", not narrower than Eq. 1 at the ends of Wilson's interval" : "";
  if (material.sequences == 1) {
    return replayed +
           fmt::format("means of {} batches of the only sequence, Student's t{}", material.groups.size(), few);
  }
  return replayed + fmt::format("ratio of sums over {} {}, Student's t{}", material.groups.size(), material.units, few);
}

/// Tokens per step by Eq. 1 at the ends of the interval of the acceptance rate over sequences, which is never narrower
/// than Wilson's over all tokens; the batches of a single sequence count only tokens and steps. Eq. 1 knows no ends of
/// texts: its lower end is lowered by the share of full steps that they take, and its upper end is cut at their bound.
Interval tokens_at_rate_interval(const Material& material, std::size_t gamma) {
  const double rate = std::clamp(material.acceptances() / material.total.tokens, 0.0, 1.0);
  Interval rates = wilson_interval_of_share(rate, material.total.tokens);
  if (material.sequences > 1 && material.groups.size() > 1) {
    const auto error = material.error_of_ratio([](const Group& group) { return group.tokens - group.rejections; },
                                               [](const Group& group) { return group.tokens; });
    rates = hull(rates, bounded_t_interval(rate, *error, 0, 1));
  }
  const auto tokens = [&](double at) {
    return theory::expected_tokens(core::AcceptanceRate(at), material.useful_drafts(gamma));
  };
  const double most = material.most_tokens[gamma];
  const double of_full_steps = most / static_cast<double>(material.useful_drafts(gamma) + 1);
  return {std::max(1.0, of_full_steps * tokens(std::max(0.0, rates.lo))),
          std::min(most, tokens(std::min(1.0, rates.hi)))};
}

/// The interval by Student's t, widened as far as the recording requires.
std::optional<Interval> as_wide_as_known(const Material& material, std::size_t gamma, double value,
                                         const StandardError& error, const Interval& by_t) {
  if (!material.few()) return error.value > no_error * value ? std::optional(by_t) : std::nullopt;
  return hull(by_t, tokens_at_rate_interval(material, gamma));
}

Estimate tokens_per_step(const Material& material, std::size_t gamma) {
  Estimate estimate{material.total.tokens / material.total.steps[gamma], std::nullopt, method_of(material)};
  const auto error = material.error_of_ratio([](const Group& group) { return group.tokens; },
                                             [=](const Group& group) { return group.steps[gamma]; });
  if (gamma == 0) {
    estimate.ci95 = Interval{1, 1};
  } else if (error && material.longest > 1) {
    // The value may lie above the bound by rounding.
    const double most = std::max(estimate.value, material.most_tokens[gamma]);
    const Interval by_t = bounded_t_interval(estimate.value, *error, 1, most);
    estimate.ci95 = as_wide_as_known(material, gamma, estimate.value, *error, by_t);
  }
  return estimate;
}

/// The tokens per step over the cost of a step, including the interval: every step costs the same.
Estimate speedup(const Estimate& tokens, double cost) {
  Estimate estimate{tokens.value / cost, tokens.ci95, tokens.method};
  if (estimate.ci95) estimate.ci95 = Interval{tokens.ci95->lo / cost, tokens.ci95->hi / cost};
  return estimate;
}

/// True if the mean cost per token of `gamma` is above that of `best` by more than its 95% half-width.
bool told_apart(const Material& material, std::size_t gamma, std::size_t best) {
  const auto difference = [&](const Group& group) { return material.cost(group, gamma) - material.cost(group, best); };
  const auto error = material.error_of_ratio(difference, [](const Group& group) { return group.tokens; });
  return t_interval(difference(material.total) / material.total.tokens, *error).lo > 0;
}

std::size_t fastest(const Material& material) {
  std::size_t best = 0;
  for (std::size_t gamma = 1; gamma < material.gammas(); ++gamma)
    if (material.cost(material.total, gamma) < material.cost(material.total, best)) best = gamma;
  return best;
}

std::optional<BreakEven> break_even(const Material& material) {
  core::StepCost without_drafts = material.options.cost.value_or(core::StepCost{});
  without_drafts.c = 0;
  std::optional<BreakEven> best;
  for (std::int64_t gamma = 1; gamma < std::ssize(material.total.steps); ++gamma) {
    const double tokens = material.total.tokens / material.total.steps[size(gamma)];
    const double c = (tokens - without_drafts(gamma)) / static_cast<double>(gamma);
    if (c > 0 && (!best || c > best->c)) best = BreakEven{c, gamma};
  }
  return best;
}

ReplayOptimum optimum(const Material& material) {
  const std::size_t best = fastest(material);
  ReplayOptimum result;
  result.gamma = static_cast<std::int64_t>(best);
  result.speedup = material.speedup(material.total, best);
  result.at_limit = best > 0 && best + 1 == material.gammas();
  if (material.groups.size() > 1) {
    result.near_optimal_gammas.emplace();
    for (std::size_t gamma = 0; gamma < material.gammas(); ++gamma)
      if (gamma == best || !told_apart(material, gamma, best))
        result.near_optimal_gammas->push_back(static_cast<std::int64_t>(gamma));
  }
  return result;
}

ReplayReport report_of(const Material& material, std::optional<double> alpha_hat) {
  ReplayReport report;
  report.sequences = material.sequences;
  report.tokens = static_cast<std::int64_t>(material.total.tokens);
  if (report.tokens == 0) return report;
  if (material.few()) {
    const bool rejections = material.total.rejections < material.acceptances();
    const char* const what = rejections ? "rejections" : "acceptances";
    report.notes.push_back(fmt::format(
        "{:.3g} expected {}: below {:g} the intervals of tokens per step and speedup hold Eq. 1 at both ends of "
        "the interval of the acceptance rate, and too few gammas count as near the best",
        std::max(0.0, std::min(material.total.rejections, material.acceptances())), what, few_rejections));
  }
  for (std::size_t gamma = 0; gamma < material.gammas(); ++gamma) {
    GammaReplay row;
    row.gamma = static_cast<std::int64_t>(gamma);
    row.tokens_per_step = tokens_per_step(material, gamma);
    if (alpha_hat) {
      // Rows as stored may sum to a little more than 1.
      const core::AcceptanceRate rate(std::min(*alpha_hat, 1.0));
      row.iid_tokens_per_step = theory::expected_tokens(rate, row.gamma);
      row.difference = *row.iid_tokens_per_step - row.tokens_per_step.value;
    }
    if (material.options.cost) {
      row.speedup = speedup(row.tokens_per_step, (*material.options.cost)(row.gamma));
      if (alpha_hat) row.iid_speedup = *row.iid_tokens_per_step / (*material.options.cost)(row.gamma);
    }
    report.gammas.push_back(std::move(row));
  }
  report.break_even = break_even(material);
  if (material.options.cost && report.looks_at_drafts()) report.optimum = optimum(material);
  return report;
}

/// Sets what the steps of each gamma would yield if no text ended, and how many meet an end.
void look_past_ends(const theory::ReplayedRounds& rounds, ReplayReport& report) {
  for (GammaReplay& row : report.gammas) {
    double tokens = 1;
    double reached = 1;
    bool looked_at = true;
    for (std::int64_t j = 1; j <= row.gamma; ++j) {
      const double examined = rounds.examined(row.gamma, j);
      looked_at = looked_at && examined > 0;
      if (!looked_at) break;
      // Expected counts of one draft may differ in their last bit.
      reached *= std::min(1.0, rounds.accepted(row.gamma, j) / examined);
      tokens += reached;
      // Nothing is known of drafts that are never reached, nor need it be.
      if (reached == 0) break;
    }
    if (looked_at) row.unended_tokens_per_step = tokens;
    row.share_past_end =
        std::clamp(1 - rounds.steps_drafting(row.gamma, row.gamma) / rounds.steps(row.gamma), 0.0, 1.0);
  }
}

}  // namespace

namespace {

std::size_t columns_for(const theory::ReplayOptions& replay) {
  const std::size_t positions = replay.by_position ? size(replay.max_gamma) : 0;
  return 2 + (size(replay.max_gamma) + 1) + 2 * positions;
}

}  // namespace

ReplayedAtOnce replayed_at_once(const theory::ReplayOptions& replay, std::int64_t threads) {
  const std::size_t of_thread = theory::StreamingReplay::bytes(replay);
  const std::size_t of_sequence = theory::ReplayedRounds::bytes(replay.max_gamma);
  // Two thirds for the threads, which work on one sequence each; the results take the rest.
  const std::size_t working = std::clamp<std::size_t>(most_replaying_bytes / 3 * 2 / of_thread, 1, size(threads));
  const std::size_t left = most_replaying_bytes - working * of_thread;
  const std::size_t sequences = std::clamp<std::size_t>(left / of_sequence, 1, most_sequences_at_once);
  return {static_cast<std::int64_t>(working), sequences, working * of_thread + sequences * of_sequence};
}

ReplayEstimates::ReplayEstimates(ReplayEstimateOptions options)
    : options_(std::move(options)),
      stream_(options_.replay),
      halves_{theory::ReplayedTotal(options_.replay.max_gamma), theory::ReplayedTotal(options_.replay.max_gamma)},
      clusters_(columns_for(options_.replay)),
      last_gamma_(options_.replay.max_gamma),
      most_tokens_(size(options_.replay.max_gamma) + 1, 1.0) {
  core::require_in("ReplayEstimates", "threads", options_.threads, 1, 1024);
  for (std::int64_t d = 0; options_.cost && d <= options_.replay.max_gamma; ++d) (*options_.cost)(d);  // or rejects it
}

void ReplayEstimates::add(const AcceptanceColumns& columns) {
  const PositionLabels& labels = columns.labels;
  const std::size_t n = labels.size();
  const std::size_t depths = size(options_.replay.depths);
  core::require_same_size("ReplayEstimates::add", "acceptance", columns.acceptance.size(),
                          "sequence, once for each depth,", n * depths);
  if (!labels.task.empty()) core::require_same_size("ReplayEstimates::add", "task", labels.task.size(), "sequence", n);
  if (!labels.prompt.empty())
    core::require_same_size("ReplayEstimates::add", "prompt", labels.prompt.size(), "sequence", n);
  require_acceptances(columns.acceptance, options_.replay.depths, positions_);
  std::vector<std::size_t> begins;  // begins of the sequences that start here
  for (std::size_t i = 0; i < n; ++i) {
    const std::optional<std::int64_t> before = i == 0 ? current_ : labels.sequence[i - 1];
    if (labels.sequence[i] != before) begins.push_back(i);
  }
  const std::size_t first_begin = begins.empty() ? n : begins.front();
  add_to_current(columns.acceptance.first(first_begin * depths));
  if (!begins.empty()) {
    if (current_) end_sequence();
    add_whole(columns, begins);
    begin_sequence(labels, begins.back());
    add_to_current(columns.acceptance.subspan(begins.back() * depths));
  }
  positions_ += static_cast<std::int64_t>(n);
}

void ReplayEstimates::begin_sequence(const PositionLabels& labels, std::size_t at) {
  current_ = labels.sequence[at];
  current_task_ = labels.task_of(at);
  current_cluster_ = labels.cluster(at);
  prompts_ = prompts_ || labels.has_prompt(at);
  current_rejections_ = 0;
  if (++sequences_ > 1) cells_.clear();
}

void ReplayEstimates::add_to_current(std::span<const double> acceptance) {
  current_rejections_ = add_rejections(current_rejections_, acceptance, options_.replay.depths);
  if (sequences_ > 1) return stream_.add(acceptance);
  // Block by block, to record what starts in each.
  const std::size_t step = size(theory::StreamingReplay::block) * size(options_.replay.depths);
  for (std::size_t next = 0; next < acceptance.size(); next += step) {
    stream_.add(acceptance.subspan(next, std::min(step, acceptance.size() - next)));
    cover_first(stream_.covered());
  }
}

// Cells hold the steps started since the first sequence's beginning, until end differences are taken.
void ReplayEstimates::cover_first(std::int64_t tokens) {
  const double seen = cells_.empty() ? 0 : cells_.back().tokens;
  if (static_cast<double>(tokens) < seen + static_cast<double>(cell_tokens_)) return;
  Group cell = empty_group(size(options_.replay.max_gamma) + 1);
  cell.tokens = static_cast<double>(tokens);
  for (std::int64_t gamma = 0; gamma <= options_.replay.max_gamma; ++gamma) {
    cell.steps[size(gamma)] = stream_.steps_so_far(gamma);
  }
  cells_.push_back(std::move(cell));
  if (cells_.size() < most_cells) return;
  for (std::size_t i = 0; i < most_cells / 2; ++i) std::swap(cells_[i], cells_[2 * i + 1]);
  cells_.resize(most_cells / 2);
  cell_tokens_ *= 2;
}

void ReplayEstimates::add_whole(const AcceptanceColumns& columns, std::span<const std::size_t> begins) {
  const std::size_t depths = size(options_.replay.depths);
  const std::size_t whole = begins.size() - 1;
  if (whole == 0) return;
  const ReplayedAtOnce at_once = replayed_at_once(options_.replay, options_.threads);
  const std::int64_t threads = std::min(at_once.threads, static_cast<std::int64_t>(whole));
  std::vector<theory::StreamingReplay> streams;
  for (std::int64_t i = 0; i < threads; ++i) streams.emplace_back(options_.replay);
  for (std::size_t next = 0; next < whole; next += at_once.sequences) {
    const std::size_t now = std::min(at_once.sequences, whole - next);
    std::vector<theory::ReplayedRounds> rounds(now);
    std::vector<double> rejections(now);
    core::for_each_index(static_cast<std::int64_t>(now), threads, [&](std::int64_t i, std::int64_t worker) {
      const std::size_t begin = begins[next + size(i)];
      const std::size_t end = begins[next + size(i) + 1];
      theory::StreamingReplay& stream = streams[size(worker)];
      const auto acceptance = columns.acceptance.subspan(begin * depths, (end - begin) * depths);
      stream.add(acceptance);
      rejections[size(i)] = add_rejections(0, acceptance, options_.replay.depths);
      rounds[size(i)] = stream.finish_sequence();
    });
    for (std::size_t i = 0; i < now; ++i) {
      begin_sequence(columns.labels, begins[next + i]);
      count(rounds[i], rejections[i]);
    }
  }
}

void ReplayEstimates::end_sequence() { count(stream_.finish_sequence(), current_rejections_); }

void ReplayEstimates::count(const theory::ReplayedRounds& rounds, double rejections) {
  halves_[half_of(current_cluster_)] += rounds;
  longest_ = std::max(longest_, rounds.tokens());
  std::vector<double> values{static_cast<double>(rounds.tokens()), rejections};
  const std::int64_t gamma = options_.replay.max_gamma;
  for (std::int64_t g = 0; g <= gamma; ++g) {
    values.push_back(rounds.steps(g));
    const std::int64_t fewest_steps = (rounds.tokens() + g) / (g + 1);
    if (fewest_steps > 0) {
      most_tokens_[size(g)] =
          std::max(most_tokens_[size(g)], static_cast<double>(rounds.tokens()) / static_cast<double>(fewest_steps));
    }
  }
  if (options_.replay.by_position) {
    for (std::int64_t j = 1; j <= gamma; ++j) values.push_back(rounds.accepted(gamma, j));
    for (std::int64_t j = 1; j <= gamma; ++j) values.push_back(rounds.examined(gamma, j));
  }
  clusters_.add(current_cluster_, current_task_, values);
}

void ReplayEstimates::merge(const ReplayEstimates& other) {
  if (other.sequences_ == 0) return;
  for (std::size_t half = 0; half < halves_.size(); ++half) halves_[half] += other.halves_[half];
  if (sequences_ == 0) cells_ = other.cells_;
  clusters_.merge(other.clusters_);
  prompts_ = prompts_ || other.prompts_;
  positions_ += other.positions_;
  sequences_ += other.sequences_;
  longest_ = std::max(longest_, other.longest_);
  std::transform(most_tokens_.begin(), most_tokens_.end(), other.most_tokens_.begin(), most_tokens_.begin(),
                 [](double a, double b) { return std::max(a, b); });
  if (sequences_ > 1) cells_.clear();
}

void ReplayEstimates::finish() {
  if (!current_) return;
  end_sequence();
  current_.reset();
}

void ReplayEstimates::end_at(std::int64_t gamma) {
  core::require_in("ReplayEstimates::end_at", "gamma", gamma, 1, options_.replay.max_gamma);
  last_gamma_ = gamma;
}

std::vector<std::optional<Estimate>> ReplayEstimates::conditional_acceptance() const {
  std::vector<std::optional<Estimate>> result;
  if (!options_.replay.by_position) return result;
  const std::size_t gamma = size(options_.replay.max_gamma);
  const std::size_t first_accepted = 2 + (gamma + 1);
  const std::vector<Cluster> clusters = clusters_.clusters();
  for (std::size_t j = 0; j < size(last_gamma_); ++j) {
    RatioSums sums = ratio_sums(clusters, first_accepted + j, first_accepted + gamma + j);
    // Clusters in which draft j was never examined contribute nothing.
    sums.clusters.erase(std::remove_if(sums.clusters.begin(), sums.clusters.end(),
                                       [](const RatioTerm& cluster) { return !(cluster.denominator > 0); }),
                        sums.clusters.end());
    result.emplace_back();
    if (!(sums.denominator > 0)) continue;
    Estimate& rate = result.back().emplace();
    // Expected counts of one draft may differ in their last bit.
    rate.value = std::min(1.0, sums.numerator / sums.denominator);
    rate.method = std::string(ratio_over_clusters) + ", within [0, 1]";
    const auto error = standard_error(sums.clusters);
    if (error && error->value > 0) rate.ci95 = bounded_t_interval(rate.value, *error, 0, 1);
  }
  return result;
}

theory::ReplayedRounds ReplayEstimates::total() const {
  theory::ReplayedTotal total = halves_[0];
  total += halves_[1];
  return total.value();
}

Group ReplayEstimates::group_of(const Cluster& cluster) const {
  const auto steps = cluster.sums.begin() + 2;
  return {cluster.texts, cluster.sums[0], cluster.sums[1], {steps, steps + last_gamma_ + 1}};
}

Groups ReplayEstimates::groups_of(const std::vector<Cluster>& clusters) const {
  Groups groups;
  for (const Cluster& cluster : clusters) groups.push_back(group_of(cluster));
  return groups;
}

// Nearly equal batches of whole cells; the last one takes the rest.
Groups ReplayEstimates::batches_of_only_sequence() const {
  const Group whole = group_of(clusters_.clusters().front());
  const auto cells = static_cast<std::int64_t>(cells_.size());
  const std::int64_t batches = std::min(most_batches, cells);
  if (batches < 2) return {whole};
  Groups result;
  Group before = empty_group(size(last_gamma_) + 1);
  for (std::int64_t batch = 1; batch <= batches; ++batch) {
    const Group& until = batch == batches ? whole : cells_[size(batch * cells / batches) - 1];
    result.push_back(until);
    result.back().steps.resize(size(last_gamma_) + 1);
    add_group(result.back(), before, -1);
    before = until;
  }
  return result;
}

std::string ReplayEstimates::units() const {
  const std::string units = prompts_ ? "prompts" : "sequences";
  return clusters_.bucketed() ? "groups of " + units : units;
}

ReplayReport ReplayEstimates::report(std::optional<double> alpha_hat) const {
  if (clusters_.empty()) return {};
  Groups groups = groups_of(clusters_.clusters());
  const Group total = sum_of(groups, size(last_gamma_) + 1);
  if (sequences_ == 1) groups = batches_of_only_sequence();
  ReplayReport report = report_of({groups, total, sequences_, units(), longest_, most_tokens_, options_}, alpha_hat);
  if (options_.replay.by_position) look_past_ends(this->total(), report);
  return report;
}

std::map<std::int32_t, ReplayReport> ReplayEstimates::by_task(const std::map<std::int32_t, double>& alpha_hat) const {
  std::map<std::int32_t, ReplayReport> reports;
  for (const auto& clusters : clusters_.by_task()) {
    const std::int32_t task = clusters.front().task;
    const auto found = alpha_hat.find(task);
    const std::optional<double> alpha = found == alpha_hat.end() ? std::nullopt : std::optional(found->second);
    if (sequences_ == 1) {
      reports.emplace(task, report(alpha));
      continue;
    }
    const Groups groups = groups_of(clusters);
    const Group total = sum_of(groups, size(last_gamma_) + 1);
    reports.emplace(task,
                    report_of({groups, total, total.sequences, units(), longest_, most_tokens_, options_}, alpha));
  }
  return reports;
}

}  // namespace specdec::estimate
