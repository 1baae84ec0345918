#include <iostream>
#include <planner/plan.hpp>

int main() {
  using namespace specdec::planner;
  const Recommendation best = plan(Acceptance::of_rate(0.8), Cost::of_constants(0.05)).recommendations().front();
  std::cout << "gamma " << best.gamma << ": " << best.speedup.value << "x\n";  // gamma 8: 3.09208x
}
