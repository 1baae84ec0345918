#include "cli/command_line.hpp"
#include "cli/plan.hpp"
#include "cli/reproduce.hpp"
#include "cli/validate.hpp"

int main(int argc, char* argv[]) {
  using namespace specdec::cli;
  return run_command_line({plan_command(), reproduce_command(), validate_command()}, argc, argv);
}
