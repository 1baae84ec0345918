#include "cli/files.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nettle/base64.h>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/usage_error.hpp"
#include "traces/formats/sha256.hpp"
#include "traces/formats/streams.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t hashed_without_asking_bytes = 64'000'000;

[[noreturn]] void cannot(std::string_view option, const std::string& path, std::string_view what,
                         const std::error_code& why = {errno, std::generic_category()}) {
  throw UsageError(fmt::format("{}: {} cannot be {}: {}", option, path, what, why.message()));
}

void write_to(std::string_view option, const std::string& path, const fs::path& file, std::string_view content) {
  std::ofstream out(file, std::ios::binary);
  if (out << content << std::flush) return;
  const std::error_code why(errno, std::generic_category());
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) fs::remove(file, ignored);
  cannot(option, path, "written", why);
}

std::string sha256(std::string_view option, const std::string& path) {
  std::ifstream in(traces::readable_path(path), std::ios::binary);
  if (!in) cannot(option, path, "read");
  traces::Sha256 hash;
  std::array<char, 1 << 16> block;
  while (in.read(block.data(), block.size()), in.gcount() > 0)
    hash.add({block.data(), static_cast<std::size_t>(in.gcount())});
  return hash.digits();
}

/// A scrape of a server, whose counts are told by the differences between scrapes.
bool holds_metrics(const std::string& path) {
  try {
    return traces::prometheus_text_format().recognises(traces::FileHead::of(path));
  } catch (const traces::FileError&) {
    return false;
  }
}

}  // namespace

std::string base64_sha256(std::string_view text) {
  traces::Sha256 hash;
  hash.add(text);
  const traces::Sha256::Digest digest = hash.digest();
  std::string encoded(BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE), '\0');
  base64_encode_raw(encoded.data(), digest.size(), digest.data());
  return encoded;
}

void require_writable(std::string_view option, const std::string& path) {
  const fs::path target(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::error_code error, ignored;
  const fs::file_status there = fs::status(target, error);
  // A loop of links, a folder that may not be searched, a name too long.
  if (there.type() == fs::file_type::none) cannot(option, path, "written", error);
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError(fmt::format("{} is {}, but must be a file in an existing directory", option, path));
  }
  if (path.empty() || fs::is_directory(there)) {
    throw UsageError(
        fmt::format("{} is {}, but must be a file, not a directory", option, path.empty() ? "empty" : path));
  }
  const bool in_place = fs::exists(there) && !fs::is_regular_file(there);
  if (access((in_place ? target : folder).c_str(), W_OK) != 0) cannot(option, path, "written");
}

void require_no_input(std::string_view option, const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  // Streams and devices are not replaced.
  if (!fs::is_regular_file(path, ignored)) return;
  for (const std::string& input : inputs) {
    // A file in a folder that is read is itself read.
    const bool in_folder =
        fs::is_directory(input, ignored) && fs::equivalent(fs::absolute(path).parent_path(), input, ignored);
    if (in_folder || fs::equivalent(path, input, ignored))
      throw UsageError(fmt::format("{} is {}, but must not be an input: what it holds would be lost", option, path));
  }
}

void write_whole(std::string_view option, const std::string& path, std::string_view content) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return write_to(option, path, path, content);
  const fs::path target = fs::weakly_canonical(path, error);
  if (error) cannot(option, path, "written", error);
  const fs::path partial = fmt::format("{}.partial-{}", target.string(), getpid());
  write_to(option, path, partial, content);
  fs::rename(partial, target, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(partial, ignored);
  cannot(option, path, "written", error);
}

nlohmann::ordered_json unhashed_facts(std::string_view option, const std::string& path) {
  struct stat facts {};
  if (stat(traces::readable_path(path).c_str(), &facts) != 0) cannot(option, path, "read");
  return {{"path", path},
          {"size_bytes", static_cast<std::uintmax_t>(facts.st_size)},
          {"modified", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(facts.st_mtime))},
          {"sha256", nullptr}};
}

nlohmann::ordered_json file_facts(std::string_view option, const std::string& path, bool always_hash) {
  nlohmann::ordered_json facts = unhashed_facts(option, path);
  const bool is_small = facts.at("size_bytes").get<std::uintmax_t>() <= hashed_without_asking_bytes;
  if (always_hash || is_small) facts["sha256"] = sha256(option, path);
  return facts;
}

std::vector<nlohmann::ordered_json> facts_of(const std::vector<std::string>& files) {
  std::vector<nlohmann::ordered_json> facts;
  for (const std::string& file : files) facts.push_back(file_facts("FILE", file));
  return facts;
}

std::vector<nlohmann::ordered_json> facts_of_each(const std::vector<std::string>& files) {
  const std::set<std::string> each(files.begin(), files.end());
  return facts_of({each.begin(), each.end()});
}

std::vector<Note> same_content(const std::vector<nlohmann::ordered_json>& files) {
  // In order of the first of each content.
  std::vector<std::vector<std::string>> alike;
  std::map<std::string, std::size_t> places;
  for (const nlohmann::ordered_json& file : files) {
    const nlohmann::ordered_json hash = file.value("sha256", nlohmann::ordered_json());
    if (hash.is_null()) continue;
    const auto [place, is_new] = places.emplace(hash, alike.size());
    if (is_new) alike.emplace_back();
    alike[place->second].push_back(file.at("path"));
  }
  std::vector<Note> warnings;
  for (const std::vector<std::string>& copies : alike) {
    if (copies.size() < 2) continue;
    const std::string which = copies.size() == 2 ? fmt::format("{} holds", copies[1])
                                                 : fmt::format("{} and {} more hold", copies[1], copies.size() - 2);
    warnings.push_back(
        {"same_content",
         fmt::format("{} the same bytes as {}: {}", which, copies[0],
                     holds_metrics(copies[0]) ? "nothing was counted between them; gauges without counts count again"
                                              : "what it says counts again, and intervals are too narrow")});
  }
  return warnings;
}

}  // namespace specdec::cli
