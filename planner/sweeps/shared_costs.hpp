#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "planner/cost.hpp"

namespace specdec::planner {

/// Costs that several questions share: each distinct one is priced once. Safe for several threads.
class SharedCosts {
 public:
  /// Cost::of_hardware, priced now or when it was first asked for.
  /// @throws as Cost::of_hardware
  Cost of_hardware(const std::string& hardware, const std::string& model, const HardwareOptions& options);

 private:
  struct Priced {
    std::once_flag once;
    Cost cost;
  };

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Priced>> priced_;
};

}  // namespace specdec::planner
