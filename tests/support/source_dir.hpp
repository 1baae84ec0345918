#pragma once

#include <string>

namespace specdec::tests {

/// The checkout, whose files tests read. One object holds its path, so that all others compile alike in every checkout.
std::string source_dir();

}  // namespace specdec::tests
