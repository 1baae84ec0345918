#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "cli/report.hpp"
#include "cli/scraping.hpp"

/// The answer of `specdec counters` between its computation and its printing: counters.cpp makes it, counters_json.cpp
/// and counters_text.cpp print it.
namespace specdec::cli {

struct CountersOptions {
  std::vector<std::string> sources;
  ScrapeOptions scrape;
  std::optional<std::string> by;
  std::optional<std::int64_t> gamma;
  std::optional<std::string> tree;
  std::int64_t max_gamma = 12;
  bool skip_unreadable = false;
};

/// Figures at one gamma, from the counts of one group.
struct CountersGamma {
  std::int64_t gamma = 0;
  estimate::TokensPerStep tokens;
  bool measured = false;
};

struct CountersGroup {
  estimate::ServingSummary summary;
  std::vector<CountersGamma> gammas;
  /// The method by which the intervals of `gammas` were made.
  std::string method;
  /// Why there are no gammas; empty where there are.
  std::string no_gammas;
};

struct CountersAnswer {
  const CountersOptions& options;
  std::vector<CountersGroup> groups;
  /// Notes of the reader.
  std::vector<Note> notes;
  /// Those of the sources that were read.
  std::vector<std::string> read = {};
};

/// Why accepted / drafted is printed but never used as alpha.
std::string_view reason_against_alpha(traces::DraftShape shape);

/// The model, and after it the group's value if there is one; empty without either.
std::string title_of(const estimate::ServingSummary& summary);

nlohmann::ordered_json json_of(const CountersAnswer& answer);
render::Spoken spoken(const CountersAnswer& answer);
/// A row of each table by its name, for Report::rows_of_empty.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_counts();

}  // namespace specdec::cli
