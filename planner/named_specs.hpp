#pragma once

#include <map>
#include <string>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/kernel_times.hpp"
#include "analysis/cost/model_spec.hpp"

namespace specdec::planner {

/// Devices, models and kernels of somebody's own, by the file that names them.
struct NamedSpecs {
  std::map<std::string, cost::HardwareSpec, std::less<>> hardware;
  std::map<std::string, cost::ModelSpec, std::less<>> models;
  std::map<std::string, cost::KernelTimes, std::less<>> kernels;
};

}  // namespace specdec::planner
