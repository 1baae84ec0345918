#include "analysis/cost/kernel_times.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/preset_files.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::cost {
namespace {

using nlohmann::json;
using traces::FileError;

constexpr std::size_t longest_kernel_file = std::size_t{1} << 20;
/// Objects and arrays in each other.
constexpr int deepest_kernel_file = 6;
constexpr std::int64_t most_accelerators = 1024;
/// Longer ones are no seconds: of a call or a layer, of a sequence in a call of attention, and of an iteration.
constexpr double longest_call_seconds = 1e-3, longest_sequence_seconds = 1e-5, longest_iteration_seconds = 0.1;
/// Fewest bytes per second of an all-reduce; their time adds to that of a call.
constexpr double fewest_reduced_bytes_per_second = 1e8;

/// The type whose shares stand in for those of types that were not measured.
constexpr std::string_view of_any = "bf16";

/// Null where none is over so many.
const CollectiveTimes* over(const std::vector<CollectiveTimes>& tables, std::int64_t accelerators) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const CollectiveTimes& times) { return times.accelerators == accelerators; });
  return found == tables.end() ? nullptr : &*found;
}

/// Values of one file; a refusal names the file and the place in it: `engines.vllm.all_reduces[1].seconds[3]`.
class KernelFileReader {
 public:
  explicit KernelFileReader(std::filesystem::path path) : path_(std::move(path)) {}

