#include "analysis/cost/kernel_times.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/preset_files.hpp"
#include "traces/formats/config_fields.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::cost {
namespace {

using traces::ConfigFields;
using traces::FieldRange;

constexpr FieldRange seconds_up_to(double most) { return {0, most, "seconds"}; }
/// Longer ones are no seconds: of a call or a layer, of a sequence in a call of attention, and of an iteration.
constexpr double longest_call_seconds = 1e-3;
constexpr FieldRange of_call = seconds_up_to(longest_call_seconds), of_sequence = seconds_up_to(1e-5);
constexpr FieldRange of_iteration = seconds_up_to(0.1), any_share = {.most = 1};
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

/// Checks the keys of a fit, and the record of it, which no price needs, but whose numbers must be sound.
void require_sound_fit(const ConfigFields& fit, std::vector<std::string_view> known) {
  known.insert(known.end(), {"rows", "median_error", "p90_error", "measured_with"});
  fit.require_keys(known);
  if (fit.has("rows")) fit.number("rows", {1, 1e9});
  for (const char* key : {"median_error", "p90_error"})
    if (fit.has(key)) fit.number(key, {0, 1e3});
  fit.word("measured_with", "");
}

ProductTimes products_of(const ConfigFields& fit) {
  return {.bandwidth_share = fit.number("bandwidth_share", any_share),
          .peak_share = fit.number("peak_share", any_share),
          .corner = fit.number("corner", {1, 100}),
          .call_seconds = fit.number("call_seconds", of_call)};
}

VerificationTimes verification_of(const ConfigFields& fit) {
  require_sound_fit(fit, {"floor_seconds", "position_seconds", "tile_seconds", "each_head_bandwidth_share"});
  VerificationTimes times{.floor_seconds = fit.number("floor_seconds", of_call),
                          .position_seconds = fit.number("position_seconds", of_sequence),
                          .tile_seconds = fit.number("tile_seconds", of_call)};
  if (fit.has("each_head_bandwidth_share"))
    times.each_head_bandwidth_share = fit.number("each_head_bandwidth_share", any_share);
  return times;
}

AttentionTimes attention_of(const ConfigFields& fit) {
  require_sound_fit(fit, {"floor_seconds", "sequence_seconds", "bandwidth_share", "peak_share", "verification"});
  AttentionTimes times{.floor_seconds = fit.number("floor_seconds", of_call),
                       .sequence_seconds = fit.number("sequence_seconds", of_sequence),
                       .bandwidth_share = fit.number("bandwidth_share", any_share),
                       .peak_share = fit.number("peak_share", any_share)};
  if (fit.has("verification")) times.verification = verification_of(fit.object("verification"));
  return times;
}

/// Fits by the type of their numbers.
template <class Read>
auto by_type(const ConfigFields& engine, const char* key, const Read& read) {
  const ConfigFields fits = engine.object(key);
  std::map<std::string, decltype(read(fits)), std::less<>> times;
  for (const std::string& type : fits.keys()) {
    if (!number_type_named(type))
      fits.refuse("key", traces::printable(type), "a type of numbers: bf16, fp8, nvfp4, ...");
    times.emplace(type, read(fits.object(type)));
  }
  return times;
}

void require_ascending(const ConfigFields& table, const char* key, std::span<const double> values, bool may_stay) {
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] < values[i - 1] || (values[i] == values[i - 1] && !may_stay))
      table.refuse(fmt::format("{}[{}]", key, i), fmt::format("{} after {}", values[i], values[i - 1]),
                   "numbers that ascend");
}

