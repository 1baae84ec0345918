#include "analysis/theory/multi_draft.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/multi_draft_law.hpp"

namespace specdec::theory {
namespace {

using core::DraftDistribution;
using core::TargetDistribution;
using test_support::RandomCases;

// Edmonds-Karp over a matrix of capacities; node 0 is the source, the last one the sink.
double maximum_flow(std::vector<std::vector<double>> capacity) {
  const std::size_t nodes = capacity.size();
  double flow = 0;
  for (;;) {
    std::vector<std::size_t> from(nodes, nodes);
    std::vector<std::size_t> queue = {0};
    from[0] = 0;
    for (std::size_t head = 0; head < queue.size() && from[nodes - 1] == nodes; ++head) {
      for (std::size_t node = 0; node < nodes; ++node) {
        if (from[node] != nodes || capacity[queue[head]][node] <= 1e-15) continue;
        from[node] = queue[head];
        queue.push_back(node);
      }
    }
    if (from[nodes - 1] == nodes) return flow;
    double narrowest = 2;
    for (std::size_t node = nodes - 1; node != 0; node = from[node])
      narrowest = std::min(narrowest, capacity[from[node]][node]);
    for (std::size_t node = nodes - 1; node != 0; node = from[node]) {
      capacity[from[node]][node] -= narrowest;
      capacity[node][from[node]] += narrowest;
    }
    flow += narrowest;
  }
}

// visit(drafts, probability) for every sequence of k drafts, or as many as there are without replacement.
using VisitDrafts = std::function<void(const std::vector<std::size_t>&, double)>;
void each_sequence(const std::vector<double>& q, std::size_t k, Replacement replacement, const VisitDrafts& visit,
                   std::vector<std::size_t> drafts = {}, double probability = 1) {
  double left = 0;
  for (std::size_t x = 0; x < q.size(); ++x) left += q[x];
  if (drafts.size() == k || left == 0) return visit(drafts, probability);
  for (std::size_t x = 0; x < q.size(); ++x) {
    if (q[x] == 0) continue;
    std::vector<double> rest = q;
    if (replacement == Replacement::without) rest[x] = 0;
    drafts.push_back(x);
    each_sequence(rest, k, replacement, visit, drafts, probability * q[x] / left);
    drafts.pop_back();
  }
}

// The most that any rule can accept, as a flow from the sets of drafts to the tokens in them.
double most_accepted(const std::vector<double>& p, const std::vector<double>& q, std::size_t k,
                     Replacement replacement) {
  const std::size_t sets = std::size_t{1} << p.size();
  const std::size_t sink = sets + p.size() + 1;
  std::vector<std::vector<double>> capacity(sink + 1, std::vector<double>(sink + 1, 0.0));
  each_sequence(q, k, replacement, [&](const std::vector<std::size_t>& drafts, double probability) {
    std::size_t set = 0;
    for (const std::size_t x : drafts) set |= std::size_t{1} << x;
    capacity[0][1 + set] += probability;
  });
  for (std::size_t x = 0; x < p.size(); ++x) {
    capacity[1 + sets + x][sink] = p[x];
    for (std::size_t set = 0; set < sets; ++set)
      if (set >> x & 1) capacity[1 + set][1 + sets + x] = 2;
  }
  return maximum_flow(std::move(capacity));
}

// Recursive rejection, run over every sequence of drafts: [x] = P(x is accepted), and the mass that is corrected.
struct RunOverDrafts {
  std::vector<double> accepted;
  double corrected = 0;
};
RunOverDrafts run_recursive_rejection(const std::vector<double>& p, const std::vector<double>& q, std::size_t k,
                                      Replacement replacement) {
  RunOverDrafts run{std::vector<double>(p.size(), 0.0)};
  each_sequence(q, k, replacement, [&](const std::vector<std::size_t>& drafts, double probability) {
    std::vector<double> target = p;
    std::vector<double> draft = q;
    for (const std::size_t x : drafts) {
      const double accept = std::min(1.0, target[x] / draft[x]);
      run.accepted[x] += probability * accept;
      probability *= 1 - accept;
      if (probability == 0) return;
      double target_sum = 0;
      for (std::size_t y = 0; y < p.size(); ++y) target_sum += target[y] = std::max(0.0, target[y] - draft[y]);
      if (replacement == Replacement::without) draft[x] = 0;
      double draft_sum = 0;
      for (const double value : draft) draft_sum += value;
      for (double& value : target) value /= target_sum;
      for (double& value : draft) value /= draft_sum;
    }
    run.corrected += probability;
  });
  return run;
}

// Tokens of chains, every draft of every chain spelled out.
double enumerated_chain_tokens(const std::vector<double>& p, const std::vector<double>& q, std::size_t chains,
                               int levels) {
  if (levels == 0 || chains == 0) return 1;
  double tokens = 1;
  each_sequence(q, chains, Replacement::with, [&](const std::vector<std::size_t>& drafts, double probability) {
    std::vector<double> target = p;
    for (const std::size_t x : drafts) {
      const double accept = std::min(1.0, target[x] / q[x]);
      const auto alive = static_cast<std::size_t>(std::count(drafts.begin(), drafts.end(), x));
      tokens += probability * accept * enumerated_chain_tokens(p, q, alive, levels - 1);
      probability *= 1 - accept;
      if (probability == 0) return;
      double sum = 0;
      for (std::size_t y = 0; y < p.size(); ++y) sum += target[y] = std::max(0.0, target[y] - q[y]);
      for (double& value : target) value /= sum;
    }
  });
  return tokens;
}

void check_law(const MultiDraftLaw& law, const std::vector<double>& p, double optimum) {
  double by_draft = 0;
  for (const double probability : law.by_draft) by_draft += probability;
  CHECK(by_draft == Approx(law.acceptance().alpha()).margin(1e-13));
  CHECK(law.acceptance().alpha() <= optimum + 1e-13);
  for (std::size_t x = 0; x < p.size(); ++x) {
    CHECK(law.accepted[x] + law.corrected[x] == Approx(p[x]).margin(1e-14));
    CHECK(law.accepted[x] >= 0);
    CHECK(law.corrected[x] >= 0);
  }
}

}  // namespace

TEST_CASE(
    "recursive rejection emits the target's law, and no scheme of several drafts accepts more than a maximal flow") {
  RandomCases cases(6);
  for (int i = 0; i < 60; ++i) {
    const std::size_t vocab = 2 + static_cast<std::size_t>(cases.below(3));
    const std::int64_t k = 1 + cases.below(3);
    const std::vector<double> p_row = cases.row(vocab);
    const std::vector<double> q_row = cases.row(vocab);
    const TargetDistribution p(p_row);
    const DraftDistribution q(q_row);
    INFO("case " << i << ", vocab " << vocab << ", k " << k);
    for (const auto replacement : {Replacement::with, Replacement::without}) {
      const double optimum = most_accepted(p_row, q_row, static_cast<std::size_t>(k), replacement);
      CHECK(transport_acceptance(p, q, k, replacement).alpha() == Approx(optimum).margin(1e-13));
      const MultiDraftLaw law = recursive_rejection(p, q, k, replacement);
      check_law(law, p_row, optimum);
      const RunOverDrafts run = run_recursive_rejection(p_row, q_row, static_cast<std::size_t>(k), replacement);
      for (std::size_t x = 0; x < vocab; ++x) CHECK(law.accepted[x] == Approx(run.accepted[x]).margin(1e-13));
      CHECK(law.acceptance().rejection() == Approx(run.corrected).margin(1e-13));
    }
    const double optimum = transport_acceptance(p, q, k, Replacement::with).alpha();
    const double rho = k_seq_least_rho(p, q, k);
    const double sequential = k_seq_acceptance(p, q, k, rho).alpha();
    CHECK(sequential <= optimum + 1e-13);
    CHECK(sequential >= (1 - std::exp(-1.0)) * optimum - 1e-14);
    CHECK(k_seq_acceptance(p, q, k, rho * 1.25).alpha() <= sequential + 1e-13);
  }
}

TEST_CASE("one draft makes every lossless scheme speculative sampling, and more drafts accept more") {
  RandomCases cases(7);
  for (int i = 0; i < 50; ++i) {
    const std::vector<double> p_row = cases.row(6);
    const std::vector<double> q_row = cases.row(6);
    const TargetDistribution p(p_row);
    const DraftDistribution q(q_row);
    const double beta = core::acceptance_rate(p, q).alpha();
    double before[4] = {beta, beta, beta, beta};
    for (std::int64_t k = 1; k <= 4; ++k) {
      const double now[] = {recursive_rejection(p, q, k, Replacement::with).acceptance().alpha(),
                            k_seq_acceptance(p, q, k, k_seq_least_rho(p, q, k)).alpha(),
                            transport_acceptance(p, q, k, Replacement::with).alpha(),
                            transport_acceptance(p, q, k, Replacement::without).alpha()};
      for (int scheme = 0; scheme < 4; ++scheme) {
        INFO("case " << i << ", k " << k << ", scheme " << scheme);
        if (k == 1) CHECK(now[scheme] == Approx(beta).margin(1e-14));
        CHECK(now[scheme] >= before[scheme] - 1e-13);
        before[scheme] = now[scheme];
      }
      CHECK(now[3] >= now[2] - 1e-13);
    }
  }
}

TEST_CASE("the law of surviving chains equals the enumeration of all their drafts") {
  RandomCases cases(8);
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> p_row = cases.row(3);
    const std::vector<double> q_row = cases.row(3);
    const std::int64_t k = 1 + cases.below(3);
    CHECK(chains_expected_tokens(TargetDistribution(p_row), DraftDistribution(q_row), k, 3) ==
          Approx(enumerated_chain_tokens(p_row, q_row, static_cast<std::size_t>(k), 3)).epsilon(1e-13));
  }
}

}  // namespace specdec::theory
