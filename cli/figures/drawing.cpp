#include "cli/figures/drawing.hpp"

#include "cli/figures/gnuplot.hpp"
#include "cli/figures/gnuplot_script.hpp"

namespace specdec::cli {

std::string drawing_of(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  return run_gnuplot(gnuplot_script(chart, style, made_by));
}

}  // namespace specdec::cli
