#include "analysis/estimate/text_ends.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>

namespace specdec::estimate {
namespace {

/// The factor by which a step of this gamma would yield more tokens if no text ended; 1 where that is not known.
double gain_without_ends(const GammaReplay& row) {
  return row.unended_tokens_per_step.value_or(row.tokens_per_step.value) / row.tokens_per_step.value;
}

double unended_speedup(const GammaReplay& row) { return row.speedup->value * gain_without_ends(row); }

double tokens_of_text(const ReplayReport& report) {
  return static_cast<double>(report.tokens) / static_cast<double>(report.sequences);
}

std::string mean_length(const ReplayReport& report) { return fmt::format("{:.4g}", tokens_of_text(report)); }

const GammaReplay& best_without_ends(const ReplayReport& report) {
  return *std::max_element(report.gammas.begin(), report.gammas.end(), [](const GammaReplay& a, const GammaReplay& b) {
    return unended_speedup(a) < unended_speedup(b);
  });
}

/// "gamma 7 would give 2.85x, not 2.68x", for a report with an optimum.
std::string without_ends(const ReplayReport& report) {
  const GammaReplay& longer = best_without_ends(report);
  const ReplayOptimum& best = *report.optimum;
  return fmt::format("gamma {} would give {:.2f}x, not {}", longer.gamma, unended_speedup(longer),
                     best.gamma == 0 ? "plain decoding" : fmt::format("{:.2f}x", best.speedup));
}

std::optional<std::string> by_cost(const ReplayReport& report, std::string_view texts) {
  const ReplayOptimum& best = *report.optimum;
  const GammaReplay& row = report.gammas[static_cast<std::size_t>(best.gamma)];
  if (unended_speedup(best_without_ends(report)) > (1 + text_ends_matter) * best.speedup) {
    const std::string share =
        best.gamma > 0 && row.share_past_end
            ? fmt::format(
                  ": {:.0f}% of the steps of gamma {} draft past the end of their text, which costs as much and "
                  "yields only the tokens left",
                  100 * *row.share_past_end, row.gamma)
            : "";
    return fmt::format("{} are short, {} tokens on average{}; if they went on, {}", texts, mean_length(report), share,
                       without_ends(report));
  }
  if (best.gamma > 0 && report.tokens <= (best.gamma + 1) * report.sequences) {
    return fmt::format(
        "a step of gamma {} covers the mean length of {}, {} tokens, so that the recording cannot show what a larger "
        "gamma would give if they went on",
        best.gamma, texts, mean_length(report));
  }
  return std::nullopt;
}

std::optional<std::string> without_cost(const ReplayReport& report, std::string_view texts) {
  const auto end = report.gammas.begin() + std::min<std::ptrdiff_t>(std::ssize(report.gammas), deepest_usual_gamma + 1);
  const auto from = std::find_if(report.gammas.begin(), end,
                                 [](const GammaReplay& row) { return gain_without_ends(row) > 1 + text_ends_matter; });
  if (from == end) return std::nullopt;
  const auto known = std::find_if(std::make_reverse_iterator(end), report.gammas.rend(),
                                  [](const GammaReplay& row) { return row.unended_tokens_per_step.has_value(); });
  const GammaReplay& last = *known;
  return fmt::format(
      "{} are short, {} tokens on average, and a step at the end of one costs as much but yields only the tokens "
      "left: if they went on, tokens per step would be {:.1f}% higher at gamma {}{}",
      texts, mean_length(report), 100 * (gain_without_ends(*from) - 1), from->gamma,
      last.gamma == from->gamma
          ? ""
          : fmt::format(" and {:.1f}% at gamma {}", 100 * (gain_without_ends(last) - 1), last.gamma));
}

/// Whether the difference keeps its sign, half of its size, and an interval without 0 if its value is `unended`.
bool survives(const Difference& difference, double unended) {
  if (!difference.ci95) return false;
  const double moved = unended - difference.value;
  const bool apart = difference.value > 0 ? difference.ci95->lo + moved > 0 : difference.ci95->hi + moved < 0;
  return apart && unended / difference.value >= 0.5;
}

}  // namespace

EndsInDifference ends_in_difference(const ReplayReport& a, const ReplayReport& b, std::int64_t gamma,
                                    const Difference& difference) {
  const GammaReplay& row_a = a.gammas.at(static_cast<std::size_t>(gamma));
  const GammaReplay& row_b = b.gammas.at(static_cast<std::size_t>(gamma));
  EndsInDifference ends{{}, tokens_of_text(a), tokens_of_text(b)};
  if (!row_a.unended_tokens_per_step || !row_b.unended_tokens_per_step) {
    ends.may_be_all = ends.matter = ends.mean_length_a != ends.mean_length_b;
    return ends;
  }
  ends.unended = *row_b.unended_tokens_per_step - *row_a.unended_tokens_per_step;
  ends.may_be_all = !survives(difference, *ends.unended);
  ends.matter = std::abs(*ends.unended - difference.value) >
                text_ends_matter * std::min(row_a.tokens_per_step.value, row_b.tokens_per_step.value);
  return ends;
}

std::optional<Note> short_texts(const ReplayReport& report, const std::optional<ReplayReport>& upper,
                                std::string_view texts) {
  const ReplayReport& highest = upper ? *upper : report;
  const auto known = [](const GammaReplay& row) { return row.unended_tokens_per_step.has_value(); };
  if (std::none_of(highest.gammas.begin(), highest.gammas.end(), known)) return std::nullopt;
  std::optional<std::string> message = highest.optimum ? by_cost(highest, texts) : without_cost(highest, texts);
  if (!message) return std::nullopt;
  if (upper) *message += ", at the upper ends of the brackets";
  if (upper && report.optimum) *message += "; at the lower ends " + without_ends(report);
  return Note{"short_texts", *message};
}

std::optional<Note> no_draft_looked_at(const ReplayReport& report) {
  if (report.looks_at_drafts()) return std::nullopt;
  return Note{"no_draft_looked_at",
              "every text holds one token, so that no draft was looked at and no gamma is best: record texts that are "
              "longer than the drafts in question, the same way"};
}

}  // namespace specdec::estimate
