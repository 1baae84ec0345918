#include "planner/sweeps/shared_costs.hpp"

#include <nlohmann/json.hpp>
#include "planner/plan_request.hpp"

namespace specdec::planner {

Cost SharedCosts::of_hardware(const std::string& hardware, const std::string& model, const HardwareOptions& options) {
  const nlohmann::ordered_json words = {
      {"cost", CostWords{{}, hardware, model, options}}, {"drafts", options.drafts}, {"name", options.draft.name}};
  std::shared_ptr<Priced> priced;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Priced>& known = priced_[words.dump()];
    if (!known) known = std::make_shared<Priced>();
    priced = known;
  }
  std::call_once(priced->once, [&] { priced->cost = Cost::of_hardware(hardware, model, options); });
  return priced->cost;
}

}  // namespace specdec::planner
