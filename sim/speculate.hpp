#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <latch>
#include <limits>
#include <optional>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

/// Stochastic speculative execution of any two functions: f gives the law from which the input of g is drawn, and g
/// starts on a guess of its input while f still computes. A standalone header that needs only the standard library:
/// nothing is linked.
namespace specdec::sim {

/// Returns independent uniform numbers in [0, 1), one per call.
template <class U>
concept UniformNumbers = requires(U& uniform) {
  { uniform() } -> std::convertible_to<double>;
};

/// A law of the numbers 0, 1, 2, ... as their weights: each >= 0, the sum positive and finite; it is divided out.
template <class L>
concept WeightRow = std::ranges::random_access_range<const L> && std::ranges::sized_range<const L> &&
    std::floating_point<std::ranges::range_value_t<const L>>;

/// A law of values of any kind, which gives its density at a value, >= 0 and finite, and draws values. Densities of two
/// laws that are compared must refer to one measure: probabilities of both, or densities of both.
template <class L>
concept DensityLaw = requires(const L& law, const typename L::value_type& value, double (&uniform)()) {
  { law.density(value) } -> std::convertible_to<double>;
  { law.sample(uniform) } -> std::convertible_to<typename L::value_type>;
};

template <class L>
concept InputLaw = WeightRow<L> || DensityLaw<L>;

namespace detail {

template <class L>
struct DrawnValue {
  using type = std::size_t;
};
template <DensityLaw L>
struct DrawnValue<L> {
  using type = typename L::value_type;
};

inline void require_nonnegative(std::string_view name, double value) {
  if (0 <= value && value <= std::numeric_limits<double>::max()) return;
  std::ostringstream text;
  text << "speculate: " << name << " is " << value << ", but must be in [0, inf)";
  throw std::domain_error(text.str());
}

template <WeightRow L>
double weight_at(const L& weights, std::size_t x) {
  return static_cast<double>(std::ranges::begin(weights)[static_cast<std::ranges::range_difference_t<const L>>(x)]);
}

template <class Weight>
double weight_total(std::size_t size, const Weight& weight) {
  double total = 0;
  for (std::size_t x = 0; x < size; ++x) total += weight(x);
  return total;
}

/// Never the index of a weight 0, since the sums are those that add up to `total`.
template <class Weight>
std::size_t draw_by_weight(std::size_t size, const Weight& weight, double total, double u) {
  double cumulative = 0;
  std::size_t last_possible = 0;
  for (std::size_t x = 0; x < size; ++x) {
    if (!(weight(x) > 0)) continue;
    cumulative += weight(x);
    last_possible = x;
    if (cumulative > u * total) break;
  }
  return last_possible;
}

template <WeightRow L>
double valid_total(const L& weights) {
  const double total = weight_total(std::ranges::size(weights), [&](std::size_t x) {
    const double weight = weight_at(weights, x);
    require_nonnegative("weight", weight);
    return weight;
  });
  require_nonnegative("sum of weights", total);
  if (total > 0) return total;
  throw std::domain_error("speculate: sum of weights is 0, but must be positive");
}

}  // namespace detail

/// The type that a law draws: the index of a weight, or a value.
template <InputLaw L>
using ValueOf = typename detail::DrawnValue<L>::type;

/// Draws a value from the law. One uniform for weights (inverse CDF); as many as law.sample takes for others.
/// @throws std::domain_error if a weight is negative or NaN, or their sum is not positive and finite
template <InputLaw L, UniformNumbers U>
ValueOf<L> draw_from(const L& law, U& uniform) {
  if constexpr (DensityLaw<L>) {
    return law.sample(uniform);
  } else {
    const double total = detail::valid_total(law);
    return detail::draw_by_weight(
        std::ranges::size(law), [&](std::size_t x) { return detail::weight_at(law, x); }, total, uniform());
  }
}

/// The law's density at a value: a weight over the sum of all, or law.density.
/// @throws std::domain_error as draw_from; if the density is negative, NaN or infinite; or if there is no such weight
template <InputLaw L>
double density_at(const L& law, const ValueOf<L>& value) {
  if constexpr (DensityLaw<L>) {
    const double density = law.density(value);
    detail::require_nonnegative("density", density);
    return density;
  } else {
    if (value >= std::ranges::size(law)) throw std::domain_error("speculate: value is behind the last weight");
    return detail::weight_at(law, value) / detail::valid_total(law);
  }
}

/// The number of residual draws by rejection after which settle_guess gives up.
inline constexpr std::int64_t most_residual_draws = 100'000'000;

template <class Value>
struct SettledGuess {
  Value value;
  bool accepted;
};

/// Speculative sampling: a guess of law q is kept or replaced, so that the result has law p.
///
///   the guess is kept iff u q(guess) < p(guess);   else a value of norm(max(0, p - q))
///
/// The residual is drawn in one step if both laws are weights, else by rejection: values of p, each kept with
/// probability max(0, 1 - q / p). That takes 1 / (1 - beta) of them on average, with beta the probability that the
/// guess is kept, so one per call whatever beta is.
///
/// Uniforms: one for the guess, then one for a residual of weights; or for each value of p those of its draw plus one.
///
/// Source:   Leviathan et al. 2023, section 2.3; docs/reference/methods.md#speculative-execution
/// @param guess  drawn from q, with other uniforms
/// @throws std::domain_error as density_at; std::invalid_argument if p and q are weights of different numbers of
///         values; std::runtime_error if none of most_residual_draws values was kept, as for densities that are not
///         those of the values drawn (a valid pair gets there with probability below 4e-9)
template <InputLaw P, InputLaw Q, UniformNumbers U>
requires std::same_as<ValueOf<P>, ValueOf<Q>> SettledGuess<ValueOf<P>> settle_guess(const P& p, const Q& q,
                                                                                    ValueOf<Q> guess, U& uniform) {
  if constexpr (WeightRow<P> && WeightRow<Q>) {
    const std::size_t size = std::ranges::size(p);
    if (size != std::ranges::size(q)) {
      std::ostringstream text;
      text << "speculate: f gave " << size << " weights, but f_star " << std::ranges::size(q);
      throw std::invalid_argument(text.str());
    }
    if (uniform() * density_at(q, guess) < density_at(p, guess)) return {guess, true};
    const double p_total = detail::valid_total(p);
    const double q_total = detail::valid_total(q);
    const auto residual = [&](std::size_t x) {
      return std::max(0.0, detail::weight_at(p, x) / p_total - detail::weight_at(q, x) / q_total);
    };
    const double mass = detail::weight_total(size, residual);
    // Laws that agree to rounding leave no residual.
    if (mass <= 4 * std::numeric_limits<double>::epsilon()) return {draw_from(p, uniform), false};
    return {detail::draw_by_weight(size, residual, mass, uniform()), false};
  } else {
    if (uniform() * density_at(q, guess) < density_at(p, guess)) return {std::move(guess), true};
    for (std::int64_t i = 0; i < most_residual_draws; ++i) {
      ValueOf<P> value = draw_from(p, uniform);
      const double density = density_at(p, value);
      if (uniform() * density < density - density_at(q, value)) return {std::move(value), false};
    }
    throw std::runtime_error("speculate: no draw of f's law was kept as one of the residual");
  }
}

namespace detail {

template <class G, class Y>
decltype(auto) call_on(const G& g, const Y& input, std::stop_token stop) {
  if constexpr (std::invocable<const G&, const Y&, std::stop_token>)
    return std::invoke(g, input, std::move(stop));
  else
    return std::invoke(g, input);
}

/// The results of the guess's thread, to be read once `drawn` or the thread's end allows it.
template <class Q, class Y, class Result>
struct GuessWork {
  std::optional<Q> law;
  std::optional<Y> guess;
  std::exception_ptr law_error;
  std::latch drawn{1};
  std::optional<Result> result;
  std::exception_ptr result_error;
};

}  // namespace detail

/// The result of g, and how its input was obtained.
template <class Y, class Result>
struct Speculation {
  Result result;
  Y input;
  /// True if there was a guess to be judged when f returned.
  bool guessed;
  /// True if the input is the guess.
  bool accepted;
};

/// g of a sample of f(x), with g running beside f on a sample of f_star(x). The law of the result is that of the serial
/// g(sample of f(x)), whatever f_star is; f_star determines how often time is saved.
///
/// f(x) runs on the calling thread; f_star(x) and g of the guess on another one. When f returns, settle_guess decides.
/// An accepted guess is waited for. A rejected one is discarded: g runs anew on the calling thread, and the other
/// g, which must have no lasting effect, is stopped through its std::stop_token if it takes one. If f returns before
/// f_star, no guess is drawn and g runs on a sample of f(x). docs/theory.md#speculative-execution has the time, to which
/// starting a thread adds. On return nothing is running: a g that ignores its token is waited for, as is f_star.
///
/// f, f_star and g are called from two threads concurrently; `uniform` is used by one thread at a time.
///
/// Source:   Leviathan et al. 2023, Section 6; docs/reference/methods.md#speculative-execution
/// @param f, f_star  take a `const X&`; return laws of one kind of value: vectors of weights, or a DensityLaw each
/// @param g          takes a value, or a value and a std::stop_token; returns a movable object
/// @return the result; a stopped g's result is discarded
/// @throws the exception of f, else of f_star, else of settle_guess, else of the g that was needed; that of a discarded
///         g is discarded with it
template <class F, class FStar, class G, class X, UniformNumbers U>
auto speculate(const F& f, const FStar& f_star, const G& g, const X& x, U&& uniform) {
  using P = std::remove_cvref_t<std::invoke_result_t<const F&, const X&>>;
  using Q = std::remove_cvref_t<std::invoke_result_t<const FStar&, const X&>>;
  static_assert(InputLaw<P> && InputLaw<Q>, "f and f_star have to give laws");
  using Y = ValueOf<P>;
  static_assert(std::same_as<Y, ValueOf<Q>>, "f and f_star have to give laws of one kind of value");
  using Result = std::remove_cvref_t<decltype(detail::call_on(g, std::declval<const Y&>(), std::stop_token()))>;

  detail::GuessWork<Q, Y, Result> work;
  // Whichever comes first, f with its law or f_star with a guess to be drawn, decides whether there is a guess: before
  // it is drawn, so that the decision does not depend on it.
  std::atomic_flag decided;
  std::jthread guessing([&](const std::stop_token& stop) {
    try {
      work.law.emplace(std::invoke(f_star, x));
      if (decided.test_and_set()) return;
      work.guess.emplace(draw_from(*work.law, uniform));
    } catch (...) {
      work.law_error = std::current_exception();
      decided.test_and_set();
    }
    work.drawn.count_down();
    if (work.law_error) return;
    try {
      work.result.emplace(detail::call_on(g, *work.guess, stop));
    } catch (...) {
      work.result_error = std::current_exception();
    }
  });

  // If f throws, the thread's destructor stops it and waits for it.
  const P p = std::invoke(f, x);
  const bool guessed = decided.test_and_set();
  if (guessed) {
    work.drawn.wait();
    if (work.law_error) std::rethrow_exception(work.law_error);
  }
  SettledGuess<Y> settled =
      guessed ? settle_guess(p, *work.law, *work.guess, uniform) : SettledGuess<Y>{draw_from(p, uniform), false};
  if (settled.accepted) {
    guessing.join();
  } else {
    guessing.request_stop();
    std::optional<Result> fresh;
    std::exception_ptr error;
    try {
      fresh.emplace(detail::call_on(g, settled.value, std::stop_token()));
    } catch (...) {
      error = std::current_exception();
    }
    guessing.join();
    if (work.law_error) std::rethrow_exception(work.law_error);
    work.result = std::move(fresh);
    work.result_error = error;
  }
  if (work.result_error) std::rethrow_exception(work.result_error);
  return Speculation<Y, Result>{std::move(*work.result), std::move(settled.value), guessed, settled.accepted};
}

}  // namespace specdec::sim
