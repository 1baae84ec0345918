#include "analysis/estimate/tier_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/core/row_statistics.hpp"
#include "analysis/estimate/top_k_bounds.hpp"

namespace specdec::estimate {
namespace {

using traces::OwnedBatch;
using traces::PositionBatch;
using traces::Role;
using traces::Tier;

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The columns without lists, for another tier.
OwnedBatch without_lists(const PositionBatch& batch, Tier tier) {
  OwnedBatch out = traces::copy_of(batch);
  out.tier = tier;
  out.target_top_k = out.draft_top_k = {};
  return out;
}

/// Two rows in double over one vocabulary.
struct Rows {
  std::vector<double> target, draft, narrow;
  std::vector<std::int32_t> order;
};

void read(const PositionBatch& batch, std::int64_t i, Rows& rows) {
  const auto require = [&](Role role, const std::optional<core::RowFault>& fault) {
    if (fault) throw NotConvertible(batch.first + i, role, found(*fault), expected(*fault));
  };
  rows.target.resize(index(batch.target_rows.vocab));
  require(Role::target, core::read_probabilities(batch.target_rows[i], core::RowRole::target, rows.target));
  if (batch.draft_vocab_map.empty()) {
    rows.draft.resize(index(batch.draft_rows.vocab));
    require(Role::draft, core::read_probabilities(batch.draft_rows[i], core::RowRole::draft, rows.draft));
    return;
  }
  rows.narrow.resize(index(batch.draft_rows.vocab));
  require(Role::draft, core::read_probabilities(batch.draft_rows[i], core::RowRole::draft, rows.narrow));
  rows.draft.assign(rows.target.size(), 0);
  for (std::size_t c = 0; c < rows.narrow.size(); ++c) rows.draft[index(batch.draft_vocab_map[c])] = rows.narrow[c];
}

float overlap_of(const Rows& rows) {
  double sum = 0;
  for (std::size_t x = 0; x < rows.target.size(); ++x) sum += std::min(rows.target[x], rows.draft[x]);
  return static_cast<float>(std::min(1.0, sum));
}

float logprob(double probability) { return static_cast<float>(std::log(probability)); }

/// 1 for the largest, the lower index first among equals.
std::int32_t rank_of(const std::vector<double>& row, std::size_t token) {
  std::int32_t rank = 1;
  for (std::size_t x = 0; x < row.size(); ++x) {
    if (row[x] > row[token] || (row[x] == row[token] && x < token)) ++rank;
  }
  return rank;
}

/// The k largest of a row in descending order, and the mass of the others, including what the row lacks to sum to 1.
void cut(const std::vector<double>& row, std::int64_t position, std::vector<std::int32_t>& order,
         OwnedBatch::TopKColumns& out) {
  order.resize(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto more_probable = [&](std::int32_t a, std::int32_t b) {
    return row[index(a)] != row[index(b)] ? row[index(a)] > row[index(b)] : a < b;
  };
  const auto k = static_cast<std::ptrdiff_t>(out.k);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), more_probable);
  double listed = 0;
  for (std::ptrdiff_t j = 0; j < k; ++j) {
    const std::int32_t x = order[static_cast<std::size_t>(j)];
    out.ids[index(position * out.k + j)] = x;
    out.logprobs[index(position * out.k + j)] = logprob(row[index(x)]);
    listed += row[index(x)];
  }
  double others = 0;
  for (auto x = order.begin() + k; x != order.end(); ++x) others += row[index(*x)];
  out.tail_logprob[index(position)] = logprob(std::max(0.0, others + std::max(0.0, 1 - listed - others)));
}

void gather(const std::vector<double>& row, std::int64_t position, const OwnedBatch::TopKColumns& other,
            OwnedBatch::TopKColumns& out) {
  for (std::int64_t j = position * other.k; j < (position + 1) * other.k; ++j) {
    out.at_other[index(j)] = logprob(row[index(other.ids[index(j)])]);
  }
}

void allocate(OwnedBatch::TopKColumns& list, std::int64_t k, std::int64_t positions) {
  list.k = k;
  list.ids.resize(index(positions * k));
  list.logprobs.resize(index(positions * k));
  list.tail_logprob.resize(index(positions));
  list.at_other.resize(index(positions * k));
}

/// Columns of the scalar tier that the recording lacks.
struct Missing {
  bool logprobs, overlap, target_rank, draft_rank;
};

Missing allocate_scalars(const PositionBatch& batch, OwnedBatch& out) {
  const bool tokens = !batch.token.empty();
  const Missing missing{tokens && (batch.target_token_logprob.empty() || batch.draft_token_logprob.empty()),
                        batch.overlap.empty(), tokens && batch.target_token_rank.empty(),
                        tokens && batch.draft_token_rank.empty()};
  const std::size_t n = index(batch.size);
  if (missing.logprobs) {
    out.depths = 1;
    out.target_token_logprob.assign(n, unknown);
    out.draft_token_logprob.assign(n, unknown);
  }
  if (missing.overlap) out.overlap.assign(n, unknown);
  if (missing.target_rank) out.target_token_rank.assign(n, 0);
  if (missing.draft_rank) out.draft_token_rank.assign(n, 0);
  return missing;
}

void store_scalars(const Rows& rows, std::int64_t token, std::size_t i, const Missing& missing, OwnedBatch& out) {
  if (missing.overlap) out.overlap[i] = overlap_of(rows);
  if (token < 0) return;
  const std::size_t x = index(token);
  if (missing.logprobs) {
    out.target_token_logprob[i] = logprob(rows.target[x]);
    out.draft_token_logprob[i] = logprob(rows.draft[x]);
  }
  if (missing.target_rank) out.target_token_rank[i] = rank_of(rows.target, x);
  if (missing.draft_rank) out.draft_token_rank[i] = rank_of(rows.draft, x);
}

OwnedBatch from_full(const PositionBatch& batch, const ConversionOptions& options) {
  OwnedBatch out = without_lists(batch, options.tier);
  const Missing missing = allocate_scalars(batch, out);
  const bool lists = options.tier == Tier::top_k;
  const std::int64_t k = std::min(options.k, batch.target_rows.vocab);
  if (lists) {
    allocate(out.target_top_k, k, batch.size);
    allocate(out.draft_top_k, k, batch.size);
  }
  std::vector<Rows> workspaces(index(options.threads));
  core::for_each_index(batch.size, options.threads, [&](std::int64_t i, std::int64_t worker) {
    Rows& rows = workspaces[index(worker)];
    read(batch, i, rows);
    store_scalars(rows, batch.token.empty() ? -1 : batch.token[index(i)], index(i), missing, out);
    if (!lists) return;
    cut(rows.target, i, rows.order, out.target_top_k);
    cut(rows.draft, i, rows.order, out.draft_top_k);
    gather(rows.target, i, out.draft_top_k, out.target_top_k);
    gather(rows.draft, i, out.target_top_k, out.draft_top_k);
  });
  return out;
}

/// The smallest rank that a list allows: the number of its tokens before this one, plus one.
std::int32_t least_rank(const traces::TopK& list, std::int64_t i, std::int32_t token) {
  const auto ids = list.ids.subspan(index(i * list.k), index(list.k));
  const auto logprobs = list.logprobs.subspan(index(i * list.k), index(list.k));
  const auto at = std::find(ids.begin(), ids.end(), token);
  const float own =
      at == ids.end() ? -std::numeric_limits<float>::infinity() : logprobs[static_cast<std::size_t>(at - ids.begin())];
  std::int32_t rank = 1;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const bool before = logprobs[j] > own || (logprobs[j] == own && ids[j] < token);
    if (ids[j] >= 0 && ids[j] != token && (at == ids.end() || before)) ++rank;
  }
  return rank;
}

