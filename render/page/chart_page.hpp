#pragma once

#include <string>

#include "render/figures/chart.hpp"

namespace specdec::render {

/// A chart on a page: as a <figure> with its drawing, caption and data.
struct PageChart {
  Chart chart;
  /// SVG; empty where it is not drawn, and then the data stand open in its place until the page's script draws it.
  std::string drawing;
};

std::string figure_html(const PageChart& shown);

}  // namespace specdec::render