  std::vector<KernelTimes> engines(std::string_view text) const {
    const json document = parsed(text);
    require_keys(document, "", {"device", "source", "licence", "attribution", "engines"});
    KernelTimes common;
    common.device = text_of(document, "", "device");
    common.source = text_of(document, "", "source");
    if (document.contains("licence")) common.licence = text_of(document, "", "licence");
    if (document.contains("attribution")) common.attribution = text_of(document, "", "attribution");
    const json& all = object_of(document, "", "engines");
    std::vector<KernelTimes> read;
    for (const auto& [name, engine] : all.items()) read.push_back(engine_of(common, name, engine));
    return read;
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
      if (depth > deepest_kernel_file)
        refuse("document", "nested deeper", fmt::format("nested at most {} deep", deepest_kernel_file));
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
  const json& object_of(const json& object, std::string_view place, const char* key) const {
    const json& value = member(object, place, key);
    if (!value.is_object() || value.empty()) refuse_value(inside(place, key), value, "an object that is not empty");
    return value;
  }
  std::string text_of(const json& object, std::string_view place, const char* key) const {
    const json& value = member(object, place, key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      refuse_value(inside(place, key), value, "a string that is not empty");
    return value.get<std::string>();
  }
  double number_of(const json& value, const std::string& place, double least, double most) const {
    const double read = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (least <= read && read <= most) return read;
    const std::string from = least == core::least_positive ? "(0" : fmt::format("[{}", least);
    refuse_value(place, value, fmt::format("a number in {}, {}]", from, most));
  }
  double number_of(const json& object, std::string_view place, const char* key, double least, double most) const {
    return number_of(member(object, place, key), inside(place, key), least, most);
  }
  double seconds_of(const json& value, const std::string& place, double most) const {
    const double read = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (0 <= read && read <= most) return read;
    refuse_value(place, value, fmt::format("seconds in [0, {:.4g}]", most));
  }
  double seconds_of(const json& object, std::string_view place, const char* key, double most) const {
    return seconds_of(member(object, place, key), inside(place, key), most);
  }

  void require_type(std::string_view place, const std::string& name) const {
    if (number_type_named(name)) return;
    refuse(inside(place, "key"), traces::printable(name), "a type of numbers: bf16, fp8, nvfp4, ...");
  }

  /// Checks the record of a fit, which no price needs, but whose numbers must be sound.
  void require_sound_fit(const json& fit, const std::string& place) const {
    if (fit.contains("rows")) number_of(fit, place, "rows", 1, 1e9);
    for (const char* key : {"median_error", "p90_error"})
      if (fit.contains(key)) number_of(fit, place, key, 0, 1e3);
    if (fit.contains("measured_with")) text_of(fit, place, "measured_with");
  }

  ProductTimes product_of(const json& fit, const std::string& place, bool of_experts = false) const {
    if (!fit.is_object()) refuse_value(place, fit, "an object");
    std::vector<std::string_view> known = {"bandwidth_share", "peak_share", "corner",       "call_seconds", "rows",
                                           "median_error",    "p90_error",  "measured_with"};
    if (of_experts) known.push_back("routing");
    require_keys(fit, place, known);
    require_sound_fit(fit, place);
    return {.bandwidth_share = number_of(fit, place, "bandwidth_share", core::least_positive, 1),
            .peak_share = number_of(fit, place, "peak_share", core::least_positive, 1),
            .corner = number_of(fit, place, "corner", 1, 100),
            .call_seconds = seconds_of(fit, place, "call_seconds", longest_call_seconds)};
  }

  ExpertTimes experts_of(const json& fit, const std::string& place) const {
    return {.products = product_of(fit, place, true),
            .routing = number_of(fit, place, "routing", core::least_positive, 1)};
  }

  VerificationTimes verification_of(const json& fit, const std::string& place) const {
    require_keys(fit, place,
                 {"floor_seconds", "position_seconds", "tile_seconds", "each_head_bandwidth_share", "rows",
                  "median_error", "p90_error", "measured_with"});
    require_sound_fit(fit, place);
    VerificationTimes times{.floor_seconds = seconds_of(fit, place, "floor_seconds", longest_call_seconds),
                            .position_seconds = seconds_of(fit, place, "position_seconds", longest_sequence_seconds),
                            .tile_seconds = seconds_of(fit, place, "tile_seconds", longest_call_seconds)};
    if (fit.contains("each_head_bandwidth_share"))
      times.each_head_bandwidth_share = number_of(fit, place, "each_head_bandwidth_share", core::least_positive, 1);
    return times;
  }

  AttentionTimes attention_of(const json& fit, const std::string& place) const {
    if (!fit.is_object()) refuse_value(place, fit, "an object");
    require_keys(fit, place,
                 {"floor_seconds", "sequence_seconds", "bandwidth_share", "peak_share", "verification", "rows",
                  "median_error", "p90_error", "measured_with"});
    require_sound_fit(fit, place);
    AttentionTimes times{.floor_seconds = seconds_of(fit, place, "floor_seconds", longest_call_seconds),
                         .sequence_seconds = seconds_of(fit, place, "sequence_seconds", longest_sequence_seconds),
                         .bandwidth_share = number_of(fit, place, "bandwidth_share", core::least_positive, 1),
                         .peak_share = number_of(fit, place, "peak_share", core::least_positive, 1)};
    if (fit.contains("verification"))
      times.verification = verification_of(object_of(fit, place, "verification"), inside(place, "verification"));
    return times;
  }

  std::vector<double> ascending(const json& object, const std::string& place, const char* key, bool may_stay) const {
    const json& values = member(object, place, key);
    const std::string whole = inside(place, key);
    if (!values.is_array() || values.empty()) refuse_value(whole, values, "an array of numbers that is not empty");
    std::vector<double> read;
    for (const json& value : values) {
      const std::string row = fmt::format("{}[{}]", whole, read.size());
      const double number = number_of(value, row, core::least_positive, core::largest_double);
      if (!read.empty() && (number < read.back() || (number == read.back() && !may_stay))) {
        refuse(row, fmt::format("{} after {}", number, read.back()), "numbers that ascend");
      }
      read.push_back(number);
    }
    return read;
  }

  std::vector<CollectiveTimes> collectives_of(const json& engine, const std::string& place, const char* key) const {
    const json& tables = member(engine, place, key);
    const std::string whole = inside(place, key);
    if (!tables.is_array()) refuse_value(whole, tables, "an array of tables");
    std::vector<CollectiveTimes> found;
    std::size_t row = 0;
    for (const json& table : tables) {
      const std::string here = fmt::format("{}[{}]", whole, row++);
      if (!table.is_object()) refuse_value(here, table, "an object");
      require_keys(table, here, {"accelerators", "bytes", "seconds"});
      const double accelerators = number_of(table, here, "accelerators", 2, static_cast<double>(most_accelerators));
      if (accelerators != std::floor(accelerators))
        refuse_value(inside(here, "accelerators"), table["accelerators"], "a whole number");
      CollectiveTimes read;
      read.accelerators = static_cast<std::int64_t>(accelerators);
      if (over(found, read.accelerators) != nullptr)
        refuse_value(inside(here, "accelerators"), table["accelerators"], "a number that no other table has");
      read.bytes = ascending(table, here, "bytes", false);
      read.seconds = ascending(table, here, "seconds", true);
      if (read.bytes.size() != read.seconds.size()) {
        refuse(inside(here, "seconds"), fmt::format("{} numbers", read.seconds.size()),
               fmt::format("as many as bytes, {}", read.bytes.size()));
      }
      for (std::size_t i = 0; i < read.bytes.size(); ++i) {
        seconds_of(table["seconds"][i], fmt::format("{}.seconds[{}]", here, i),
                   longest_call_seconds + read.bytes[i] / fewest_reduced_bytes_per_second);
      }
      found.push_back(std::move(read));
    }
    return found;
  }

  KernelTimes engine_of(const KernelTimes& common, const std::string& name, const json& engine) const {
    const std::string place = "engines." + name;
    if (!engine.is_object()) refuse_value(place, engine, "an object");
    require_keys(engine, place,
                 {"version", "products", "attention", "experts", "all_reduces", "all_to_alls", "serving"});
    KernelTimes times = common;
    times.engine = name;
    times.version = text_of(engine, place, "version");
    for (const auto& [type, fit] : object_of(engine, place, "products").items()) {
      require_type(place + ".products", type);
      times.products.emplace(type, product_of(fit, place + ".products." + type));
    }
    for (const auto& [type, fit] : object_of(engine, place, "attention").items()) {
      require_type(place + ".attention", type);
      times.attention.emplace(type, attention_of(fit, place + ".attention." + type));
    }
    if (engine.contains("experts")) {
      for (const auto& [type, fit] : object_of(engine, place, "experts").items()) {
        require_type(place + ".experts", type);
        times.experts.emplace(type, experts_of(fit, place + ".experts." + type));
      }
    }
    if (times.products.count(of_any) == 0) refuse(place + ".products.bf16", "missing", "there");
    if (times.attention.count(of_any) == 0) refuse(place + ".attention.bf16", "missing", "there");
    times.all_reduces = collectives_of(engine, place, "all_reduces");
    if (engine.contains("all_to_alls")) times.all_to_alls = collectives_of(engine, place, "all_to_alls");
    const json& serving = object_of(engine, place, "serving");
    const std::string inner = place + ".serving";
    require_keys(serving, inner,
                 {"layer_seconds", "iteration_seconds", "sequence_seconds", "deployment_error", "point_error", "note"});
    if (serving.contains("note")) text_of(serving, inner, "note");
    times.layer_seconds = seconds_of(serving, inner, "layer_seconds", longest_call_seconds);
    times.iteration_seconds = seconds_of(serving, inner, "iteration_seconds", longest_iteration_seconds);
    times.sequence_seconds = seconds_of(serving, inner, "sequence_seconds", longest_call_seconds);
    times.deployment_error = number_of(serving, inner, "deployment_error", 0, 3);
    times.point_error = number_of(serving, inner, "point_error", 0, 3);
    return times;
  }

  std::filesystem::path path_;
};

std::string_view device_of(const core::EmbeddedFile& file) {
  constexpr std::string_view ending = ".json";
  const std::string_view name = file.name;
  return name.substr(0, name.size() - ending.size());
}

}  // namespace

double ProductTimes::rounded(double weights, double operations) const {
  const double read = weights / bandwidth_share, computed = operations / peak_share;
  const double most = std::max(read, computed), least = std::min(read, computed);
  if (least == 0) return most;
  return most * std::exp(std::log1p(std::exp(corner * std::log(least / most))) / corner);
}

double VerificationTimes::more_seconds(double positions, double sequences, double query_heads, double group) const {
  if (positions <= 1) return 0;
  const double tiles = std::ceil(positions * group / tile_rows) - std::ceil(group / tile_rows);
  return floor_seconds + position_seconds * sequences * query_heads * (positions - 1) + tile_seconds * tiles;
}

double CollectiveTimes::at(double size) const {
  if (size <= bytes.front()) return seconds.front();
  if (size >= bytes.back()) return seconds.back() * (size / bytes.back());
  const auto above = std::upper_bound(bytes.begin(), bytes.end(), size) - bytes.begin();
  const auto i = static_cast<std::size_t>(above);
  const double share = std::log(size / bytes[i - 1]) / std::log(bytes[i] / bytes[i - 1]);
  return seconds[i - 1] * std::exp(share * std::log(seconds[i] / seconds[i - 1]));
}

const ProductTimes& KernelTimes::products_in(NumberType weights) const {
  const auto found = products.find(name_of(weights));
  return found != products.end() ? found->second : products.find(of_any)->second;
}

const AttentionTimes& KernelTimes::attention_in(NumberType cache) const {
  const auto found = attention.find(name_of(cache));
  return found != attention.end() ? found->second : attention.find(of_any)->second;
}

const ExpertTimes* KernelTimes::experts_in(NumberType weights) const {
  auto found = experts.find(name_of(weights));
  if (found == experts.end()) found = experts.find(of_any);
  return found == experts.end() ? nullptr : &found->second;
}

const CollectiveTimes* KernelTimes::all_reduce_over(std::int64_t accelerators) const {
  return over(all_reduces, accelerators);
}

const CollectiveTimes* KernelTimes::all_to_all_over(std::int64_t accelerators) const {
  const auto distance = [&](const CollectiveTimes& times) {
    return std::pair(times.accelerators > accelerators, std::abs(times.accelerators - accelerators));
  };
  const auto nearest = std::min_element(all_to_alls.begin(), all_to_alls.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return nearest == all_to_alls.end() ? nullptr : &*nearest;
}

std::string KernelTimes::measured_accelerators() const {
  std::vector<std::int64_t> numbers;
  for (const CollectiveTimes& times : all_reduces) numbers.push_back(times.accelerators);
  return numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ", "));
}

