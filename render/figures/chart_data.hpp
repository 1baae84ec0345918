#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "render/figures/chart.hpp"
#include "render/table.hpp"

namespace specdec::render {

/// The chart as data: "figure" with title, caption and a description of each panel's axes and series ("look" is that of
/// SeriesLook, "marks" the number of the series' rows), and "data", one row per mark, in the series' order: panel
/// (its title; its y axis' label if it has none), series, mark, then a column for each key of an axis, with _low and
/// _high after it if a mark has ends, and "label". All rows have the same columns; null stands for what a mark lacks
/// or is not finite. A place on an axis of categories is the category's name.
nlohmann::ordered_json chart_json(const Chart& chart);

/// Its "figure" alone.
/// @param with_marks  True if the series have the vectors of ChartSeries, null where a number is not finite: everything
///                    that a page's script draws from
nlohmann::ordered_json figure_json(const Chart& chart, bool with_marks);

/// The panel's title, or its y axis' label if it has none.
std::string title_of(const ChartPanel& panel);

/// A panel's data: series over the same x stand side by side, each other one by itself.
/// @param name  caption of the former
/// @param most  rows of a table; of longer series evenly spaced ones are shown, and the caption says so
std::vector<Table> data_tables(const ChartPanel& panel, const std::string& name, std::size_t most);

/// The same for human readers, without title and caption: the tables of each panel.
std::string chart_text(const Chart& chart);

}  // namespace specdec::render
