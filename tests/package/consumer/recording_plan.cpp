#include <planner/plan.hpp>

#include <iostream>

int main(int, char** argv) {
  using namespace specdec::planner;
  const Acceptance recorded = Acceptance::from_recording({argv[1]});
  const Plan answer = plan(recorded, Cost::of_constants(0.05));
  const Recommendation best = answer.recommendations().front();
  std::cout << "alpha " << *recorded.alpha << ", gamma " << best.gamma << ": " << best.speedup.value << "x, 95% "
            << best.speedup.ci95->lo << " to " << best.speedup.ci95->hi << "\n";
}
