#include "analysis/cost/hardware_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/preset_files.hpp"
#include "analysis/cost/preset_names.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::cost {
namespace {

using nlohmann::json;
using traces::FileError;

constexpr std::size_t longest_hardware_file = std::size_t{1} << 20;
/// Objects and arrays in each other.
constexpr int deepest = 4;

struct FigureRange {
  double least = core::least_positive, most = core::largest_double;
  /// "bytes"; empty if any number will do.
  std::string_view unit = {};
};
/// From a microcontroller to more than a wafer: what lies outside was written in another unit, TB/s or TFLOP/s.
constexpr FigureRange plausible_memory = {1e4, 1e18, "bytes"};
constexpr FigureRange plausible_bandwidth = {1e6, 1e20, "bytes/s"};
constexpr FigureRange plausible_link = {1e4, 1e20, "bytes/s"};
constexpr FigureRange plausible_peak = {1e5, 1e24, "FLOP/s"};

constexpr std::array<std::string_view, 7> peak_names = {"bf16", "fp16", "fp32", "fp4", "fp64", "fp8", "int8"};

/// Where one is looked for, from the first.
std::vector<std::string_view> peaks_of(NumberType type) {
  switch (type) {
    case NumberType::fp32:
      return {"fp32"};
    case NumberType::fp16:
      return {"fp16", "bf16", "fp32"};
    case NumberType::bf16:
    case NumberType::int4:
      return {"bf16", "fp16", "fp32"};
    case NumberType::fp8:
      return {"fp8", "bf16", "fp16", "fp32"};
    case NumberType::int8:
      return {"int8", "bf16", "fp16", "fp32"};
    case NumberType::nvfp4:
    case NumberType::mxfp4:
      return {"fp4", "bf16", "fp16", "fp32"};
  }
  throw std::logic_error("peaks_of: no such number type");
}

/// Values of one file; every refusal names the file and the place of the value in it: `peak_flops.bf16.value`.
class HardwareFileReader {
 public:
  explicit HardwareFileReader(std::filesystem::path path) : path_(std::move(path)) {}

  /// @param sources_needed  true for a preset: no figure without its address
  HardwareSpec hardware(std::string_view text, bool sources_needed) {
    sources_needed_ = sources_needed;
    const json document = parsed(text);
    require_keys(document, "",
                 {"name", "aliases", "vendor", "memory_bytes", "memory_bandwidth_bytes_per_second", "peak_flops",
                  "link_bytes_per_second", "watts", "gpus_per_node", "point_error"});
    HardwareSpec spec;
    spec.name = text_of(member(document, "", "name"), "name");
    if (document.contains("aliases")) spec.aliases = texts_of(document["aliases"], "aliases");
    if (document.contains("vendor")) spec.vendor = text_of(document["vendor"], "vendor");
    const auto needed_number = [&](const char* name, const FigureRange& range) {
      return number(member(document, "", name), name, range);
    };
    spec.memory_bytes = needed_number("memory_bytes", plausible_memory);
    spec.memory_bandwidth_bytes_per_second = needed_number("memory_bandwidth_bytes_per_second", plausible_bandwidth);
    const json& peaks = member(document, "", "peak_flops");
    if (!peaks.is_object() || peaks.empty())
      refuse_value("peak_flops", peaks, fmt::format("an object with at least one of {}", fmt::join(peak_names, ", ")));
    require_keys(peaks, "peak_flops", {peak_names.begin(), peak_names.end()});
    for (const auto& [name, value] : peaks.items())
      spec.peak_flops.emplace(name, number(value, "peak_flops." + name, plausible_peak));
    const auto optional_number = [&](const char* name, const FigureRange& range) -> std::optional<SourcedNumber> {
      if (!document.contains(name)) return std::nullopt;
      return number(document[name], name, range);
    };
    spec.link_bytes_per_second = optional_number("link_bytes_per_second", plausible_link);
    spec.watts = optional_number("watts", {});
    spec.gpus_per_node = optional_number("gpus_per_node", {.least = 1});
    spec.point_error = optional_number("point_error", {});
    if (spec.gpus_per_node && spec.gpus_per_node->value != std::floor(spec.gpus_per_node->value))
      refuse("gpus_per_node", fmt::format("{}", spec.gpus_per_node->value), "a whole number");
    return spec;
  }

