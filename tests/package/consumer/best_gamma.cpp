#include <planner/plan.hpp>

#include <iostream>

int main() {
  using namespace specdec::planner;
  const Plan answer = plan(Acceptance::of_rate(0.8), Cost::of_constants(0.05));
  const Recommendation best = answer.recommendations().front();
  std::cout << "gamma " << *best.gamma << ": " << best.speedup->value << "x\n";  // gamma 8: 3.09208x
}
