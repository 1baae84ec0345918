#include "traces/formats/sha256.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specdec::traces {

std::string Sha256::digits() { return fmt::format("{:02x}", fmt::join(digest(), "")); }

}  // namespace specdec::traces
