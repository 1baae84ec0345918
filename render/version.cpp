#include "render/version.hpp"

namespace specdec::render {

std::string_view version() { return SPECDEC_VERSION; }

}  // namespace specdec::render