  EfficiencyDefaults efficiency(std::string_view text) const {
    const json document = parsed(text);
    require_keys(document, "",
                 {"bandwidth_efficiency", "compute_efficiency", "fp8_compute_efficiency", "fp4_compute_efficiency",
                  "link_efficiency", "all_reduce_latency_seconds", "launch_seconds", "draft_launch_seconds",
                  "layer_seconds", "scheduling_seconds"});
    const auto range_of = [&](const char* name, double least, double most) {
      return range(member(document, "", name), name, least, most);
    };
    EfficiencyDefaults defaults;
    defaults.bandwidth_efficiency = range_of("bandwidth_efficiency", core::least_positive, 1);
    defaults.compute_efficiency = range_of("compute_efficiency", core::least_positive, 1);
    defaults.fp8_compute_efficiency = range_of("fp8_compute_efficiency", core::least_positive, 1);
    defaults.fp4_compute_efficiency = range_of("fp4_compute_efficiency", core::least_positive, 1);
    defaults.link_efficiency = range_of("link_efficiency", core::least_positive, 1);
    defaults.all_reduce_latency_seconds = range_of("all_reduce_latency_seconds", 0, core::largest_double);
    defaults.launch_seconds = range_of("launch_seconds", 0, core::largest_double);
    defaults.draft_launch_seconds = range_of("draft_launch_seconds", 0, core::largest_double);
    defaults.layer_seconds = range_of("layer_seconds", 0, core::largest_double);
    defaults.scheduling_seconds = range_of("scheduling_seconds", 0, core::largest_double);
    return defaults;
  }

 private:
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const {
    throw FileError(path_, FileError::whole_file(), std::move(field), std::move(found), std::move(expected));
  }
  [[noreturn]] void refuse_value(std::string field, const json& found, std::string expected) const {
    refuse(std::move(field), traces::printable(found.dump(-1, ' ', true, json::error_handler_t::replace)),
           std::move(expected));
  }

  static std::string inside(std::string_view place, std::string_view key) {
    return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
  }

  json parsed(std::string_view text) const {
    const auto once = traces::unique_keys(
        [&](const std::string& key) { refuse(traces::printable(key), "there twice", "there once in its object"); });
    const auto see = [&](int depth, json::parse_event_t event, json& value) {
      if (depth > deepest) refuse("document", "nested deeper", fmt::format("nested at most {} deep", deepest));
      return once(depth, event, value);
    };
    try {
      json document = json::parse(text, see);
      if (!document.is_object()) refuse_value("document", document, "an object");
      return document;
    } catch (const json::parse_error& error) {
      throw FileError(path_, FileError::byte(static_cast<std::int64_t>(error.byte)), "document",
                      "not JSON from there on", "a JSON object");
    } catch (const json::out_of_range&) {
      refuse("document", "holding a number beyond the range of double", "JSON with numbers in range");
    }
  }

  void require_keys(const json& object, std::string_view place, std::vector<std::string_view> known) const {
    for (const auto& entry : object.items())
      if (std::find(known.begin(), known.end(), entry.key()) == known.end())
        refuse(inside(place, "key"), traces::printable(entry.key()), fmt::format("one of {}", fmt::join(known, ", ")));
  }

  const json& member(const json& object, std::string_view place, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(inside(place, key), "missing", "there");
    return *found;
  }

  std::string text_of(const json& value, const std::string& place) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      refuse_value(place, value, "a string that is not empty");
    return value.get<std::string>();
  }

  std::vector<std::string> texts_of(const json& value, const std::string& place) const {
    if (!value.is_array()) refuse_value(place, value, "an array of strings");
    std::vector<std::string> texts;
    for (const json& text : value) texts.push_back(text_of(text, fmt::format("{}[{}]", place, texts.size())));
    return texts;
  }

  double plain_number(const json& value, const std::string& place, const FigureRange& range) const {
    const double read = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (range.least <= read && read <= range.most) return read;
    const std::string from = range.least == core::least_positive ? "(0" : fmt::format("[{}", range.least);
    const std::string to = range.most < core::largest_double ? fmt::format("{}]", range.most) : "inf)";
    const std::string of = range.unit.empty() ? "" : fmt::format(" of {}", range.unit);
    refuse_value(place, value, fmt::format("a number{} in {}, {}", of, from, to));
  }

