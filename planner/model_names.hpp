#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/model_spec.hpp"
#include "traces/note.hpp"

namespace specdec::planner {

/// Whether two names may be of one model: the last part of their paths, letters and digits alone, one within the other.
/// "meta-llama/Llama-3.3-70B-Instruct" and "llama-3.3-70b" may.
bool may_be_one_model(std::string_view a, std::string_view b);

/// What a model is called: by whoever names it, and by its specification.
std::vector<std::string> names_of(const std::optional<std::string>& given, const cost::ModelSpec* spec);

/// Says that an acceptance was measured with a model that is not the one it is planned for; nothing where a name is
/// alike, or where one of the two has none.
std::optional<Note> other_model(const std::optional<std::string>& measured, const std::vector<std::string>& planned);

}  // namespace specdec::planner
