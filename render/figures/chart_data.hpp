#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "render/figures/chart.hpp"

namespace specdec::render {

/// The chart as data: "figure" with title, caption and what each panel's axes and series are ("look" is that of
/// SeriesLook, "marks" the number of the series' rows), and "data", one row for each mark, in the series' order: panel
/// (its title; its y axis' label where it has none), series, mark, then a column for each key of an axis, with _low and
/// _high behind it where a mark has ends, and "label". All rows have the same columns; null is what a mark does not
/// have, or what is not finite. A place on an axis of categories is the category's name.
nlohmann::ordered_json chart_json(const Chart& chart);

/// The same for people: title, caption and a table for each panel. Series over the same x stand side by side, and of
/// long series only some rows are printed, which is said.
std::string chart_text(const Chart& chart);

}  // namespace specdec::render
