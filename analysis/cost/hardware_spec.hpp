#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cost {

/// A figure and the address of the page that prints it.
struct SourcedNumber {
  double value = 0;
  /// "https://..."; empty in a user's own file that gives a bare number.
  std::string source = {};
  /// The conversion of the printed figure, for instance "half of the sparse figure"; may be empty.
  std::string note = {};
  /// The figure as the page prints it, "3.35 TB/s"; may be empty.
  std::string quoted = {};
  /// Another page that prints it, and how; empty where only one is known. Where the two differ by more than 1.5%, the
  /// note says so.
  std::string second_source = {}, second_quoted = {};
};

/// Number types that weights are stored in and products are computed in.
enum class NumberType { fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4 };
/// "bf16", "nvfp4", ...
std::string_view name_of(NumberType type);
/// @return empty for a name that no type has
std::optional<NumberType> number_type_named(std::string_view name);
/// Bits of a stored weight with its share of the scales: nvfp4 8 per 16 values, mxfp4 8 per 32, int4 16 per 128.
///   32, 16, 16, 8, 8, 4.125, 4.5, 4.25
/// Source:   docs/reference/formats.md#weights
double stored_bits(NumberType type);

/// One accelerator, or one host that computes on its processors, as its maker describes it.
struct HardwareSpec {
  std::string name = {};
  std::vector<std::string> aliases = {};
  std::string vendor = {};
  SourcedNumber memory_bytes = {};
  SourcedNumber memory_bandwidth_bytes_per_second = {};
  /// Dense peak, FLOP/s, by "fp64", "fp32", "fp16", "bf16", "fp8", "int8" (operations/s), "fp4"; at least one.
  std::map<std::string, SourcedNumber> peak_flops = {};
  /// To and from its neighbours, each direction, bytes/s of one accelerator.
  std::optional<SourcedNumber> link_bytes_per_second = {};
  /// Design power of one accelerator.
  std::optional<SourcedNumber> watts = {};
  /// Accelerators that the link connects.
  std::optional<SourcedNumber> gpus_per_node = {};
  /// RooflineOptions::point_error where published times show another one than on other devices.
  std::optional<SourcedNumber> point_error = {};
};

/// Peak FLOP/s of products whose weights are stored in `type`: the highest of its own (fp4 for nvfp4 and mxfp4; int4
/// has none, activations stay in 16 bits) and those of bf16, fp16 and fp32, which weights are widened to before they
/// are multiplied where the device has no peak of their own or, as Blackwell Ultra for int8, a lower one. Nothing is
/// widened to fp64, whose peak tells nothing of that of shorter types.
/// @throws std::invalid_argument where the device has none of these peaks
double peak_flops_for(const HardwareSpec& hardware, NumberType type);

/// A user's own file, in the form of the presets (docs/reference/formats.md#hardware); bare numbers need no source.
/// @throws traces::FileError  where a key is missing, unknown, or out of its range
HardwareSpec read_hardware_spec(const std::filesystem::path& path);

/// The devices that come with the program, in order of name.
std::span<const HardwareSpec> hardware_presets();
/// By name or alias, upper and lower case, spaces, dashes and underscores alike; null where none has it.
const HardwareSpec* hardware_preset(std::string_view name);

/// A value between two others, low <= value <= high.
struct UncertainValue {
  double low = 0;
  double value = 0;
  double high = 0;
};

/// The share of a peak that programs reach, or the seconds that a pass costs beside arithmetic, with the pages that
/// measured it.
struct SourcedRange : UncertainValue {
  std::vector<std::string> sources = {};
  std::string note = {};
};

/// Assumptions about a deployment that was not calibrated.
struct EfficiencyDefaults {
  /// Shares of the memory bandwidth, of the dense peak and of the link's bandwidth, (0, 1].
  SourcedRange bandwidth_efficiency, compute_efficiency, link_efficiency;
  /// Shares of the dense peak in these types, of which products reach less.
  SourcedRange fp8_compute_efficiency, fp4_compute_efficiency;
  /// Seconds: of an all-reduce beside its bytes, of launching a pass of a model and each of its layers, of scheduling
  /// an iteration.
  SourcedRange all_reduce_latency_seconds, launch_seconds, layer_seconds, scheduling_seconds;
  /// Seconds of a pass of the draft beside measured kernels; without these it has the launch_seconds of every pass.
  SourcedRange draft_launch_seconds;
};
const EfficiencyDefaults& efficiency_defaults();
/// The share of the peak that products with weights of a type reach on the hardware, by the type it multiplies them in.
/// @throws std::invalid_argument as peak_flops_for
const SourcedRange& compute_efficiency_for(const HardwareSpec& hardware, NumberType type);

}  // namespace specdec::cost
