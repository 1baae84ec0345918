#include "tests/support/source_dir.hpp"

namespace specdec::tests {

std::string source_dir() { return SPECDEC_SOURCE_DIR; }

}  // namespace specdec::tests
