#pragma once

#include <nlohmann/json_fwd.hpp>
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

/// Everything of the chart for the page's script, which draws it again with values to hover over: series with the
/// vectors of ChartSeries, null where a number is not finite.
nlohmann::ordered_json page_chart_json(const Chart& chart);

}  // namespace specdec::render
