#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/note.hpp"

/// The figures by which engines report acceptance, and the conversions between them. A figure goes by
/// the name that its engine gives it: "vllm.mean_acceptance_length", "llamacpp.accept".
namespace specdec::estimate {

/// The quantity that a reported figure stands for, whichever engine prints it.
enum class AcceptanceQuantity {
  tokens_per_step,    ///< 1 + accepted / rounds, [1, gamma + 1]: the bonus or corrected token counts
  accepted_per_step,  ///< accepted / rounds, [0, gamma]
  accepted_share,     ///< accepted / drafted, [0, 1]; not alpha: drafts behind a rejection are never examined
  unconditional,      ///< for each position P(this draft and all before it are accepted), nonincreasing
  conditional,        ///< for each position P(this draft is accepted | all before it are)
  accepted_law,       ///< share of the rounds with exactly 0, 1, ... accepted drafts
  alpha,              ///< the rate of the geometric law truncated at gamma
  rounds,             ///< counts, to be given together: they follow from no other figure
  drafted,
  accepted,
  emitted,  ///< tokens emitted by the rounds
};

struct AcceptanceConvention {
  std::string_view name;
  AcceptanceQuantity quantity;
  /// Given in per cent instead of as a fraction.
  bool percent = false;
  /// A mean over the positions of a text where a round might begin, not over the actual rounds.
  bool by_position = false;
  /// Has exactly gamma values, a law gamma + 1; other figures may omit trailing zeros.
  bool whole = false;
  /// The place where the engine writes it.
  std::string_view where;
  /// The difference from what its name says; empty if there is none.
  std::string_view note = {};

  bool is_count() const { return quantity >= AcceptanceQuantity::rounds; }
  bool is_list() const {
    return quantity >= AcceptanceQuantity::unconditional && quantity <= AcceptanceQuantity::accepted_law;
  }
};

/// All conventions: those without an engine first, then by engine.
std::span<const AcceptanceConvention> acceptance_conventions();

/// @return null if no convention has that name
const AcceptanceConvention* find_acceptance_convention(std::string_view name);

/// The reason why a figure that an engine prints is deliberately not a convention; empty for any other name.
std::string_view reason_against_convention(std::string_view name);

/// A figure as its source prints it: one value, or one per position.
struct AcceptanceFigure {
  const AcceptanceConvention* convention = nullptr;
  std::vector<double> values;
};

/// The assumptions behind a conversion, the weakest first; each includes those before it.
enum class ConversionBasis {
  exact,           ///< holds for any drafts
  equal_drafts,    ///< every round drafted gamma tokens
  constant_alpha,  ///< acceptances independent with one rate
};

struct ConvertedFigure {
  AcceptanceFigure figure;
  ConversionBasis basis = ConversionBasis::exact;
  /// The reason why there are no values; empty if there are values.
  std::string missing;
};

struct AcceptanceConversion {
  /// As given, or as implied by the figures.
  std::optional<std::int64_t> gamma;
  /// Mean length of the drafts, if counts determine it.
  std::optional<double> drafted_per_step;
  /// In the order of acceptance_conventions(), without the counts.
  std::vector<ConvertedFigure> figures;
  std::vector<Note> notes;
};

/// The largest gamma at which figures are converted.
inline constexpr std::int64_t largest_converted_gamma = 1000;

/// Every figure that follows from the given ones, in every convention.
///
///   tokens per step = 1 + accepted/rounds = 1 + sum_j s_j = 1 + gamma * accepted/drafted;
///   s_j = product_{i<=j} h_i = sum_{n>=j} P(n accepted);   s_j = alpha^j if alpha is constant;
///   alpha = sum_j s_j / (1 + sum_{j<gamma} s_j), or the rate whose geometric law has the given tokens per step.
///
/// Source:   docs/counters.md#conventions; docs/theory.md#acceptance-inversion
/// @param given  one figure that is not a count; or counts: accepted or emitted with rounds, accepted with drafted; all
/// @param gamma  drafted tokens per round, [1, largest_converted_gamma]; empty if unknown or given by the figures
/// @throws std::domain_error if a value is impossible; the message names the figure, its range, and the convention in
///         which the value would be possible
/// @throws std::invalid_argument if the figures do not go together
/// Accuracy: relative error <= 1e-12
AcceptanceConversion convert_acceptance(std::span<const AcceptanceFigure> given, std::optional<std::int64_t> gamma);

}  // namespace specdec::estimate
