#include "analysis/core/step_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::core {
namespace {

long double slope(const VerificationCost::Point& below, const VerificationCost::Point& above) {
  return (static_cast<long double>(above.factor) - below.factor) /
         static_cast<long double>(above.tokens - below.tokens);
}

void require_legal(const StepCost& cost, std::int64_t gamma) {
  require_in("StepCost", "gamma", gamma, 0, largest_integer);
  require_in("StepCost", "c", cost.c, 0, largest_double);
  require_in("StepCost", "overhead", cost.overhead, 0, largest_double);
}

}  // namespace

VerificationCost VerificationCost::constant(double factor) {
  require_in("VerificationCost::constant", "factor", factor, least_positive, largest_double);
  VerificationCost cost;
  cost.points_.push_back({2, factor});
  return cost;
}

VerificationCost VerificationCost::table(std::span<const Point> points) {
  constexpr std::string_view function = "VerificationCost::table";
  if (points.empty()) throw std::invalid_argument("VerificationCost::table: points is empty");
  VerificationCost cost;
  cost.measured_ = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [tokens, factor] = points[i];
    require_in(function, fmt::format("tokens of point {}", i), tokens, 1, largest_integer);
    require_in(function, fmt::format("factor of point {}", i), factor, least_positive, largest_double);
    if (i > 0 && tokens <= points[i - 1].tokens) {
      throw std::invalid_argument(fmt::format("{}: point {} has {} tokens after {}, but they must increase", function,
                                              i, tokens, points[i - 1].tokens));
    }
    if (i > 0 && factor < points[i - 1].factor / 2) {
      throw std::invalid_argument(fmt::format("{}: point {} has factor {} after {}, but must have at least half of it",
                                              function, i, factor, points[i - 1].factor));
    }
    if (tokens == 1) {
      require_in(function, "factor at 1 token", factor, 1, 1);
    } else {
      cost.points_.push_back(points[i]);
    }
  }
  if (cost.points_.empty())
    throw std::invalid_argument("VerificationCost::table: points is 1 token alone, but must hold a larger number");
  const auto last = cost.points_.end() - 1;
  if (cost.points_.size() > 1) cost.last_slope_ = std::max(0.0L, slope(*(last - 1), *last));
  return cost;
}

double VerificationCost::operator()(std::int64_t n) const {
  require_in("VerificationCost", "n", n, 1, largest_integer);
  return static_cast<double>(extended(static_cast<long double>(n)));
}

long double VerificationCost::extended(long double n) const {
  const auto above =
      std::find_if(points_.begin(), points_.end(), [n](const Point& point) { return point.tokens >= n; });
  if (above == points_.end()) return points_.back().factor + last_slope_ * (n - points_.back().tokens);
  if (above->tokens == n) return above->factor;
  return (above - 1)->factor + slope(*(above - 1), *above) * (n - (above - 1)->tokens);
}

double StepCost::operator()(std::int64_t gamma) const { return static_cast<double>(extended(gamma)); }

long double StepCost::extended(std::int64_t gamma) const {
  require_legal(*this, gamma);
  if (gamma == 0) return 1;
  const auto drafts = static_cast<long double>(gamma);
  return verification.extended(drafts + 1) + c * drafts + overhead;
}

long double StepCost::extended_excess(std::int64_t gamma) const {
  require_legal(*this, gamma);
  if (gamma == 0) return 0;
  const auto drafts = static_cast<long double>(gamma);
  return verification.extended(drafts + 1) - 1 + c * drafts + overhead;
}

std::vector<StepCost::Piece> StepCost::pieces() const {
  const auto points = verification.points();
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const std::int64_t first = std::max<std::int64_t>(1, points[i].tokens - 1);
    const std::int64_t last = points[i + 1].tokens - 1;
    if (first < last) pieces.push_back({first, last, extended(first), c + slope(points[i], points[i + 1])});
  }
  const std::int64_t first = std::max<std::int64_t>(1, points.back().tokens - 1);
  pieces.push_back({first, largest_integer, extended(first), c + verification.last_slope()});
  return pieces;
}

}  // namespace specdec::core
