#pragma once

#include <vector>

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec plan`: how many tokens to draft.
Command plan_command();

/// `specdec report`: the answer of `specdec plan` as a page.
Command report_command();

/// `specdec capacity`: how much load a deployment takes, and how many GPUs a load needs.
Command capacity_command();

/// `specdec sweep`: many plans or capacities at once.
Command sweep_command();

/// `specdec analyze`: what a recording says of acceptance, of gamma and of other ways to draft.
Command analyze_command();

/// `specdec merge`: the answer of analyze, simulate or sweep from the parts of several runs, as if one had done all.
Command merge_command();

/// `specdec counters`: what servers counted of speculative decoding, as one summary.
Command counters_command();

/// `specdec doctor`: what is wrong or suspicious with files of servers, benchmarks and recorders.
Command doctor_command();

/// `specdec diff`: two runs, or two drafts, held against each other.
Command diff_command();

/// `specdec synthetic`: the settings that make engines accept as recordings, counters or a rate say.
Command synthetic_command();

/// `specdec record`: a trace of texts that a transformer generates, scored by a second one.
Command record_command();

/// The content of a recording.
Command trace_info_command();
/// Everything that is wrong with it, with file and place.
Command trace_check_command();
/// Any readable format as a specdec-trace, of any tier that the recording can give.
Command trace_convert_command();
/// A part of it: tasks, sequences, positions.
Command trace_slice_command();
/// Synthetic recordings with known answers.
Command trace_generate_command();
/// Several recordings as one.
Command trace_merge_command();

/// `specdec list hardware` and `list models`: the presets that --hardware and --model take, with their figures and the
/// pages that print them.
Command list_hardware_command();
Command list_models_command();
/// The acceptance rates that --published takes, with what was measured beside them.
Command list_published_command();

/// `specdec simulate`: runs one draft, verifier and policy on a pair of models and prints what became of it.
Command simulate_command();

/// `specdec compare`: runs several methods on the same source with the same random numbers, one line for each.
Command compare_command();

/// `specdec reproduce`: the paper's printed figures, and what its formulas give.
Command reproduce_command();

/// `specdec validate`: runs Algorithm 1 on a pair of transformers and holds it against theory.
Command validate_command();

/// The group's own command, which lists and draws all figures, and one for each figure.
std::vector<Command> plot_commands();

}  // namespace specdec::cli
