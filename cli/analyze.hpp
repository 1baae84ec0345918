#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec analyze`: what a recording says of acceptance, of gamma and of other ways to draft.
Command analyze_command();

/// `specdec merge`: the answer of analyze from the parts of several runs, as if one had read all.
Command merge_command();

}  // namespace specdec::cli
