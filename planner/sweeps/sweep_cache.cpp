#include "planner/sweeps/sweep_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "analysis/core/build_facts.hpp"
#include "analysis/cost/preset_files.hpp"
#include "analysis/planning/preset_files.hpp"
#include "planner/question_error.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"
#include "traces/formats/sha256.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string sha256(std::string_view text) {
  traces::Sha256 hash;
  hash.add(text);
  return hash.digits();
}

/// Key of the parts of answers that do not depend on the question: the code, and the figures built into it.
std::string program_key(const std::string& version) {
  traces::Sha256 figures;
  for (const auto files : {cost::hardware_preset_files(), cost::efficiency_preset_files(), cost::kernel_preset_files(),
                           cost::model_preset_files(), planning::published_acceptance_files(),
                           planning::published_length_files()}) {
    for (const core::EmbeddedFile& file : files) figures.add(file.content);
  }
  return fmt::format("{}\n{}\n{}\n", version, core::build_facts(), figures.digits());
}

[[noreturn]] void refuse_cache(const fs::path& path, const std::error_code& error) {
  throw QuestionError(fmt::format("--cache {} cannot be used: {}", path.string(), error.message()));
}

}  // namespace

SweepCache::SweepCache(fs::path folder, const std::string& version)
    : folder_(std::move(folder)), program_(program_key(version)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_))
    refuse_cache(folder_, error ? error : std::make_error_code(std::errc::not_a_directory));
}

std::string SweepCache::key(std::string_view question) const { return program_ + std::string(question); }

fs::path SweepCache::path(const std::string& key) const {
  const std::string name = sha256(key);
  return folder_ / name.substr(0, 2) / (name + ".answer");
}

std::optional<PointAnswer> SweepCache::answer(std::string_view question) const {
  const std::string of = key(question);
  const fs::path file = path(of);
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  try {
    const traces::PartFile kept = traces::read_part_file(file);
    if (kept.header != of) return std::nullopt;
    PointAnswer answer = point_answer_from(ordered_json::parse(kept.state));
    if (!answer.rows.is_array() || answer.rows.empty()) return std::nullopt;
    return answer;
  } catch (const traces::FileError&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void SweepCache::keep(std::string_view question, const PointAnswer& answer) const {
  static std::atomic<std::uint64_t> files = 0;
  const std::string of = key(question);
  const fs::path file = path(of);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) refuse_cache(file.parent_path(), error);
  fs::path partial = file;
  partial += fmt::format(".{}-{}.partial", ::getpid(), files++);
  {
    std::ofstream out(partial, std::ios::binary);
    const std::string bytes =
        traces::part_file_bytes({of, to_json(answer).dump(-1, ' ', false, ordered_json::error_handler_t::replace)});
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      fs::remove(partial, error);
      refuse_cache(file, std::make_error_code(std::errc::io_error));
    }
  }
  fs::rename(partial, file, error);
  if (error) refuse_cache(file, error);
}

}  // namespace specdec::planner
