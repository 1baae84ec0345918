#include "traces/formats/response_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view settings_key = "generation_settings";
constexpr std::string_view applicable =
    "the log-probabilities are raw, and only temperature, top-k, top-p and min-p can be applied to them; ask for "
    "post_sampling_probs";

/// A setting of another sampler, and the values at which it has no effect.
struct OtherSetting {
  std::string_view sampler, key;
  double lowest, highest;
  std::string_view off;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<OtherSetting, 10> other_settings = {{
    {"penalties", "repeat_penalty", 1, 1, "1"},
    {"penalties", "presence_penalty", 0, 0, "0"},
    {"penalties", "frequency_penalty", 0, 0, "0"},
    {"dry", "dry_multiplier", 0, 0, "0"},
    {"top_n_sigma", "top_n_sigma", -infinity, 0, "-1"},
    {"typ_p", "typical_p", 1, infinity, "1"},
    {"xtc", "xtc_probability", -infinity, 0, "0"},
    {"tfs_z", "tfs_z", 1, infinity, "1"},
    {"temperature", "dynatemp_range", -infinity, 0, "0"},
    {"adaptive_p", "adaptive_target", -infinity, -1e-9, "-1"},
}};

constexpr std::array<std::string_view, 12> known_samplers = {"penalties", "dry",    "top_n_sigma", "top_k",
                                                             "typ_p",     "top_p",  "min_p",       "xtc",
                                                             "tfs_z",     "infill", "temperature", "adaptive_p"};

class GenerationSettings {
 public:
  GenerationSettings(const ResponseReader& reader, dom::object settings) : reader_(reader), settings_(settings) {
    const auto list = find_member(settings_, "samplers");
    if (!list) {
      order_ = {"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"};
      return;
    }
    const std::string name = field("samplers");
    JsonField entry{name};
    for (const dom::element sampler : read_array(reader_.file(), *list, {name})) {
      ++entry.index;
      const std::string_view text = read_string(reader_.file(), sampler, entry);
      order_.push_back(text == "typical_p" ? "typ_p" : text);
    }
  }

  /// Values beyond a sampler's range are read as llama.cpp acts on them: a temperature below 0 as 0, a min_p above 1
  /// as 1; a top_p of 0 keeps one token.

  SampledWith read() const {
    SampledWith sampled;
    sampled.temperature = acts("temperature") ? std::max(0.0, number("temperature").value_or(1)) : 1.0;
    sampled.top_k = acts("top_k") ? top_k() : 0;
    sampled.top_p = acts("top_p") ? std::clamp(number("top_p").value_or(1), 0.0, 1.0) : 1.0;
    if (*sampled.top_p == 0) {
      sampled.top_k = 1;
      sampled.top_p = 1;
    }
    sampled.min_p = acts("min_p") ? std::clamp(number("min_p").value_or(0), 0.0, 1.0) : 0.0;
    sampled.bias = bias();
    sampled.bans_ends = !sampled.bias && ignores_ends() && !biases().empty();
    const std::vector<std::string_view> cuts = acting_cuts(sampled);
    const std::ptrdiff_t heat = place_of("temperature");
    const bool heats = *sampled.temperature != 1 && *sampled.temperature != 0 && !cuts.empty();
    sampled.temperature_last = heats && place_of(cuts.back()) < heat;
    return sampled;
  }

  /// Rejects settings that Standardisation cannot apply to raw numbers.
  void require_applicable(const SampledWith& sampled) const {
    if (number("mirostat").value_or(0) != 0) refuse("mirostat", "0");
    if (acts("infill")) reader_.file().refuse(field("samplers"), "a list with infill", std::string(applicable));
    require_known_samplers();
    const bool penalises = number("repeat_last_n").value_or(1) != 0;
    for (const OtherSetting& setting : other_settings) {
      if (!acts(setting.sampler) || (setting.sampler == "penalties" && !penalises)) continue;
      const std::optional<double> value = number(setting.key);
      if (value && !(setting.lowest <= *value && *value <= setting.highest)) refuse(setting.key, setting.off);
    }
    if (const auto grammar = find_member(settings_, "grammar"); grammar && grammar->is_string()) {
      if (!read_string(reader_.file(), *grammar, {field("grammar")}).empty()) refuse("grammar", "empty");
    }
    require_order(sampled);
  }

 private:
  std::string field(std::string_view key) const { return reader_.name(fmt::format("{}.{}", settings_key, key)); }

  [[noreturn]] void refuse(std::string_view key, std::string_view off) const {
    const auto found = find_member(settings_, key);
    reader_.file().refuse(field(key), *found, fmt::format("{}: {}", off, applicable));
  }

  std::ptrdiff_t place_of(std::string_view sampler) const {
    return std::find(order_.begin(), order_.end(), sampler) - order_.begin();
  }
  bool acts(std::string_view sampler) const { return place_of(sampler) < std::ssize(order_); }

