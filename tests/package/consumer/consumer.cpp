#include <analysis/theory/optimal_gamma.hpp>

#include <iostream>

int main() {
  const specdec::core::AcceptanceRate acceptance(0.8);
  const specdec::theory::OptimalGamma best = specdec::theory::optimal_gamma(acceptance, 0.05);
  std::cout << "gamma " << best.gamma << ": " << best.speedup << "x\n";  // gamma 8: 3.09208x
}
