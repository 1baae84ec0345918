#include "cli/command_line.hpp"

int main(int argc, char* argv[]) {
  const std::vector<specdec::cli::Command> commands = {};
  return specdec::cli::run_command_line(commands, argc, argv);
}
