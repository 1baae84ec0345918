#include "tests/unit/cli/run_specdec.hpp"

namespace specdec::tests {

std::string specdec_binary() { return SPECDEC_BINARY; }

}  // namespace specdec::tests
