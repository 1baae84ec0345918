#include "python/arguments.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>
#include <utility>

#include "planner/question_error.hpp"
#include "traces/acceptance_rules.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

[[noreturn]] void refuse_type(const char* name, nb::handle given, const char* expected) {
  const std::string shown = nb::cast<std::string>(nb::repr(given));
  throw nb::type_error(fmt::format("{} is {}, but must be {}", name, shown.substr(0, 60), expected).c_str());
}

template <class Value>
void cast_to(const char* name, nb::handle given, const char* expected, Value& member) {
  if (nb::isinstance<nb::bool_>(given) || !nb::try_cast(given, member)) refuse_type(name, given, expected);
}

std::string option_of(const char* name) {
  std::string option = fmt::format("--{}", name);
  for (char& c : option) {
    if (c == '_') c = '-';
  }
  return option;
}

template <class Value>
void take_word(const char* name, nb::handle given, std::optional<Value> (*named)(std::string_view), const char* words,
               Value& member) {
  std::string word;
  convert(name, given, word);
  const std::optional<Value> found = named(word);
  if (!found) planner::refuse(option_of(name), word, fmt::format("one of {}", words));
  member = *found;
}

}  // namespace

void convert(const char* name, nb::handle given, bool& member) {
  if (!nb::try_cast(given, member)) refuse_type(name, given, "True or False");
}

void convert(const char* name, nb::handle given, double& member) { cast_to(name, given, "a number", member); }

void convert(const char* name, nb::handle given, std::int64_t& member) { cast_to(name, given, "an integer", member); }

void convert(const char* name, nb::handle given, std::string& member) { cast_to(name, given, "a string", member); }

void convert(const char* name, nb::handle given, core::VerificationCost& member) {
  constexpr const char* expected = "a number, or numbers by the tokens scored: {2: 1.02, 5: 1.1}";
  const auto refuse_factors = [&] {
    planner::refuse(option_of(name), nb::cast<std::string>(nb::repr(given)),
                    "a factor above 0, or factors above 0 by rising numbers of tokens");
  };
  double factor = 0;
  if (nb::try_cast(given, factor)) {
    try {
      member = core::VerificationCost::constant(factor);
    } catch (const std::logic_error&) {
      refuse_factors();
    }
    return;
  }
  if (nb::isinstance<nb::str>(given)) refuse_type(name, given, expected);
  std::vector<core::VerificationCost::Point> points;
  const nb::object items = nb::hasattr(given, "items") ? given.attr("items")() : nb::borrow(given);
  if (!nb::isinstance<nb::iterable>(items)) refuse_type(name, given, expected);
  for (const nb::handle item : items) {
    std::pair<std::int64_t, double> point;
    if (!nb::try_cast(item, point)) refuse_type(name, given, expected);
    points.push_back({point.first, point.second});
  }
  try {
    member = core::VerificationCost::table(points);
  } catch (const std::logic_error&) {
    refuse_factors();
  }
}

void convert(const char* name, nb::handle given, traces::AcceptanceRule& member) {
  take_word(name, given, traces::acceptance_rule_named, "rejection, greedy-draft, greedy", member);
}

void convert(const char* name, nb::handle given, cost::DraftKind& member) {
  take_word(name, given, cost::draft_kind_named, "model, mirrored, eagle, mtp, parallel, ngram, suffix", member);
}

void convert(const char* name, nb::handle given, cost::NumberType& member) {
  take_word(name, given, cost::number_type_named, "fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4", member);
}

void convert(const char* name, nb::handle given, planning::Engine& member) {
  take_word(name, given, planning::engine_named, "vllm, sglang, trtllm, llamacpp", member);
}

void convert(const char* name, nb::handle given, cost::UncertainValue& member) {
  double value = 0;
  if (nb::try_cast(given, value)) {
    member = {value, value, value};
    return;
  }
  std::pair<double, double> ends;
  if (!nb::try_cast(given, ends)) refuse_type(name, given, "a number or the two ends of a range");
  const auto [low, high] = ends;
  if (!(low <= high)) planner::refuse(option_of(name), fmt::format("{}:{}", low, high), "a range that rises");
  member = {low, low + (high - low) / 2, high};
}

void convert(const char* name, nb::handle given, sim::LengthLaw& member) {
  std::pair<double, double> law = {0, 0};
  if (!nb::try_cast(given, law.first) && !nb::try_cast(given, law)) {
    refuse_type(name, given, "a mean, or a mean and a coefficient of variation");
  }
  member.mean = law.first;
  member.variation = law.second;
}

void convert(const char* name, nb::handle given, planning::ScheduleStretch& member) {
  std::tuple<std::int64_t, std::int64_t, std::int64_t> stretch;
  if (!nb::try_cast(given, stretch)) refuse_type(name, given, "(first batch, last batch, gamma)");
  member = {std::get<0>(stretch), std::get<1>(stretch), std::get<2>(stretch)};
}

void convert(const char* name, nb::handle given, planner::TreeShape& member) {
  std::pair<std::int64_t, std::int64_t> shape;
  if (!nb::try_cast(given, shape)) refuse_type(name, given, "(children of every node, levels)");
  member = {shape.first, shape.second};
}

void convert(const char* name, nb::handle given, planning::SweepSetting& member) {
  nb::dict keys;
  if (!nb::try_cast(given, keys))
    refuse_type(name, given, "dicts with temperature, top_k, top_p, min_p or temperature_last");
  const Arguments arguments(keys);
  for (const auto& [key, value] : keys) {
    const std::string known = nb::cast<std::string>(nb::str(key));
    if (known != "model" && known != "temperature" && known != "top_k" && known != "top_p" && known != "min_p" &&
        known != "temperature_last") {
      planner::refuse(option_of(name), known, "one of model, temperature, top_k, top_p, min_p, temperature_last");
    }
  }
  const auto model = arguments.get<std::optional<std::string>>("model");
  if (model == "target") {
    member.applies = planning::SweepSetting::Applies::target;
  } else if (model == "draft") {
    member.applies = planning::SweepSetting::Applies::draft;
  } else if (model && model != "both") {
    planner::refuse("--model", *model, "one of both, target, draft");
  }
  SPECDEC_TAKE_MEMBERS(member.standardisation, temperature, top_k, top_p, min_p, temperature_last)
}

void convert(const char* name, nb::handle given, planner::TimedIteration& member) {
  nb::dict keys;
  constexpr const char* expected = "a dict with batch and tpot_ms, or with prompt and ttft_ms";
  if (!nb::try_cast(given, keys)) refuse_type(name, given, expected);
  const Arguments arguments(keys);
  const bool of_prompt = arguments.has("prompt") && arguments.has("ttft_ms");
  if (of_prompt == (arguments.has("batch") && arguments.has("tpot_ms"))) refuse_type(name, given, expected);
  SPECDEC_TAKE_MEMBERS(member, batch, gamma, tokens_per_step, context, name)
  member.prompt_tokens = arguments.get<std::optional<double>>("prompt");
  member.seconds = 1e-3 * arguments.get<double>(of_prompt ? "ttft_ms" : "tpot_ms");
}

}  // namespace specdec::python
