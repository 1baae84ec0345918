#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

inline constexpr char steps_figure_name[] = "steps";
inline constexpr char steps_figure_summary[] = "the steps over one text of the shipped pair, as coloured HTML (Fig. 1)";

Command plot_steps_command();

}  // namespace specdec::cli
