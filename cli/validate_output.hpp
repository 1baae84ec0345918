#pragma once

#include "render/spoken.hpp"
#include "sim/validation/report.hpp"

#include <nlohmann/json_fwd.hpp>

namespace specdec::cli {

nlohmann::ordered_json validation_json(const validation::Report& report);

/// Whether the algorithm is right, the configurations that come closest to failing, and every check that failed.
render::Spoken spoken(const validation::Report& report);

}  // namespace specdec::cli
