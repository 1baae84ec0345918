#pragma once

#include <optional>
#include <string_view>

namespace specdec::core {

/// The finite number that the whole text is, written in decimal as in C++; empty if it is none. The same in every
/// locale.
std::optional<double> parsed_number(std::string_view text);

}  // namespace specdec::core
