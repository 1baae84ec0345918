#include "python/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/cost.hpp"
#include "planner/number_text.hpp"
#include "planner/sources/recording_files.hpp"
#include "python/arguments.hpp"
#include "python/interruption.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

using planner::Acceptance;
using planner::Cost;
using Files = std::vector<std::string>;

Acceptance::Rule rule_of(const Arguments& arguments) {
  return arguments.get<std::optional<traces::AcceptanceRule>>("rule");
}

Acceptance of_lengths(const std::vector<std::tuple<std::int64_t, double, double>>& typed, const nb::dict& given) {
  std::vector<estimate::TypedLength> lengths;
  for (const auto& [gamma, length, half_unit] : typed) lengths.push_back({gamma, length, half_unit});
  const Arguments arguments(given);
  return Acceptance::of_lengths(lengths, arguments.get<std::optional<double>>("rounds"), rule_of(arguments));
}

Acceptance of_positions(const std::vector<std::pair<double, double>>& typed, const nb::dict& given) {
  std::vector<estimate::TypedRate> rates;
  for (const auto& [rate, half_unit] : typed) rates.push_back({rate, half_unit});
  const Arguments arguments(given);
  const bool conditional = arguments.get<bool>("conditional");
  return Acceptance::of_positions(rates, conditional, arguments.get<std::optional<double>>("rounds"),
                                  rule_of(arguments));
}

std::optional<planner::TrafficMix> mix_of(const Arguments& arguments) {
  const auto mix = arguments.get<std::optional<std::string>>("mix");
  if (!mix) return std::nullopt;
  return planner::traffic_mix(arguments.get<std::optional<std::string>>("by"), *mix,
                              arguments.get<std::string>("mix_by") == "requests");
}

Acceptance from_counters(const Files& files, const nb::dict& given) {
  const Arguments arguments(given);
  planner::CountersOptions options;
  arguments.take("model", options.model);
  arguments.take("at", options.at);
  arguments.take("rule", options.acceptance);
  arguments.take("by_request", options.by_request);
  options.mix = mix_of(arguments);
  const nb::gil_scoped_release released;
  return Acceptance::from_counters(files, options);
}

Acceptance from_recording(const Files& files, const nb::dict& given) {
  planner::RecordingOptions options = recording_options(given);
  const Arguments arguments(given);
  arguments.take("draft_array", options.draft_array);
  options.mix = mix_of(arguments);
  const auto by = arguments.get<std::optional<std::string>>("by");
  if (by && !options.mix) options.context_bounds = planner::context_bounds(*by);
  const nb::gil_scoped_release released;
  return Acceptance::from_recording(files, options);
}

planner::DraftWords draft_words(const Arguments& arguments) {
  planner::DraftWords words;
  arguments.take("draft_model", words.model);
  arguments.take("draft_kind", words.kind);
  arguments.take("draft_tensor_parallel_size", words.tensor_parallel);
  arguments.take("hit_rate", words.hit_rate);
  arguments.take("mean_draft_length", words.mean_draft_length);
  arguments.take("draft_name", words.name);
  return words;
}

Cost of_constants(const nb::dict& given) {
  const Arguments arguments(given);
  planner::StepTimes times;
  arguments.take("c", times.c);
  arguments.take("verify_factor", times.verify_factor);
  arguments.take("overhead", times.overhead);
  return Cost::of_constants(times, draft_words(arguments), arguments.get<std::string>("model"));
}

Cost of_hardware(const std::string& hardware, const std::string& model, const nb::dict& given) {
  const Arguments arguments(given);
  planner::HardwareOptions options;
  options.draft = draft_words(arguments);
  options.drafts = !arguments.has("drafts") || arguments.get<bool>("drafts");
  arguments.take("tensor_parallel_size", options.tensor_parallel);
  arguments.take("data_parallel_size", options.data_parallel);
  arguments.take("expert_parallel_size", options.expert_parallel);
  SPECDEC_TAKE_MEMBERS(options, weight_dtype, draft_weight_dtype, kv_cache_dtype, kernel_times, bandwidth_efficiency,
                       compute_efficiency, link_efficiency)
  arguments.take("all_reduce_latency_us", options.all_reduce_latency_seconds);
  if (options.all_reduce_latency_seconds) {
    for (double* const value : {&options.all_reduce_latency_seconds->low, &options.all_reduce_latency_seconds->value,
                                &options.all_reduce_latency_seconds->high}) {
      *value *= 1e-6;
    }
  }
  SPECDEC_TAKE_MEMBERS(options, launch_seconds, draft_launch_seconds, layer_seconds, scheduling_seconds, calibrate)
  const nb::gil_scoped_release released;
  return Cost::of_hardware(hardware, model, options);
}

