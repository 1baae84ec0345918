#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/note.hpp"

/// The figures by which engines report acceptance, and what follows from one of them for the others. A figure goes by
/// the name that its engine gives it: "vllm.mean_acceptance_length", "llamacpp.accept".
namespace specdec::estimate {

/// What a reported figure is, whoever prints it.
enum class AcceptanceQuantity {
  tokens_per_step,    ///< 1 + accepted / rounds, [1, gamma + 1]: the bonus or corrected token counts
  accepted_per_step,  ///< accepted / rounds, [0, gamma]
  accepted_share,     ///< accepted / drafted, [0, 1]; not alpha: drafts behind a rejection are never looked at
  unconditional,      ///< for each position P(this draft and all before it are accepted), not increasing
  conditional,        ///< for each position P(this draft is accepted | all before it are)
  accepted_law,       ///< share of the rounds with exactly 0, 1, ... accepted drafts
  alpha,              ///< the rate of the geometric law that gamma cuts off
  rounds,             ///< counts, to be given together: they follow from nothing
  drafted,
  accepted,
  emitted,  ///< tokens put out by the rounds
};

struct AcceptanceConvention {
  std::string_view name;
  AcceptanceQuantity quantity;
  /// In per cent instead of as a fraction.
  bool percent = false;
  /// A mean over the positions of a text where a round might begin, not over the rounds that did.
  bool by_position = false;
  /// As many values as gamma, of a law one more; other figures may leave out zeros at the end.
  bool whole = false;
  /// Where the engine writes it.
  std::string_view where;
  /// How it differs from what it is called; empty where it does not.
  std::string_view note = {};

  bool is_count() const { return quantity >= AcceptanceQuantity::rounds; }
  bool is_list() const {
    return quantity >= AcceptanceQuantity::unconditional && quantity <= AcceptanceQuantity::accepted_law;
  }
};

/// All of them: those without an engine first, then by engine.
std::span<const AcceptanceConvention> acceptance_conventions();

/// @return nothing if no convention has that name
const AcceptanceConvention* find_acceptance_convention(std::string_view name);

/// Why a figure that an engine prints is none of them on purpose; empty for any other name.
std::string_view reason_against_convention(std::string_view name);

/// A figure as its source prints it: one value, or one a position.
struct AcceptanceFigure {
  const AcceptanceConvention* convention = nullptr;
  std::vector<double> values;
};

/// What a conversion rests on, the weakest first; each includes those before it.
enum class ConversionBasis {
  exact,           ///< follows whatever the drafts
  equal_drafts,    ///< every round drafted gamma tokens
  constant_alpha,  ///< acceptances independent with one rate
};

struct ConvertedFigure {
  AcceptanceFigure figure;
  ConversionBasis basis = ConversionBasis::exact;
  /// Why there are no values; empty where there are.
  std::string missing;
};

struct AcceptanceConversion {
  /// As given, or as the figures imply.
  std::optional<std::int64_t> gamma;
  /// Mean length of the drafts, where counts say it.
  std::optional<double> drafted_per_step;
  /// In the order of acceptance_conventions(), counts left out.
  std::vector<ConvertedFigure> figures;
  std::vector<Note> notes;
};

/// The largest gamma that figures are converted at.
inline constexpr std::int64_t largest_converted_gamma = 1000;

/// Every figure that follows from the given one, in every convention.
///
///   tokens per step = 1 + accepted/rounds = 1 + sum_j s_j = 1 + gamma * accepted/drafted;
///   s_j = product_{i<=j} h_i = sum_{n>=j} P(n accepted);   s_j = alpha^j where alpha is constant;
///   alpha = sum_j s_j / (1 + sum_{j<gamma} s_j), or the rate whose geometric law has the given tokens per step.
///
/// Source:   docs/counters.md#conventions; docs/theory.md#acceptance-inversion
/// @param given  one figure that is no count; or counts: accepted or emitted with rounds, accepted with drafted, or all
/// @param gamma  drafted tokens per round, [1, largest_converted_gamma]; nothing if not known, or if the figures say it
/// @throws std::domain_error if a value is impossible; the message names the figure, its range, and the convention that
///         the value would be possible in
/// @throws std::invalid_argument if the figures are none that go together
/// Accuracy: relative error <= 1e-12
AcceptanceConversion convert_acceptance(std::span<const AcceptanceFigure> given, std::optional<std::int64_t> gamma);

}  // namespace specdec::estimate
