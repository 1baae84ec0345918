#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/model_spec.hpp"
#include "traces/note.hpp"

namespace specdec::planner {

/// True if two names may be of one model: the last part of one path, letters and digits only, contains the other's:
/// "meta-llama/Llama-3.3-70B-Instruct" and "llama-3.3-70b" may.
bool may_be_one_model(std::string_view a, std::string_view b);

/// The names of a model: those given for it, and that of its specification.
std::vector<std::string> names_of(const std::optional<std::string>& given, const cost::ModelSpec* spec);

/// A note that an acceptance was measured with a model other than the planned one, or that it cannot be told where one
/// of them is named as in llama-bench's tables, by its kind; empty if two names may be of one
/// model, or if one of the two has no name.
std::optional<Note> other_model(const std::optional<std::string>& measured, const std::vector<std::string>& planned);

}  // namespace specdec::planner
