#include "planner/checkup/draft_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

/// A timed pass beside what the roofline says of it.
struct ComparedPass {
  traces::TimedPass pass;
  double roofline_seconds = 0;

  double ratio() const { return pass.seconds / roofline_seconds; }
  friend bool operator<(const ComparedPass& a, const ComparedPass& b) { return a.ratio() < b.ratio(); }
};

/// The one with the middle ratio, of several models of a file the one whose passes take least: that is the draft.
ComparedPass middle_pass(const Timings& table, const cost::RooflineCost& roofline) {
  std::vector<ComparedPass> middles;
  for (const std::string& model : table.models()) {
    std::vector<ComparedPass> compared;
    for (const traces::TimedPass& pass : table.passes("", model))
      compared.push_back({pass, roofline.draft_pass(pass.batch, pass.tokens, pass.context).total()});
    const auto middle = compared.begin() + (std::ssize(compared) - 1) / 2;
    std::nth_element(compared.begin(), middle, compared.end());
    middles.push_back(*middle);
  }
  return *std::min_element(middles.begin(), middles.end());
}

void check_peaks(const std::string& file, const std::string& who, const Timings& table,
                 const cost::RooflineCost& roofline, Suspicions& suspicions) {
  constexpr double error_of_times = 0.9;
  const ComparedPass middle = middle_pass(table, roofline.at_peaks());
  if (middle.ratio() >= error_of_times) return;
  suspicions.add(
      {"draft_below_peaks",
       Severity::warning,
       fmt::format("{}:{}: a pass of the draft took {} ms, but at least {} ms at the peaks of {}", file,
                   middle.pass.line, brief(1000 * middle.pass.seconds, 3), brief(1000 * middle.roofline_seconds, 3),
                   who),
       {{file, middle.pass.line, "draft_pass_seconds", middle.pass.seconds},
        {file, middle.pass.line, "seconds_at_peaks", middle.roofline_seconds}},
       "see that times are seconds of whole passes, after the device has finished them, and of that draft in "
       "that number type"});
}

void check_file(const std::string& file, const std::string& who, const cost::RooflineCost& roofline,
                Suspicions& suspicions) {
  const Timings table({file}, "--draft-cost");
  check_peaks(file, who, table, roofline, suspicions);
  const ComparedPass middle = middle_pass(table, roofline);
  if (middle.ratio() <= far_above_roofline) return;
  const double milliseconds = 1000 * middle.pass.seconds, ideal = 1000 * middle.roofline_seconds;
  suspicions.add(
      {"draft_far_above_roofline",
       Severity::warning,
       fmt::format("{}:{}: a pass of the draft took {} ms, {} times the {} ms that the roofline of {} gives it", file,
                   middle.pass.line, brief(milliseconds, 3), brief(middle.ratio(), 3), brief(ideal, 3), who),
       {{file, middle.pass.line, "draft_pass_seconds", middle.pass.seconds},
        {file, middle.pass.line, "roofline_seconds", middle.roofline_seconds}},
       "see that the draft runs where the target does, in the number type that was meant and not on the CPU, "
       "and that its passes are captured as graphs: a draft with few bytes is bound by its launches"});
}

}  // namespace

void check_draft_times(const DraftTimes& times, Suspicions& suspicions) {
  const Cost cost = Cost::of_hardware(times.hardware, times.model, times.options);
  if (cost::looks_up(cost.kind))
    throw QuestionError("--draft-cost is given, but drafts that are looked up run no model");
  const std::string who = fmt::format("{} on {}", times.options.draft.model.value_or(times.model), times.hardware);
  for (const std::string& file : times.files) check_file(file, who, *cost.roofline, suspicions);
}

}  // namespace specdec::planner
