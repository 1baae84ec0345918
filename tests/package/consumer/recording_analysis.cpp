#include <planner/recordings/analysis.hpp>

#include <iostream>

int main(int, char** argv) {
  using namespace specdec::planner;
  const Analysis said = analyze(RecordingFiles{{argv[1]}}, {.cost = {.c = 0.05}});
  const auto& replay = said.recording.replay->lower;
  std::cout << "alpha " << *said.recording.alpha->value << " at " << said.recording.positions << " positions, gamma "
            << replay.optimum->gamma << ", worth it up to c " << replay.break_even->c << "\n";
}
