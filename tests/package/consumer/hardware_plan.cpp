#include <planner/plan.hpp>

#include <iostream>

int main() {
  using namespace specdec::planner;
  const Cost cost = Cost::of_hardware("h100-sxm", "llama-3.3-70b",
                                      {.draft = {.model = "eagle3-llama-3.3-70b"}, .tensor_parallel = 4});
  const Acceptance acceptance = Acceptance::of_lengths({{{7, 2.88, 0.005}}});
  const Plan answer = plan(acceptance, cost, {.batch = {1, 8, 64}, .context = {1000}});
  for (const Recommendation& at : answer.recommendations()) {
    std::cout << "batch " << at.batch << ": gamma " << at.gamma << ", " << at.speedup.value << "x\n";
  }
}
