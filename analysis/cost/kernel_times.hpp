#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"

namespace specdec::cost {

/// Products with weights of one type, as far as an engine's kernels reach the device's peaks:
///
///   t = call + ((weights / (b BW))^p + (operations / (e F))^p)^(1/p) + activations / (b BW)
///
/// with b the share of the bandwidth, e that of the dense peak and p the corner: 1 adds the two, infinity takes the
/// larger one. The arguments are seconds at the peaks.
/// Source:   docs/theory.md#measured-kernels
struct ProductTimes {
  double bandwidth_share = 1;  ///< (0, 1]
  double peak_share = 1;       ///< (0, 1]
  double corner = 1;           ///< >= 1
  double call_seconds = 0;     ///< seconds of each product, >= 0

  /// @param weights     bytes of the weights / BW, seconds, >= 0
  /// @param operations  operations / F, seconds, >= 0
  /// @return seconds of the rounded maximum alone, without call and activations; >= the larger of the two quotients
  double rounded(double weights, double operations) const;
};

/// All routed experts of a layer, with weights of one type, as one call of the form of ProductTimes. Routing in service
/// is skewed, so that of E experts n positions that choose k each touch fewer than uniform choices would:
///
///   E (1 - (1 - k/E)^(n^r));   r = 1 for uniform choices; balanced ones touch min(E, n k), a bound
///
/// Source:   docs/theory.md#measured-kernels
struct ExpertTimes {
  ProductTimes products = {};
  double routing = 1;  ///< r, (0, 1]
};

/// Seconds that a call of attention over n > 1 positions of each of B sequences takes beyond one over one position,
/// where a group of g of the H query heads that an accelerator holds shares keys and values:
///
///   floor + position B H (n - 1) + tile (ceil(n g / 64) - ceil(g / 64))
///
/// Kernels that put the heads of a group into one tile read the cache once; others read it once for each query head, at
/// a share of the bandwidth of its own.
/// Source:   docs/theory.md#verification-of-several-positions; docs/validation.md#verification-measured
struct VerificationTimes {
  /// Rows of a tile, pairs of a position and a head of a group.
  static constexpr double tile_rows = 64;

  double floor_seconds = 0;     ///< seconds of a call, >= 0
  double position_seconds = 0;  ///< seconds of a further position of a sequence and a query head, >= 0
  double tile_seconds = 0;      ///< seconds of 64 further rows, >= 0
  /// (0, 1], of a cache that is read once for each query head; empty if it is read once.
  std::optional<double> each_head_bandwidth_share = {};

  /// @param positions  n of each sequence, >= 1; 1 takes nothing more
  /// @param sequences  B, > 0   @param query_heads  H, > 0   @param group  g, >= 1
  /// @return seconds more of one call, the cache's reads apart, >= 0
  double more_seconds(double positions, double sequences, double query_heads, double group) const;
};

/// Attention with a cache of one type. One call over a batch takes
///
///   floor + sequence B h + max(cache / (b BW), operations / (e F))
///
/// with h the key/value heads that an accelerator holds.
struct AttentionTimes {
  double floor_seconds = 0;     ///< seconds of a call, >= 0
  double sequence_seconds = 0;  ///< seconds of a sequence and a key/value head, >= 0
  double bandwidth_share = 1;   ///< (0, 1]
  double peak_share = 1;        ///< (0, 1], of long prompts
  /// Empty if several positions of a sequence were not measured: they are priced as one, operations apart.
  std::optional<VerificationTimes> verification = {};
};

/// A collective over a number of accelerators: seconds by bytes, both ascending.
struct CollectiveTimes {
  std::int64_t accelerators = 2;
  std::vector<double> bytes = {}, seconds = {};

  /// Straight lines between logarithms; below the first size its seconds, beyond the last one in proportion.
  /// @param size  bytes that each accelerator contributes, > 0
  double at(double size) const;
};

/// Kernels of one engine on one device, and what serving adds to them.
struct KernelTimes {
  std::string device = {}, engine = {}, version = {}, source = {}, licence = {}, attribution = {};
  /// By name_of() the type of the weights, and of the cache: bf16 at least.
  std::map<std::string, ProductTimes, std::less<>> products = {};
  std::map<std::string, AttentionTimes, std::less<>> attention = {};
  /// By name_of() the type of the experts' weights; may be empty.
  std::map<std::string, ExpertTimes, std::less<>> experts = {};
  /// One for each number of accelerators that was measured. All-to-alls, in which each accelerator sends its bytes to
  /// all in equal parts, may be empty.
  std::vector<CollectiveTimes> all_reduces = {}, all_to_alls = {};
  /// Seconds that an engine takes beside these kernels: of each layer, iteration and sequence of an iteration, >= 0.
  double layer_seconds = 0, iteration_seconds = 0, sequence_seconds = 0;
  /// Iterations with prompts and over 512 positions run without captured graphs: each layer takes at least so many
  /// seconds, >= 0. Experts of a prompt's positions take so many times what was measured of them apart, >= 1.
  double prompt_layer_seconds = 0, prompt_experts = 1;
  /// Standard deviations of ln(measured / priced): of a deployment's mean, of a point around it, and of what prompts
  /// add to an iteration; >= 0.
  double deployment_error = 0, point_error = 0, prompt_error = 0;

  /// Those of the type, else those of bf16.
  const ProductTimes& products_in(NumberType weights) const;
  const AttentionTimes& attention_in(NumberType cache) const;
  /// Those of the type, else those of bf16; null where no experts were measured.
  const ExpertTimes* experts_in(NumberType weights) const;
  /// Null where none was measured over so many.
  const CollectiveTimes* all_reduce_over(std::int64_t accelerators) const;
  /// Those over the most accelerators up to so many, else over the fewest; null where none was measured.
  const CollectiveTimes* all_to_all_over(std::int64_t accelerators) const;
  /// "2, 4, 8"; "none".
  std::string measured_accelerators() const;
};

/// The engines in a file of the form of the presets, in order of name (docs/theory.md#measured-kernels).
/// @throws traces::FileError  where a key is missing, unknown or out of its range, or times do not ascend
std::vector<KernelTimes> read_kernel_times(const std::filesystem::path& path);

/// Those that come with the program for a device, by its preset's name; empty where it has none. Only its file is
/// parsed.
std::vector<KernelTimes> kernel_times_of(std::string_view device);

/// The devices that have some, in order of name; parses nothing.
std::vector<std::string> devices_with_kernel_times();

}  // namespace specdec::cost
