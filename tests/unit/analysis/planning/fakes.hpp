#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

/// Acceptance and cost as functions that a test writes down.
namespace fakes {

using namespace specdec;

class Cost : public cost::RoundCost {
 public:
  using Time = std::function<cost::RoundTime(const cost::RoundPoint&)>;
  using Holds = std::function<bool(const cost::RoundPoint&)>;

  explicit Cost(Time time, bool seconds = true) : time_(std::move(time)), seconds_(seconds) {}

  /// Replicate i multiplies all speculative rounds by factors[i].
  std::vector<double> factors;
  Holds measured = [](const cost::RoundPoint&) { return true; };
  Holds split = [](const cost::RoundPoint&) { return true; };

  std::string_view name() const override { return "fake"; }
  bool in_seconds() const override { return seconds_; }
  cost::DraftKind kind() const override { return cost::DraftKind::model; }
  bool extrapolates(const cost::RoundPoint& point) const override { return !measured(point); }
  bool parts_known(const cost::RoundPoint& point) const override { return split(point); }
  std::size_t replicates() const override { return factors.size(); }
  cost::RoundTime price(std::size_t version, const cost::RoundPoint& point) const override {
    const cost::RoundTime time = time_(point);
    if (point.gamma == 0 || version == 0) return time;
    const double factor = factors[version - 1];
    return {time.target * factor, time.draft * factor, time.overhead * factor};
  }

 private:
  Time time_;
  bool seconds_;
};

class Curve : public estimate::AcceptanceCurve {
 public:
  using Tokens = std::function<estimate::TokensPerStep(std::int64_t gamma)>;
  explicit Curve(Tokens tokens) : tokens_(std::move(tokens)) {}
  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override { return tokens_(gamma); }

 private:
  Tokens tokens_;
};

/// E[K] at a constant rate, by its sum; the interval is a factor of it.
inline estimate::TokensPerStep constant_rate(double alpha, std::int64_t gamma, estimate::Interval ci95 = {1, 1}) {
  estimate::TokensPerStep tokens;
  double sum = 0;
  for (std::int64_t j = 0; j <= gamma; ++j) sum += std::pow(alpha, static_cast<double>(j));
  tokens.value = sum;
  if (gamma == 0) return tokens;
  tokens.ci95 = {sum * ci95.lo, sum * ci95.hi};
  tokens.full_accepts = std::pow(alpha, static_cast<double>(gamma));
  return tokens;
}

/// A model on an accelerator: the larger one of reading and computing, for weights and for attention.
struct Roofline {
  double weight_bytes, parameters, cache_bytes_per_token, attention_flops_per_token;
  static constexpr double bytes_per_second = 4.8e12;
  static constexpr double flops_per_second = 1978.9e12;

  double seconds(double tokens, double batch, double context) const {
    const double pairs = tokens * context + tokens * (tokens + 1) / 2;
    return std::max(weight_bytes / bytes_per_second, 2 * parameters * batch * tokens / flops_per_second) +
           std::max(batch * (context + tokens) * cache_bytes_per_token / bytes_per_second,
                    attention_flops_per_token * batch * pairs / flops_per_second);
  }
};

inline Roofline llama_70b() { return {69501714432.0, 69501714432.0, 327680, 2621440}; }
inline Roofline llama_8b() { return {7504658432.0, 7504658432.0, 131072, 524288}; }
inline Roofline llama_1b() { return {1235746816.0, 1235746816.0, 32768, 131072}; }

/// Target and draft model on one accelerator, without overhead.
inline Cost pair_cost(const Roofline& target, const Roofline& draft) {
  return Cost([=](const cost::RoundPoint& at) {
    const auto gamma = static_cast<double>(at.gamma);
    return cost::RoundTime{target.seconds(gamma + 1, at.batch, at.context),
                           gamma * draft.seconds(1, at.batch, at.context), 0};
  });
}

}  // namespace fakes
