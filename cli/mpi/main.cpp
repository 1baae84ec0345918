#include <mpi.h>

#include "cli/analyze.hpp"
#include "cli/mpi/mpi_team.hpp"
#include "cli/simulate.hpp"
#include "cli/standard_streams.hpp"
#include "cli/sweep.hpp"

int main(int argc, char* argv[]) {
  using namespace specdec::cli;
  occupy_standard_streams();
  fail_beyond_file_size_limit();
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    say("specdec: error: this MPI has no MPI_THREAD_SERIALIZED\n");
    MPI_Abort(MPI_COMM_WORLD, usage_error);
  }
  MpiTeam team;
  if (team.has_work()) {
    const int code =
        run_command_line({}, {analyze_command(&team), simulate_command(&team), sweep_command(&team)}, argc, argv);
    if (code != success) {
      team.remove_parts();
      MPI_Abort(MPI_COMM_WORLD, code);
    }
  }
  team.end();
  MPI_Finalize();
}
