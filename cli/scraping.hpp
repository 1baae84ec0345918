#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "traces/note.hpp"

namespace specdec::cli {

/// A server's counters, read from the server itself.
struct ScrapeOptions {
  std::optional<std::string> url;
  std::string every = "30s";
  /// [that of one interval]
  std::optional<std::string> duration;
  std::optional<std::string> folder;
  bool remote = false;
  Progress progress;

  void declare(Options& options);
};

/// @throws UsageError where options contradict each other, or the server is not on this machine and need not be
void require_consistent(const ScrapeOptions& o);

/// Scrapes the server now and after each interval until the duration is over or Ctrl-C comes, and returns the names
/// under which what it answered can be read as files: those in the folder, or "URL#1", "URL#2", ..., copies without a
/// name that are kept as streams are (traces::KeptStreams). Scrapes behind the first that fail are left out and warned
/// of ("scrape_failed").
/// @throws UsageError if the first one fails or is none, or if no other one succeeds though there was time for it
std::vector<std::string> scraped(const ScrapeOptions& o, std::vector<Note>& warnings);

}  // namespace specdec::cli
