#pragma once

#include <map>
#include <string>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/model_spec.hpp"

namespace specdec::planner {

/// User-defined devices and models, by the file that names them.
struct NamedSpecs {
  std::map<std::string, cost::HardwareSpec, std::less<>> hardware;
  std::map<std::string, cost::ModelSpec, std::less<>> models;
};

}  // namespace specdec::planner
