#pragma once

#include <string>
#include <string_view>

namespace specdec::cli {

/// The lines of a TOML file with each list of texts, `name = ["a", "b"]`, on one line or several, as a line for each
/// text, `name = "a"`, as options that take several values are read. Everything else stays as it is, lists of numbers
/// and what is no complete list too.
std::string with_lists_by_line(std::string_view toml);

}  // namespace specdec::cli
