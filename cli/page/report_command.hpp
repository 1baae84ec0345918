#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec report`: the answer of `specdec plan` as a page.
Command report_command();

}  // namespace specdec::cli
