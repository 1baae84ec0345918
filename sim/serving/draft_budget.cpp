#include "sim/serving/draft_budget.hpp"

#include <algorithm>
#include <tuple>

namespace specdec::sim {
namespace {

struct RankedDraft {
  double survival;
  std::int64_t position;  // 0-based
  std::size_t sequence;   // among those that compete

  bool operator<(const RankedDraft& other) const {
    return std::tuple(-survival, position, sequence) < std::tuple(-other.survival, other.position, other.sequence);
  }
};

/// The number of first drafts that gives most tokens per second.
std::size_t best_number(std::span<const RankedDraft> ranked, std::size_t sequences, std::span<const double> seconds) {
  const auto price = [&](std::size_t drafts) {
    const std::size_t whole = drafts / sequences, rest = drafts % sequences;
    const double part = static_cast<double>(rest) / static_cast<double>(sequences);
    return rest == 0 ? seconds[whole] : seconds[whole] + part * (seconds[whole + 1] - seconds[whole]);
  };
  double tokens = static_cast<double>(sequences), best_tokens = tokens, best_price = price(0);
  std::size_t best = 0;
  for (std::size_t drafts = 1; drafts <= ranked.size(); ++drafts) {
    tokens += ranked[drafts - 1].survival;
    const double its_price = price(drafts);
    if (tokens * best_price <= best_tokens * its_price) continue;
    best = drafts;
    best_tokens = tokens;
    best_price = its_price;
  }
  return best;
}

}  // namespace

DraftBudget::DraftBudget(std::int64_t gamma, std::size_t sequences)
    : gamma_(static_cast<std::size_t>(gamma)), counts_(gamma_ * sequences), of_all_(gamma_) {}

std::vector<std::int64_t> DraftBudget::verified(std::span<const std::size_t> places, std::int64_t gamma,
                                                std::span<const double> seconds) const {
  std::vector<double> expected;
  for (const Counts& seen : of_all_)
    expected.push_back((static_cast<double>(seen.accepted) + 1) / (static_cast<double>(seen.reached) + 1));
  std::vector<RankedDraft> ranked;
  ranked.reserve(places.size() * static_cast<std::size_t>(gamma));
  for (std::size_t s = 0; s < places.size(); ++s) {
    double survival = 1;
    for (std::int64_t k = 0; k < gamma; ++k) {
      const auto position = static_cast<std::size_t>(k);
      const Counts& seen = counts_[places[s] * gamma_ + position];
      survival *=
          (static_cast<double>(seen.accepted) + 2 * expected[position]) / (static_cast<double>(seen.reached) + 2);
      ranked.push_back({survival, k, s});
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::int64_t> verified(places.size(), 0);
  const std::size_t best = best_number(ranked, places.size(), seconds);
  for (std::size_t i = 0; i < best; ++i) ++verified[ranked[i].sequence];
  return verified;
}

void DraftBudget::count(std::size_t place, std::int64_t verified, std::int64_t accepted) {
  const std::span<Counts> counts = of(place);
  for (std::int64_t k = 0; k < std::min(verified, accepted + 1); ++k) {
    counts[static_cast<std::size_t>(k)].add(k < accepted);
    of_all_[static_cast<std::size_t>(k)].add(k < accepted);
  }
}

void DraftBudget::forget(std::size_t place) { std::ranges::fill(of(place), Counts()); }

void DraftBudget::move(std::size_t from, std::size_t to) { std::ranges::copy(of(from), of(to).begin()); }

}  // namespace specdec::sim