Cost of_timings(const Files& files, const nb::dict& given) {
  const Arguments arguments(given);
  planner::TimingOptions options;
  options.draft = draft_words(arguments);
  SPECDEC_TAKE_MEMBERS(options, model, c, draft_cost, overhead_seconds)
  const nb::gil_scoped_release released;
  return Cost::of_timings(planner::Timings(files), options);
}

Cost of_logs(const Files& files, const nb::dict& given) {
  const Arguments arguments(given);
  planner::TimingOptions options;
  options.draft = draft_words(arguments);
  arguments.take("model", options.model);
  arguments.take("at", options.at);
  const nb::gil_scoped_release released;
  return Cost::of_logs(files, options);
}

void bind_acceptance(nb::module_& module) {
  nb::class_<Acceptance>(module, "Acceptance")
      .def_ro("text", &Acceptance::text)
      .def_ro("alpha", &Acceptance::alpha)
      .def_prop_ro("alpha_ci95",
                   [](const Acceptance& acceptance) {
                     const auto& ci95 = acceptance.alpha_ci95;
                     return ci95 ? std::optional(std::pair(ci95->lo, ci95->hi)) : std::nullopt;
                   })
      .def_prop_ro("rule",
                   [](const Acceptance& acceptance) {
                     const auto& rule = acceptance.rule;
                     return rule ? std::optional(std::string(traces::name_of(*rule))) : std::nullopt;
                   })
      .def_ro("clusters", &Acceptance::clusters)
      .def_ro("method", &Acceptance::method)
      .def_ro("model", &Acceptance::model)
      .def_ro("engine", &Acceptance::engine)
      .def_ro("files", &Acceptance::files);
  module.def("acceptance_of_interval", [](double low, double high, const nb::dict& given) {
    return Acceptance::of_interval(low, high, rule_of(Arguments(given)));
  });
  module.def("acceptance_of_rejection", [](double low, double high, const nb::dict& given) {
    return Acceptance::of_rejection(low, high, rule_of(Arguments(given)));
  });
  module.def("acceptance_of_lengths", of_lengths);
  module.def("acceptance_of_positions", of_positions);
  module.def("acceptance_published", [](const std::string& name, const nb::dict& given) {
    return Acceptance::published(name, rule_of(Arguments(given)));
  });
  module.def("acceptance_prior_for", [](const Cost& cost) { return Acceptance::prior_for(cost); });
  module.def("acceptance_from_counters", from_counters);
  module.def("acceptance_from_recording", from_recording);
  module.def("half_unit_of", planner::half_unit_of);
  module.def("require_recording", [](const Files& files, const nb::dict& given) {
    planner::RecordingFiles recording{files};
    Arguments(given).take("draft_array", recording.how.draft_array);
    const nb::gil_scoped_release released;
    planner::open_recording(recording);
  });
}

}  // namespace

planner::RecordingOptions recording_options(const nb::dict& given) {
  const Arguments arguments(given);
  planner::RecordingOptions options;
  arguments.take("rule", options.acceptance);
  arguments.take("max_gamma", options.max_gamma);
  arguments.take("by_request", options.by_request);
  arguments.take("engine", options.engine);
  options.progress = [](double) { end_if_interrupted(); };
  return options;
}

void bind_nouns(nb::module_& module) {
  bind_acceptance(module);
  nb::class_<Cost>(module, "Cost")
      .def_ro("files", &Cost::files)
      .def_prop_ro("in_seconds", [](const Cost& cost) { return cost.rounds->in_seconds(); })
      .def_prop_ro("kind", [](const Cost& cost) { return std::string(cost::name_of(cost.kind)); });
  module.def("cost_of_constants", of_constants);
  module.def("cost_of_hardware", of_hardware);
  module.def("cost_of_timings", of_timings);
  module.def("cost_of_logs", of_logs);
}

}  // namespace specdec::python
