#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Numbers that are not JSON, but that Python writes into it.
namespace specdec::traces {

// Internal header of the library; it is not installed.

/// Offset of the quotation mark that closes the string whose first character is at `i`, or npos.
std::size_t end_of_string(std::string_view text, std::size_t i);

/// The text with NaN, Infinity, -Infinity and numbers beyond a double as strings, and integers beyond 64 bits as other
/// numbers; empty if it holds none.
std::optional<std::string> without_bare_words(std::string_view text);

}  // namespace specdec::traces
