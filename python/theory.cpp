#include "python/bindings.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>

#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/other_drafts.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "python/arguments.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

using core::AcceptanceRate;
using core::StepCost;

template <class Value>
using Column = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// Shape: (results, elements)
using Results = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

template <class Value>
Value at(const Column<Value>& column, std::size_t i) {
  return column.data()[column.size() == 1 ? 0 : i];
}

/// Acceptance rates, or where `rejection` says so what they lack of 1.
struct Rates {
  const Column<double>& values;
  bool rejection;

  AcceptanceRate operator[](std::size_t i) const {
    const double value = at(values, i);
    return rejection ? AcceptanceRate::from_rejection(value) : AcceptanceRate(value);
  }
};

void put(const Results& out, std::size_t i, double result) { out.data()[i] = result; }

template <std::size_t Count>
void put(const Results& out, std::size_t i, const std::array<double, Count>& results) {
  for (std::size_t k = 0; k < Count; ++k) out.data()[k * out.shape(1) + i] = results[k];
}

/// Says which of several elements it was.
template <class Error>
[[noreturn]] void rethrow(const Error& error, std::size_t i, std::size_t count) {
  if (count == 1) throw error;
  throw Error(fmt::format("{} (element {})", error.what(), i));
}

/// out[:, i] = result(i) for all i, other threads of Python running meanwhile; Ctrl-C ends it.
template <class Result>
void fill(const Results& out, const Result& result) {
  constexpr std::size_t stretch = std::size_t{1} << 14U;
  const std::size_t count = out.shape(1);
  for (std::size_t first = 0; first < count; first += stretch) {
    {
      const nb::gil_scoped_release released;
      for (std::size_t i = first; i < std::min(count, first + stretch); ++i) {
        try {
          put(out, i, result(i));
        } catch (const std::domain_error& error) {
          rethrow(error, i, count);
        } catch (const std::invalid_argument& error) {
          rethrow(error, i, count);
        }
      }
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void take_factor(const std::optional<nb::object>& given, StepCost& cost) {
  if (given) convert("verify_factor", *given, cost.verification);
}

/// A function of acceptance rates and other columns.
template <class... Values, class Function>
void def_of_rates(nb::module_& module, const char* name, const Function& function) {
  module.def(name, [function](const Column<double>& rates, bool rejection, const Column<Values>&... columns,
                              const Results& out) {
    fill(out, [&](std::size_t i) { return function(Rates{rates, rejection}[i], at(columns, i)...); });
  });
}

/// The same with the costs of a step behind the columns.
template <class... Values, class Function>
void def_of_costs(nb::module_& module, const char* name, const Function& function) {
  module.def(name, [function](const Column<double>& rates, bool rejection, const Column<Values>&... columns,
                              const Column<double>& c, const Column<double>& overhead,
                              const std::optional<nb::object>& verify_factor, const Results& out) {
    StepCost cost;
    take_factor(verify_factor, cost);
    fill(out, [&](std::size_t i) {
      cost.c = at(c, i);
      cost.overhead = at(overhead, i);
      return function(Rates{rates, rejection}[i], at(columns, i)..., std::as_const(cost));
    });
  });
}

double alpha_or_nan(const std::optional<AcceptanceRate>& rate) { return rate ? rate->alpha() : no_value; }

void bind_tokens(nb::module_& module) {
  using theory::expected_tokens;
  def_of_rates<std::int64_t>(module, "expected_tokens", [](const AcceptanceRate& rate, std::int64_t gamma) {
    return expected_tokens(rate, gamma);
  });
  def_of_rates<>(module, "expected_tokens_limit",
                 [](const AcceptanceRate& rate) { return theory::expected_tokens_limit(rate); });
  def_of_rates<std::int64_t, std::int64_t>(module, "tokens_probability", theory::tokens_probability);
  def_of_rates<std::int64_t>(module, "tokens_variance", theory::tokens_variance);
  def_of_rates<std::int64_t>(module, "expected_tokens_derivative", theory::expected_tokens_derivative);
  def_of_rates<std::int64_t>(module, "memory_access_factor", theory::memory_access_factor);
  def_of_rates<std::int64_t>(module, "wasted_fraction", theory::wasted_fraction);
  def_of_rates<std::int64_t>(module, "exact_token_fraction", theory::exact_token_fraction);
  def_of_rates<std::int64_t, double>(module, "operations_factor",
                                     [](const AcceptanceRate& rate, std::int64_t gamma, double c_hat) {
                                       return theory::operations_factor(rate, gamma, c_hat);
                                     });
  module.def("alpha_from_acceptance_length",
             [](const Column<double>& lengths, const Column<std::int64_t>& gammas, const Results& out) {
               fill(out, [&](std::size_t i) {
                 return theory::alpha_from_acceptance_length(at(lengths, i), at(gammas, i)).alpha();
               });
             });
}

void bind_speedups(nb::module_& module) {
  def_of_costs<std::int64_t>(module, "walltime_improvement",
                             [](const AcceptanceRate& rate, std::int64_t gamma, const StepCost& cost) {
                               return theory::walltime_improvement(rate, gamma, cost);
                             });
  def_of_costs<std::int64_t>(module, "parallel_draft_speedup", theory::parallel_draft_speedup);
  def_of_costs<double, std::int64_t>(
      module, "copying_speedup",
      [](const AcceptanceRate& rate, double match_rate, std::int64_t gamma, const StepCost& cost) {
        return theory::copying_speedup(match_rate, rate, gamma, cost);
      });
  def_of_costs<std::int64_t, std::int64_t>(
      module, "finite_generation",
      [](const AcceptanceRate& rate, std::int64_t gamma, std::int64_t tokens, const StepCost& cost) {
        const theory::FiniteGeneration found = theory::finite_generation(rate, gamma, tokens, cost);
        return std::array{found.expected_steps, found.steps_variance, found.expected_cost, found.speedup};
      });
  def_of_rates<double>(module, "some_gamma_helps", [](const AcceptanceRate& rate, double c) {
    return theory::some_gamma_helps(rate, c) ? 1.0 : 0.0;
  });
  def_of_rates<double>(module, "guaranteed_improvement", theory::guaranteed_improvement);
  module.def("break_even_alpha", [](const Column<double>& c, const Column<double>& overhead,
                                    const std::optional<nb::object>& verify_factor, const Results& out) {
    StepCost cost;
    take_factor(verify_factor, cost);
    fill(out, [&](std::size_t i) {
      cost.c = at(c, i);
      cost.overhead = at(overhead, i);
      return alpha_or_nan(theory::break_even_alpha(cost));
    });
  });
  module.def("break_even_alpha_of_gamma",
             [](const Column<std::int64_t>& gammas, const Column<double>& c, const Column<double>& overhead,
                const std::optional<nb::object>& verify_factor, const Results& out) {
               StepCost cost;
               take_factor(verify_factor, cost);
               fill(out, [&](std::size_t i) {
                 cost.c = at(c, i);
                 cost.overhead = at(overhead, i);
                 return alpha_or_nan(theory::break_even_alpha(at(gammas, i), cost));
               });
             });
}

void bind_optima(nb::module_& module) {
  def_of_costs<>(module, "optimal_gamma", [](const AcceptanceRate& rate, const StepCost& cost) {
    const theory::OptimalGamma best = theory::optimal_gamma(rate, cost);
    return std::array{static_cast<double>(best.gamma), best.speedup, best.attained() ? 1.0 : 0.0};
  });
  def_of_rates<double>(module, "optimal_gamma_real", [](const AcceptanceRate& rate, double c) {
    const auto best = theory::optimal_gamma_real(rate, c);
    return best ? std::array{best->gamma, best->speedup} : std::array{no_value, no_value};
  });
  def_of_rates<double>(module, "gamma_reaching_share", [](const AcceptanceRate& rate, double share) {
    const auto gamma = theory::gamma_reaching_share(rate, share);
    return gamma ? static_cast<double>(*gamma) : no_value;
  });
  def_of_rates<std::int64_t>(module, "tie_cost", theory::tie_cost);
  def_of_rates<>(module, "oracle_tokens", theory::oracle_tokens);
  def_of_rates<double>(module, "oracle_speedup", theory::oracle_speedup);
  def_of_rates<double>(module, "oracle_improvement",
                       [](const AcceptanceRate& rate, double c) { return theory::oracle_improvement(rate, c); });
  def_of_rates<std::int64_t, double>(module, "oracle_improvement_over_gamma",
                                     [](const AcceptanceRate& rate, std::int64_t gamma, double c) {
                                       return theory::oracle_improvement(rate, gamma, c);
                                     });
}

}  // namespace

void bind_theory(nb::module_& module) {
  bind_tokens(module);
  bind_speedups(module);
  bind_optima(module);
}

}  // namespace specdec::python
