#include "cli/sampling_options.hpp"

namespace specdec::cli {

void SamplingCuts::declare(Options& options) {
  options.integer("--top-k", top_k, {.hi = unbounded}, "keep the K most probable tokens; 0 keeps all");
  options.number("--top-p", top_p, {.lo = 0, .hi = 1, .lo_open = true}, "keep this share of the probability");
  options.number("--min-p", min_p, {.lo = 0, .hi = 1},
                 "keep what has at least this share of the largest probability; 0 keeps all");
}

}  // namespace specdec::cli
