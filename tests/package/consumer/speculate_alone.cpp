// One header of the installed copy, no library.
#include <sim/speculate.hpp>

#include <random>
#include <vector>

int main() {
  std::mt19937 engine(1);
  const auto law = [](int x) { return std::vector<double>{1.0 * x, 1.0}; };
  const auto g = [](std::size_t y) { return static_cast<int>(y) - 1; };
  const auto done =
      specdec::sim::speculate(law, law, g, 0, [&] { return static_cast<double>(engine() >> 1) / 2147483648.0; });
  return done.result;
}