  SourcedNumber number(const json& value, const std::string& place, const FigureRange& range) const {
    if (!value.is_object()) {
      if (sources_needed_) refuse_value(place, value, "an object with value and source");
      return {.value = plain_number(value, place, range)};
    }
    require_keys(value, place, {"value", "quoted", "source", "second_quoted", "second_source", "note"});
    SourcedNumber read;
    read.value = plain_number(member(value, place, "value"), inside(place, "value"), range);
    const auto read_text = [&](const char* key, std::string& text) {
      if (value.contains(key)) text = text_of(value[key], inside(place, key));
    };
    if (sources_needed_) member(value, place, "source");
    read_text("quoted", read.quoted);
    read_text("source", read.source);
    read_text("second_quoted", read.second_quoted);
    read_text("second_source", read.second_source);
    read_text("note", read.note);
    return read;
  }

  SourcedRange range(const json& value, const std::string& place, double least, double most) const {
    if (!value.is_object()) refuse_value(place, value, "an object with low, value and high");
    require_keys(value, place, {"low", "value", "high", "sources", "note"});
    SourcedRange read;
    read.low = plain_number(member(value, place, "low"), inside(place, "low"), {least, most});
    read.value = plain_number(member(value, place, "value"), inside(place, "value"), {read.low, most});
    read.high = plain_number(member(value, place, "high"), inside(place, "high"), {read.value, most});
    read.sources = texts_of(member(value, place, "sources"), inside(place, "sources"));
    read.note = text_of(member(value, place, "note"), inside(place, "note"));
    return read;
  }

  std::filesystem::path path_;
  bool sources_needed_ = false;
};

std::vector<HardwareSpec> read_presets() {
  std::vector<HardwareSpec> presets;
  for (const core::EmbeddedFile& file : hardware_preset_files())
    presets.push_back(
        HardwareFileReader(std::filesystem::path("presets/hardware") / file.name).hardware(file.content, true));
  std::sort(presets.begin(), presets.end(),
            [](const HardwareSpec& a, const HardwareSpec& b) { return a.name < b.name; });
  return presets;
}

}  // namespace

namespace {

/// The type that products with weights of a type are made in, and its peak.
const std::pair<const std::string, SourcedNumber>& peak_for(const HardwareSpec& hardware, NumberType type) {
  const std::vector<std::string_view> peaks = peaks_of(type);
  auto fastest = hardware.peak_flops.end();
  for (const std::string_view peak : peaks) {
    const auto found = hardware.peak_flops.find(std::string(peak));
    if (found == hardware.peak_flops.end()) continue;
    if (fastest == hardware.peak_flops.end() || found->second.value > fastest->second.value) fastest = found;
  }
  if (fastest != hardware.peak_flops.end()) return *fastest;
  throw std::invalid_argument(fmt::format("peak_flops_for: {} has no peak for {} weights, but must have one of {}",
                                          hardware.name.empty() ? "the hardware" : hardware.name, name_of(type),
                                          fmt::join(peaks, ", ")));
}

}  // namespace

double peak_flops_for(const HardwareSpec& hardware, NumberType type) { return peak_for(hardware, type).second.value; }

const SourcedRange& compute_efficiency_for(const HardwareSpec& hardware, NumberType type) {
  const EfficiencyDefaults& usual = efficiency_defaults();
  const std::string& computed = peak_for(hardware, type).first;
  return computed == "fp8"   ? usual.fp8_compute_efficiency
         : computed == "fp4" ? usual.fp4_compute_efficiency
                             : usual.compute_efficiency;
}

HardwareSpec read_hardware_spec(const std::filesystem::path& path) {
  const auto unreadable = [&](const std::string& why) {
    return FileError(path, FileError::whole_file(), "file", why, "a readable file");
  };
  const traces::KeptStreams streams;
  const std::filesystem::path from = traces::readable_path(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(from, error);
  if (error) throw unreadable("unreadable (" + error.message() + ")");
  if (size > longest_hardware_file)
    throw FileError(path, FileError::whole_file(), "file size", fmt::format("{} bytes", size),
                    fmt::format("at most {} bytes", longest_hardware_file));
  std::ifstream file(from, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open()) throw unreadable("unreadable (" + std::generic_category().message(errno) + ")");
  return HardwareFileReader(path).hardware(text, false);
}

std::span<const HardwareSpec> hardware_presets() {
  static const std::vector<HardwareSpec> presets = read_presets();
  return presets;
}

const HardwareSpec* hardware_preset(std::string_view name) { return find_preset(hardware_presets(), name); }

const EfficiencyDefaults& efficiency_defaults() {
  static const EfficiencyDefaults defaults = [] {
    const core::EmbeddedFile& file = efficiency_preset_files().front();
    return HardwareFileReader(std::filesystem::path("presets") / file.name).efficiency(file.content);
  }();
  return defaults;
}

}  // namespace specdec::cost
