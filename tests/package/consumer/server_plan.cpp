#include <planner/plan.hpp>

#include <iostream>

int main(int, char** argv) {
  using namespace specdec::planner;
  const Acceptance counted = Acceptance::from_counters({argv[1]});
  const Cost timed = Cost::of_timings(Timings({argv[2]}), {.c = 0.1});
  const Plan answer = plan(counted, timed, {.batch = {1, 4}, .emit = specdec::planning::Engine::vllm});
  for (const Recommendation& at : answer.recommendations()) {
    std::cout << "batch " << at.batch << ": gamma " << at.gamma << ", " << at.speedup.value << "x\n";
  }
  std::cout << answer.config->command << "\n";
}
