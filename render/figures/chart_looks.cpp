#include "render/figures/chart_looks.hpp"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace specdec::render {
namespace {

/// Numbers used in one panel. References have separate numbers.
using TakenNumbers = std::map<bool, std::set<int>>;

int first_free(const std::set<int>& taken) {
  int number = 0;
  while (taken.contains(number)) ++number;
  return number;
}

}  // namespace

ChartLooks looks_of(const std::vector<ChartPanel>& panels) {
  using Name = std::pair<bool, std::string>;
  std::map<Name, int> known;
  ChartLooks looks;
  for (const ChartPanel& panel : panels) {
    TakenNumbers taken;
    for (const ChartSeries& s : panel.series) {
      const bool is_reference = s.role == ChartRole::reference;
      if (s.colour) taken[is_reference].insert(*s.colour);
      if (const auto before = known.find({is_reference, s.name}); before != known.end())
        taken[is_reference].insert(before->second);
    }
    std::set<std::pair<std::string, ChartMark>> seen;
    std::vector<SeriesLook>& of_panel = looks.emplace_back();
    for (const ChartSeries& s : panel.series) {
      const bool is_reference = s.role == ChartRole::reference;
      const auto before = known.find({is_reference, s.name});
      const bool is_known = !s.name.empty() && before != known.end();
      const int number = s.colour ? *s.colour : is_known ? before->second : first_free(taken[is_reference]);
      taken[is_reference].insert(number);
      if (!s.name.empty()) known.emplace(Name{is_reference, s.name}, number);
      of_panel.push_back({number, !s.name.empty() && seen.insert({s.name, s.mark}).second});
    }
  }
  return looks;
}

bool shares_legend(const std::vector<ChartPanel>& panels, const ChartLooks& looks) {
  std::map<std::tuple<ChartMark, ChartRole, int>, std::string> names;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    for (std::size_t i = 0; i < looks[p].size(); ++i) {
      const ChartSeries& s = panels[p].series[i];
      if (!looks[p][i].in_legend) continue;
      if (names.emplace(std::tuple{s.mark, s.role, looks[p][i].number}, s.name).first->second != s.name) return false;
    }
  }
  return true;
}

}  // namespace specdec::render