std::vector<CollectiveTimes> collectives_of(const ConfigFields& engine, const char* key) {
  std::vector<CollectiveTimes> found;
  for (const ConfigFields& table : engine.objects(key)) {
    table.require_keys({"accelerators", "bytes", "seconds"});
    CollectiveTimes read;
    read.accelerators = table.size("accelerators");
    if (read.accelerators == 1 || over(found, read.accelerators) != nullptr)
      table.refuse("accelerators", fmt::format("{}", read.accelerators), "above 1, a number that no other table has");
    read.bytes = table.numbers("bytes", {});
    read.seconds = table.numbers("seconds", {});
    require_ascending(table, "bytes", read.bytes, false);
    require_ascending(table, "seconds", read.seconds, true);
    if (read.bytes.size() != read.seconds.size())
      table.refuse("seconds", fmt::format("{} numbers", read.seconds.size()),
                   fmt::format("as many as bytes, {}", read.bytes.size()));
    for (std::size_t i = 0; i < read.bytes.size(); ++i) {
      const double longest = longest_call_seconds + read.bytes[i] / fewest_reduced_bytes_per_second;
      if (read.seconds[i] > longest)
        table.refuse(fmt::format("seconds[{}]", i), fmt::format("{}", read.seconds[i]),
                     fmt::format("seconds in [0, {:.4g}]", longest));
    }
    found.push_back(std::move(read));
  }
  return found;
}

KernelTimes engine_of(const KernelTimes& common, const std::string& name, const ConfigFields& engine) {
  engine.require_keys({"version", "products", "attention", "experts", "all_reduces", "all_to_alls", "serving"});
  KernelTimes times = common;
  times.engine = name;
  times.version = engine.word("version");
  const std::vector<std::string_view> of_products = {"bandwidth_share", "peak_share", "corner", "call_seconds"};
  times.products = by_type(engine, "products", [&](const ConfigFields& fit) {
    require_sound_fit(fit, of_products);
    return products_of(fit);
  });
  times.attention = by_type(engine, "attention", attention_of);
  if (engine.has("experts")) {
    times.experts = by_type(engine, "experts", [&](const ConfigFields& fit) {
      require_sound_fit(fit, {"bandwidth_share", "peak_share", "corner", "call_seconds", "routing"});
      return ExpertTimes{.products = products_of(fit), .routing = fit.number("routing", any_share)};
    });
  }
  if (times.products.count(of_any) == 0) engine.refuse("products.bf16", "missing", "there");
  if (times.attention.count(of_any) == 0) engine.refuse("attention.bf16", "missing", "there");
  times.all_reduces = collectives_of(engine, "all_reduces");
  if (engine.has("all_to_alls")) times.all_to_alls = collectives_of(engine, "all_to_alls");
  const ConfigFields serving = engine.object("serving");
  serving.require_keys({"layer_seconds", "iteration_seconds", "sequence_seconds", "deployment_error", "point_error",
                        "prompt_error", "note", "prompt_layer_seconds", "prompt_experts"});
  serving.word("note", "");
  times.layer_seconds = serving.number("layer_seconds", of_call);
  times.iteration_seconds = serving.number("iteration_seconds", of_iteration);
  times.sequence_seconds = serving.number("sequence_seconds", of_call);
  if (serving.has("prompt_layer_seconds"))
    times.prompt_layer_seconds = serving.number("prompt_layer_seconds", of_iteration);
  if (serving.has("prompt_experts")) times.prompt_experts = serving.number("prompt_experts", {1, 10});
  times.deployment_error = serving.number("deployment_error", {0, 3});
  times.point_error = serving.number("point_error", {0, 3});
  if (serving.has("prompt_error")) times.prompt_error = serving.number("prompt_error", {0, 3});
  return times;
}

std::vector<KernelTimes> engines_of(std::string_view text, const std::filesystem::path& path) {
  const nlohmann::json document = traces::parse_config(text, path);
  const ConfigFields fields(path, document);
  fields.require_keys({"device", "source", "licence", "attribution", "engines"});
  KernelTimes common;
  common.device = fields.word("device");
  common.source = fields.word("source");
  common.licence = fields.word("licence", "");
  common.attribution = fields.word("attribution", "");
  const ConfigFields engines = fields.object("engines");
  if (engines.keys().empty()) fields.refuse("engines", "{}", "an object that is not empty");
  std::vector<KernelTimes> read;
  for (const std::string& name : engines.keys()) read.push_back(engine_of(common, name, engines.object(name)));
  return read;
}

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
  return engines_of(traces::small_file(path), path);
}

std::vector<KernelTimes> kernel_times_of(std::string_view device) {
  for (const core::EmbeddedFile& file : kernel_preset_files()) {
    if (device_of(file) != device) continue;
    return engines_of(file.content, std::filesystem::path("presets/kernels") / file.name);
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