std::vector<KernelTimes> read_kernel_times(const std::filesystem::path& path) {
  const auto unreadable = [&](const std::string& why) {
    return FileError(path, FileError::whole_file(), "file", why, "a readable file");
  };
  const traces::KeptStreams streams;
  const std::filesystem::path from = traces::readable_path(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(from, error);
  if (error) throw unreadable("unreadable (" + error.message() + ")");
  if (size > longest_kernel_file) {
    throw FileError(path, FileError::whole_file(), "file size", fmt::format("{} bytes", size),
                    fmt::format("at most {} bytes", longest_kernel_file));
  }
  std::ifstream file(from, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open()) throw unreadable("unreadable (" + std::generic_category().message(errno) + ")");
  return KernelFileReader(path).engines(text);
}

std::vector<KernelTimes> kernel_times_of(std::string_view device) {
  for (const core::EmbeddedFile& file : kernel_preset_files()) {
    if (device_of(file) != device) continue;
    return KernelFileReader(std::filesystem::path("presets/kernels") / file.name).engines(file.content);
  }
  return {};
}

std::vector<std::string> devices_with_kernel_times() {
  std::vector<std::string> names;
  for (const core::EmbeddedFile& file : kernel_preset_files()) names.emplace_back(device_of(file));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace specdec::cost