OwnedBatch scalar_from_top_k(const PositionBatch& batch) {
  OwnedBatch out = without_lists(batch, Tier::scalar);
  const Missing missing = allocate_scalars(batch, out);
  TopKBounder bounder;
  TopKBounds bounds;
  const auto known = [](const Interval& interval) { return interval.lo == interval.hi; };
  for (std::int64_t i = 0; i < batch.size; ++i) {
    if (const auto fault = bounder.bounds(pair_at(batch, std::nullopt, i), top_k_tolerance, bounds)) {
      throw NotConvertible(batch.first + i, fault->role, fault->found, fault->expected);
    }
    if (missing.overlap && known(bounds.overlap)) out.overlap[index(i)] = static_cast<float>(bounds.overlap.lo);
    const std::int32_t token = batch.token.empty() ? -1 : batch.token[index(i)];
    if (token < 0) continue;
    if (missing.logprobs) {
      if (!known(bounds.target_token_probability) || !known(bounds.draft_token_probability)) {
        throw NotConvertible(
            batch.first + i, known(bounds.target_token_probability) ? Role::draft : Role::target,
            fmt::format("without the emitted token {}", token),
            "with that token's probability, which the scalar tier needs; record it, or keep the top-k tier");
      }
      out.target_token_logprob[index(i)] = logprob(bounds.target_token_probability.lo);
      out.draft_token_logprob[index(i)] = logprob(bounds.draft_token_probability.lo);
    }
    if (missing.target_rank) out.target_token_rank[index(i)] = least_rank(batch.target_top_k, i, token);
    if (missing.draft_rank) out.draft_token_rank[index(i)] = least_rank(batch.draft_top_k, i, token);
  }
  return out;
}

}  // namespace

NotConvertible::NotConvertible(std::int64_t position, Role role, const std::string& found, const std::string& expected)
    : std::invalid_argument(fmt::format("convert: the {} at position {} is {}, but must be {}",
                                        role == Role::target ? "target" : "draft", position, found, expected)),
      position_(position),
      role_(role),
      found_(found),
      expected_(expected) {}

OwnedBatch convert(const PositionBatch& batch, const ConversionOptions& options) {
  core::require_in("convert", "k", options.k, std::int64_t{1}, std::numeric_limits<std::int32_t>::max());
  core::require_in("convert", "threads", options.threads, std::int64_t{1}, std::int64_t{1024});
  const bool to_lists = options.tier == Tier::top_k;
  const bool to_scalars = options.tier == Tier::scalar;
  if (batch.tier == Tier::full && (to_lists || to_scalars)) return from_full(batch, options);
  if (batch.tier == Tier::top_k && to_scalars) return scalar_from_top_k(batch);
  if (batch.tier == options.tier && batch.tier != Tier::full) return traces::copy_of(batch);
  throw std::domain_error(fmt::format("convert: tier is {}, but the recording's {} tier does not hold what that needs",
                                      name_of(options.tier), name_of(batch.tier)));
}

}  // namespace specdec::estimate
