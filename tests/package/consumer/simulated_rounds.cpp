#include <sim/decoding.hpp>
#include <sim/table_models.hpp>

#include <iostream>

int main() {
  using namespace specdec::sim;
  TablePair pair = fixed_pair({0.6, 0.3, 0.1}, {0.5, 0.2, 0.3});  // alpha = sum min(p, q) = 0.8
  const Token prompt[] = {0};
  const DecodingOptions decoding{.gamma = 4, .max_new_tokens = 400000};
  const RandomStream stream(/*seed=*/1, /*sequence=*/0);
  const Counters counted = decode_speculatively(pair.target, pair.draft, prompt, decoding, stream).counters;
  const double measured = static_cast<double>(counted.tokens) / static_cast<double>(counted.steps);
  std::cout << measured << " tokens per step; Eq. 1 has " << (1 - 0.32768) / (1 - 0.8) << "\n";
}