  /// As in the server's options: it stores single precision and prints double.
  std::optional<double> number(std::string_view key) const {
    const auto found = find_member(settings_, key);
    if (!found) return std::nullopt;
    const std::optional<double> value = number_of(*found);
    if (!value || std::isnan(*value)) reader_.file().refuse(field(key), *found, "a number");
    if (!std::isfinite(*value)) return value;
    return std::stod(fmt::format("{}", static_cast<float>(*value)));
  }

  std::int64_t top_k() const {
    const double k = number("top_k").value_or(0);
    if (k != std::floor(k)) reader_.file().refuse(field("top_k"), *find_member(settings_, "top_k"), "an integer");
    return static_cast<std::int64_t>(std::clamp(k, 0.0, 2e9));
  }

  /// [{"token": 2, "bias": 1.5}], where a bias of -infinity, which bans the token, is null.
  std::vector<dom::element> biases() const {
    const auto list = find_member(settings_, "logit_bias");
    if (!list || list->is_null()) return {};
    const dom::array entries = read_array(reader_.file(), *list, {field("logit_bias")});
    return {entries.begin(), entries.end()};
  }

  bool ignores_ends() const {
    const auto found = find_member(settings_, "ignore_eos");
    bool ignores = false;
    return found && found->get(ignores) == simdjson::SUCCESS && ignores;
  }

  /// A ban of the tokens that end a text is let pass: ignore_eos makes it, and they rarely have much of the mass.
  std::optional<SampledWith::Bias> bias() const {
    const std::string name = field("logit_bias");
    JsonField entry{name};
    for (const dom::element bias : biases()) {
      ++entry.index;
      const dom::element value = member_of(reader_.file(), read_object(reader_.file(), bias, entry), "bias", entry);
      if (number_of(value) == 0 || (value.is_null() && ignores_ends())) continue;
      return SampledWith::Bias{entry.text() + ".bias", excerpt(value)};
    }
    return std::nullopt;
  }

  void require_known_samplers() const {
    const std::string name = field("samplers");
    for (auto sampler = order_.begin(); sampler != order_.end(); ++sampler) {
      if (std::find(known_samplers.begin(), known_samplers.end(), *sampler) == known_samplers.end()) {
        reader_.file().refuse(name, fmt::format("a list with {}", *sampler),
                              fmt::format("of {}: {}", fmt::join(known_samplers, ", "), applicable));
      }
      if (std::find(order_.begin(), sampler, *sampler) == sampler) continue;
      reader_.file().refuse(name, fmt::format("a list with {} twice", *sampler),
                            fmt::format("a list with each once: {}", applicable));
    }
  }

  std::vector<std::string_view> acting_cuts(const SampledWith& sampled) const {
    std::vector<std::string_view> cuts;
    for (const std::string_view sampler : order_) {
      const bool cuts_off = (sampler == "top_k" && *sampled.top_k > 0) || (sampler == "top_p" && *sampled.top_p < 1) ||
                            (sampler == "min_p" && *sampled.min_p > 0);
      if (cuts_off) cuts.push_back(sampler);
    }
    return cuts;
  }

  void require_order(const SampledWith& sampled) const {
    if (*sampled.temperature == 0) return;
    constexpr std::array<std::string_view, 3> applied = {"top_k", "top_p", "min_p"};
    const std::vector<std::string_view> cuts = acting_cuts(sampled);
    if (cuts.empty()) return;
    const bool sorted = std::is_sorted(cuts.begin(), cuts.end(), [&](std::string_view a, std::string_view b) {
      return std::find(applied.begin(), applied.end(), a) < std::find(applied.begin(), applied.end(), b);
    });
    const std::ptrdiff_t heat = place_of("temperature");
    const bool between = *sampled.temperature != 1 && place_of(cuts.front()) < heat && heat < place_of(cuts.back());
    if (sorted && !between && number("min_keep").value_or(0) <= 1) return;
    if (sorted && !between) refuse("min_keep", "0 or 1");
    reader_.file().refuse(
        field("samplers"), fmt::format("{}", fmt::join(order_, ", ")),
        fmt::format("top_k, top_p and min_p in this order, and temperature before or after them: {}", applicable));
  }

  const ResponseReader& reader_;
  dom::object settings_;
  std::vector<std::string_view> order_;
};

}  // namespace

SampledWith settings_not_stated(bool raw) {
  SampledWith sampled;
  sampled.cuts_unknown = raw;
  return sampled;
}

SampledWith read_generation_settings(dom::object response, const ResponseReader& reader, bool raw) {
  const auto found = find_member(response, settings_key);
  if (!found) return settings_not_stated(raw);
  const std::string name = reader.name(settings_key);
  const GenerationSettings settings(reader, read_object(reader.file(), *found, {name}));
  const SampledWith sampled = settings.read();
  if (raw) settings.require_applicable(sampled);
  return sampled;
}

}  // namespace specdec::traces
