#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace specdec::cli {

/// Options by name, and whether each was given.
using GivenOptions = std::vector<std::pair<std::string_view, bool>>;

/// The names of those that were, in their order.
std::vector<std::string_view> names_given(const GivenOptions& options);

/// Refuses the first of them that was given: "NAME is given, but " and why it must not be.
/// @throws UsageError
void refuse_given(const GivenOptions& options, std::string_view why);

}  // namespace specdec::cli
