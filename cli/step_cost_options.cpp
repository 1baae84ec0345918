#include "cli/step_cost_options.hpp"

#include <fmt/format.h>

#include "analysis/planning/best_gamma.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

core::VerificationCost verification_of(const std::string& text) {
  const std::string_view option = "--verify-factor";
  constexpr LegalRange positive = {.lo_open = true};
  if (text.find(':') == std::string::npos) {
    return core::VerificationCost::constant(parse_number(option, text, positive));
  }
  std::vector<core::VerificationCost::Point> points;
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse(option, part, "TOKENS:FACTOR");
    const std::int64_t tokens = parse_integer("tokens in --verify-factor", pair[0], 1, planning::no_max_gamma);
    if (!points.empty() && tokens <= points.back().tokens) {
      refuse(option, text,
             fmt::format("a list with rising numbers of tokens: {} follows {}", tokens, points.back().tokens));
    }
    points.push_back({tokens, parse_number(option, pair[1], positive)});
    if (points.size() > 1 && points.back().factor < points[points.size() - 2].factor / 2)
      refuse(option, text, "a list in which no factor is less than half of the one before it");
    if (tokens == 1 && points.back().factor != 1)
      refuse(fmt::format("factor of 1 token in {}", option), pair[1], "1, to which the others are relative");
  }
  if (points.back().tokens == 1) refuse(option, text, "a list that goes beyond 1 token");
  return core::VerificationCost::table(points);
}

}  // namespace

void StepCostOptions::declare(Options& options, const std::string& c_note) {
  options.group("Costs");
  options.number("-c,--c", c, {}, "draft step time / target step time " + c_note);
  options.text(
      "--verify-factor", verify_factor, "V|N:V,...",
      "time of scoring N tokens / one token: one factor, or\n2:1.02,5:1.10,9:1.31; straight lines between [1]");
  options.number("--overhead", overhead, {}, "other time of a speculative step / target step time [0]");
}

planner::StepTimes StepCostOptions::times() const {
  planner::StepTimes times;
  times.c = c;
  if (verify_factor) times.verify_factor = verification_of(*verify_factor);
  times.overhead = overhead;
  return times;
}

}  // namespace specdec::cli
