#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specdec::render {

/// One step of Algorithm 1 as text.
struct FigureStep {
  std::string accepted;
  /// The rejected draft; empty if there is none.
  std::string rejected;
  /// The target's own token: the correction, or the bonus.
  std::string extra;
};

/// `text` as the content of an HTML or XML element or of an attribute in double quotes: visible, and what would be
/// markup is text.
std::string escaped(std::string_view text);

/// Figure 1 of Leviathan et al. 2023: one line per step with the text so far, the step's accepted drafts in green, the
/// rejected one in red and the target's own token in blue; without colour <accepted>[-rejected-]{+own+}.
std::string figure_of_steps(const std::vector<FigureStep>& steps, bool colour);

/// The meaning of its colours or marks.
std::string_view figure_legend(bool colour);

/// The same as a self-contained HTML page. Accepted, rejected and added tokens differ by colour, by a
/// line below or through them, and for screen readers by element and title; the command is in a meta element.
std::string steps_page(std::string_view prompt, const std::vector<FigureStep>& steps, std::string_view summary,
                       std::string_view made_by);

}  // namespace specdec::render
