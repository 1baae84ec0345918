#include "render/figures/drawing_theme.hpp"

#include <cstddef>

namespace specdec::render {
namespace {

constexpr const char* dashes[] = {"solid", "(9,4)", "(3,2)", "(9,3,2,3)", "(16,5)", "(5,3,2,3,2,3)", "(20,4,5,4)"};
constexpr int point_styles[] = {7, 5, 9, 13, 11, 6, 4};
constexpr int patterns[] = {3, 4, 5, 1, 6, 7, 2};

template <class Item, std::size_t Size>
Item nth(const Item (&items)[Size], int number) {
  const auto n = static_cast<std::size_t>(number);
  return items[(n + n / Size) % Size];
}

}  // namespace

const DrawingPalette& palette_of(DrawingTheme theme) {
  static const DrawingPalette light = {"#ffffff",
                                       "#1b1b1f",
                                       "#6e6e78",
                                       "#dcdce2",
                                       {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195"}};
  static const DrawingPalette dark = {"#14171c",
                                      "#e8e8ec",
                                      "#a0a0aa",
                                      "#333840",
                                      {"#56b4e9", "#ff8a3d", "#2fd0a0", "#e6a5cd", "#a6d8f7", "#f0c648", "#b894dd"}};
  static const DrawingPalette page = {"none",
                                      "#1b1b1f",
                                      "#80808a",
                                      "#a8a8b0",
                                      {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#9467bd"}};
  return theme == DrawingTheme::dark ? dark : theme == DrawingTheme::page ? page : light;
}

const char* dash_of_number(int number) { return nth(dashes, number); }

int point_of_number(int number) { return nth(point_styles, number); }

int pattern_of_number(int number) { return nth(patterns, number); }

}  // namespace specdec::render
