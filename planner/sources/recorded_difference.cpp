#include "planner/sources/recorded_difference.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "analysis/estimate/text_ends.hpp"

namespace specdec::planner {
namespace {

bool holds(const planning::TraceAnalysis* recording, const Note& note) {
  return recording != nullptr && std::ranges::any_of(recording->notes, [&](const Note& own) {
           return own.code == note.code && own.message == note.message;
         });
}

Note of_side(std::string_view side, Note note) {
  note.message = fmt::format("{}: {}", side, note.message);
  return note;
}

std::string foreign_text(const ComparedRecordings& recordings) {
  const auto refused = [](const planning::TraceAnalysis* recording) {
    return recording != nullptr && recording->replay_refused;
  };
  const bool of_a = refused(recordings.a), of_b = refused(recordings.b);
  if (!of_a && !of_b) return "";
  if (of_a && of_b) return "the texts do not look like the target's own, and their replays then mean nothing";
  return fmt::format("the text of {} does not look like the target's own, and its replay then means nothing",
                     of_a ? "A" : "B");
}

/// "the texts hold 10 tokens on average in A and 400 in B, and without their ends B - A would be 0.012".
std::string text_ends(const estimate::EndsInDifference& ends) {
  return fmt::format("the texts hold {:.4g} tokens on average in A and {:.4g} in B, {}", ends.mean_length_a,
                     ends.mean_length_b,
                     ends.unended ? fmt::format("and without their ends B - A would be {:.3f}", *ends.unended)
                                  : "and those of one are too short to look at every draft of a step");
}

}  // namespace

std::vector<Note> notes_of(const ComparedRecordings& recordings) {
  std::vector<Note> notes;
  if (recordings.a != nullptr) {
    for (const Note& note : recordings.a->notes)
      notes.push_back(of_side(holds(recordings.b, note) ? "A and B" : "A", note));
  }
  if (recordings.b != nullptr) {
    for (const Note& note : recordings.b->notes)
      if (!holds(recordings.a, note)) notes.push_back(of_side("B", note));
  }
  return notes;
}

std::string undecided_by(const ComparedRecordings& recordings, std::int64_t gamma, const estimate::Difference& tokens,
                         std::vector<Note>& warnings) {
  if (std::string reason = foreign_text(recordings); !reason.empty()) return reason;
  if (recordings.a == nullptr || recordings.b == nullptr) return "";
  const estimate::EndsInDifference ends =
      estimate::ends_in_difference(recordings.a->replay->highest(), recordings.b->replay->highest(), gamma, tokens);
  const bool decide = tokens.tells() && ends.may_be_all;
  if (decide || ends.matter) {
    warnings.push_back({"text_ends_matter", fmt::format("a text's end cuts its last step short: {}, not {:.3f}",
                                                        text_ends(ends), tokens.value)});
  }
  return decide ? text_ends(ends) : "";
}

}  // namespace specdec::planner
