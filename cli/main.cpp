#include "cli/command_line.hpp"
#include "cli/validate.hpp"

int main(int argc, char* argv[]) {
  using namespace specdec::cli;
  return run_command_line({validate_command()}, argc, argv);
}
