#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::tests {

/// One round of speculation, of which files of counts in every format are made.
struct KnownRound {
  int drafted = 0;
  int accepted = 0;
};

/// Three requests whose rounds all draft three tokens: 12 rounds, 36 drafts, 15 accepted.
inline std::vector<std::vector<KnownRound>> known_requests() {
  return {{{3, 3}, {3, 0}, {3, 1}, {3, 3}, {3, 2}}, {{3, 0}, {3, 0}, {3, 2}}, {{3, 1}, {3, 3}, {3, 0}, {3, 0}}};
}

/// Counts over rounds.
struct KnownTotals {
  double rounds = 0, drafted = 0, accepted = 0;
  /// [j] = rounds with exactly j accepted drafts, and the same by length of the draft.
  std::vector<double> by_accepted;
  std::map<int, std::vector<double>> by_drafted;
  /// [j] = rounds whose draft j + 1 was accepted.
  std::vector<double> accepted_at;

  double emitted() const { return rounds + accepted; }
  double mean_length() const { return emitted() / rounds; }
  double rate() const { return accepted / drafted; }
};

inline KnownTotals totals_of(const std::vector<KnownRound>& rounds) {
  KnownTotals totals;
  for (const KnownRound& round : rounds) {
    const auto accepted = static_cast<std::size_t>(round.accepted);
    const auto drafted = static_cast<std::size_t>(round.drafted);
    totals.rounds += 1;
    totals.drafted += round.drafted;
    totals.accepted += round.accepted;
    totals.by_accepted.resize(std::max(totals.by_accepted.size(), drafted + 1), 0);
    totals.by_accepted[accepted] += 1;
    auto& of_length = totals.by_drafted[round.drafted];
    of_length.resize(drafted + 1, 0);
    of_length[accepted] += 1;
    totals.accepted_at.resize(std::max(totals.accepted_at.size(), drafted), 0);
    for (std::size_t j = 0; j < accepted; ++j) totals.accepted_at[j] += 1;
  }
  return totals;
}

inline KnownTotals totals_of(const std::vector<std::vector<KnownRound>>& requests) {
  std::vector<KnownRound> all;
  for (const auto& rounds : requests) all.insert(all.end(), rounds.begin(), rounds.end());
  return totals_of(all);
}

/// Everything that a reader of counts handed over.
struct CountsTaken {
  std::vector<traces::ServingCounts> units;
  std::vector<Note> warnings;

  traces::CountsSink sink() {
    return {[this](const traces::ServingCounts& counts) { units.push_back(counts); },
            [this](const Note& warning) { warnings.push_back(warning); }};
  }

  /// Sum of one member over the units that have it.
  double sum(std::optional<double> traces::ServingCounts::*member) const {
    double result = 0;
    for (const traces::ServingCounts& unit : units) result += (unit.*member).value_or(0);
    return result;
  }
  /// Sum by element of a list, as long as the longest.
  std::vector<double> sum(std::vector<double> traces::ServingCounts::*member) const {
    std::vector<double> result;
    for (const traces::ServingCounts& unit : units) {
      const std::vector<double>& list = unit.*member;
      result.resize(std::max(result.size(), list.size()), 0);
      for (std::size_t j = 0; j < list.size(); ++j) result[j] += list[j];
    }
    return result;
  }
  std::vector<std::string> warning_codes() const {
    std::vector<std::string> codes;
    for (const Note& warning : warnings) codes.push_back(warning.code);
    return codes;
  }
};

/// Reads a file in a format, whether or not it recognises it.
/// @throws traces::FileError as the reader does
inline CountsTaken take_counts_of(const traces::CountsFormat& format, const std::filesystem::path& path) {
  CountsTaken taken;
  const std::vector<std::filesystem::path> files = {path};
  format.read(files, taken.sink());
  return taken;
}

/// The same for a content; the file's name is `name`.
inline CountsTaken take_counts(const traces::CountsFormat& format, std::string_view content,
                               const std::string& name = "x.json") {
  const TemporaryFolder folder;
  return take_counts_of(format, folder.write(name, content));
}

/// The error of reading the content, without the folder; "" if there is none.
inline std::string refusal_of_counts(const traces::CountsFormat& format, std::string_view content,
                                     const std::string& name = "x.json") {
  const TemporaryFolder folder;
  const auto path = folder.write(name, content);
  std::string message = message_of<traces::FileError>([&] { take_counts_of(format, path); });
  const std::string prefix = folder.path().string() + "/";
  for (std::size_t at = 0; (at = message.find(prefix, at)) != std::string::npos;) message.erase(at, prefix.size());
  return message;
}

/// Whether a format takes a file of this content for its own.
inline bool recognises(const traces::CountsFormat& format, std::string_view content) {
  const TemporaryFolder folder;
  return format.recognises(traces::FileHead::of(folder.write("x", content)));
}

}  // namespace specdec::tests
