#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/standard_streams.hpp"

int main(int argc, char* argv[]) {
  using namespace specdec::cli;
  occupy_standard_streams();
  fail_beyond_file_size_limit();
  std::vector<Command> commands = {
      plan_command(),           report_command(),        capacity_command(),    sweep_command(),
      analyze_command(),        merge_command(),         counters_command(),    doctor_command(),
      diff_command(),           synthetic_command(),     record_command(),      trace_info_command(),
      trace_check_command(),    trace_convert_command(), trace_slice_command(), trace_merge_command(),
      trace_generate_command(), list_hardware_command(), list_models_command(), list_published_command(),
      simulate_command(),       compare_command(),       reproduce_command(),   validate_command()};
  for (Command& command : plot_commands()) commands.push_back(std::move(command));
  return run_command_line({{"trace", "Read, check, convert and make recordings"},
                           {"list", "Devices, models and published acceptance, with their sources"},
                           {"plot", "Figures: as data, in files and in the terminal"}},
                          commands, argc, argv);
}
