#include <analysis/core/acceptance_rate.hpp>
#include <analysis/theory/tokens.hpp>
#include <sim/generation.hpp>

#include <cstdio>

int main() {
  const specdec::core::AcceptanceRate acceptance(0.8);
  specdec::sim::Counters counters;
  counters.merge(specdec::sim::Counters{});
  std::printf("%.5f tokens per step\n", specdec::theory::expected_tokens(acceptance, 5));
}
