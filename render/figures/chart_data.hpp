#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "render/figures/chart.hpp"

namespace specdec::render {

/// The chart as data: "figure" with title, caption and a description of each panel's axes and series ("look" is that of
/// SeriesLook, "marks" the number of the series' rows), and "data", one row per mark, in the series' order: panel
/// (its title; its y axis' label if it has none), series, mark, then a column for each key of an axis, with _low and
/// _high after it if a mark has ends, and "label". All rows have the same columns; null stands for what a mark lacks
/// or is not finite. A place on an axis of categories is the category's name.
nlohmann::ordered_json chart_json(const Chart& chart);

/// The same for human readers, without title and caption: a table for each panel. Series over the same x stand side by
/// side; for long series only some rows are printed, with a note.
std::string chart_text(const Chart& chart);

}  // namespace specdec::render
