#include "cli/scraping.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/http_get.hpp"
#include "cli/interruption.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/formats/streams.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// A server that is asked for its counters answers at once, or something is wrong with it.
constexpr Milliseconds longest_answer{5000};

/// Each is an open file.
constexpr std::int64_t most_scrapes = 500;

/// "500ms", "30s", "10m", "1h".
Milliseconds time_of(std::string_view option, std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  const std::size_t end = std::min(text.find_last_of("0123456789.") + 1, text.size());
  const auto unit =
      std::find_if(std::begin(units), std::end(units), [&](const auto& u) { return u.first == text.substr(end); });
  if (end == 0 || unit == std::end(units)) refuse(option, text, "a number and ms, s, m or h, for instance 30s");
  constexpr LegalRange lengths = {.lo = 0.1, .hi = 1e6};
  const double number = parse_number(option, text.substr(0, end), {});
  const double seconds = number * unit->second / 1000;
  if (!lengths.contains(seconds)) refuse(option, text, "between 100ms and 1000000s");
  return Milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

class Scraper {
 public:
  explicit Scraper(const ScrapeOptions& o) : o_(o), address_(http_address("--scrape", *o.url)) {}

  /// @throws HttpFailure where there is no answer or none of counters
  void scrape() {
    const HttpAnswer answer = http_get(address_, longest_answer);
    if (answer.status != 200) throw HttpFailure(fmt::format("the server answers {}", answer.status_line));
    traces::FileHead head;
    head.bytes = answer.body.substr(0, std::size_t{64} << 10U);
    head.size = static_cast<std::int64_t>(answer.body.size());
    if (!traces::prometheus_text_format().recognises(head))
      throw HttpFailure(fmt::format("the answer is {}, and no metrics in Prometheus' text format",
                                    answer.body.empty() ? "empty" : head.excerpt()));
    keep(answer.body);
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  void keep(const std::string& text) {
    const std::size_t number = names_.size() + 1;
    if (!o_.folder) {
      names_.push_back(fmt::format("{}#{}", *o_.url, number));
      return traces::keep_text(names_.back(), text);
    }
    names_.push_back((fs::path(*o_.folder) / fmt::format("scrape-{:04}.prom", number)).string());
    write_whole("--scrape-folder", names_.back(), text);
  }

  const ScrapeOptions& o_;
  HttpAddress address_;
  std::vector<std::string> names_;
};

/// Waits until then; false where Ctrl-C came first.
bool wait_until(Clock::time_point then, const std::function<void()>& tell) {
  constexpr Milliseconds glance{50};
  while (!Interruption::requested()) {
    const auto left = std::chrono::ceil<Milliseconds>(then - Clock::now());
    if (left.count() <= 0) return true;
    tell();
    std::this_thread::sleep_for(std::min(left, glance));
  }
  return false;
}

}  // namespace

void ScrapeOptions::declare(Options& options) {
  options.group("A running server");
  options.text("--scrape", url, "URL",
               "read counters from the server itself, in the place of files:\nhttp://127.0.0.1:8000/metrics");
  options.text("--every", every, "TIME", "time between two scrapes, in ms, s, m or h");
  options.text("--duration", duration, "TIME", "how long to go on; Ctrl-C ends it earlier [that of --every]");
  options.text("--scrape-folder", folder, "FOLDER", "keep the scrapes as files in it");
  options.flag("--scrape-remote", remote, "--scrape may be of another machine");
}

void require_consistent(const ScrapeOptions& o) {
  if (!o.url) {
    return refuse_given({{"--every", o.every != ScrapeOptions().every},
                         {"--duration", o.duration.has_value()},
                         {"--scrape-folder", o.folder.has_value()},
                         {"--scrape-remote", o.remote}},
                        "needs --scrape beside it");
  }
  if (!http_address("--scrape", *o.url).is_loopback() && !o.remote)
    throw UsageError(
        fmt::format("--scrape is {}, but must be on this machine, 127.0.0.1, [::1] or localhost; "
                    "--scrape-remote allows others",
                    *o.url));
  const Milliseconds every = time_of("--every", o.every);
  const Milliseconds duration = o.duration ? time_of("--duration", *o.duration) : every;
  if (duration < every || duration >= most_scrapes * every)
    refuse("--duration", *o.duration, fmt::format("1 to {} times --every, {}", most_scrapes - 1, o.every));
  if (!o.folder) return;
  std::error_code none;
  if (!fs::is_directory(*o.folder, none)) refuse("--scrape-folder", *o.folder, "an existing folder");
  require_writable("--scrape-folder", (fs::path(*o.folder) / "scrape-0001.prom").string());
  for (const auto& entry : fs::directory_iterator(*o.folder, none)) {
    if (entry.path().filename().string().starts_with("scrape-"))
      throw UsageError(
          fmt::format("--scrape-folder has {}, but must hold no scrapes of before", entry.path().string()));
  }
}

std::vector<std::string> scraped(const ScrapeOptions& o, std::vector<Note>& warnings) {
  const Milliseconds every = time_of("--every", o.every);
  const Milliseconds duration = o.duration ? time_of("--duration", *o.duration) : every;
  const Interruption interruption;
  Scraper scraper(o);
  const auto failed = [&](const std::string& why) {
    throw UsageError(fmt::format("--scrape is {}, but {}", *o.url, why));
  };
  const Clock::time_point begin = Clock::now();
  std::int64_t failures = 0;
  std::string why;
  for (Milliseconds at{0}; at <= duration; at += every) {
    const auto tell = [&] {
      if (o.progress) o.progress(std::min(0.99, (Clock::now() - begin) / std::chrono::duration<double>(duration)));
    };
    if (!wait_until(begin + at, tell)) break;
    try {
      scraper.scrape();
    } catch (const HttpFailure& failure) {
      if (at.count() == 0) failed(fmt::format("cannot be read: {}", failure.what()));
      if (failures++ == 0) why = failure.what();
    }
  }
  if (o.progress) o.progress(1);
  if (failures > 0) {
    if (scraper.names().size() == 1) failed(fmt::format("cannot be read a second time: {}", why));
    warnings.push_back(
        {"scrape_failed", fmt::format("{} of {} scrapes of {} failed and are left out, the first since: {}", failures,
                                      failures + std::ssize(scraper.names()), *o.url, why)});
  }
  return scraper.names();
}

}  // namespace specdec::cli
