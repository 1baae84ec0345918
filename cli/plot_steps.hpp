#pragma once

#include <string>

#include "cli/command_line.hpp"

namespace specdec::cli {

inline constexpr char steps_figure_name[] = "steps";
inline constexpr char steps_figure_summary[] = "the steps over one text of the shipped pair, as coloured HTML (Fig. 1)";

/// Figure 1 as a page, of the shipped pair with every default.
std::string default_steps_page(const std::string& made_by);

Command plot_steps_command();

}  // namespace specdec::cli
