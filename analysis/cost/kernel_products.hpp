#pragma once

#include <vector>

#include "analysis/cost/kernel_times.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "analysis/cost/stored_weights.hpp"

namespace specdec::cost {

// Internal header of the library; it is not installed.

/// Bytes of a value that travels between accelerators or that attention multiplies.
constexpr double activation_bytes = 2;

/// The products with weights of a placed model, by the type of these and by the experts of each kind.
class RooflineCost::KernelProducts {
 public:
  /// Both must outlive the object. @param options  with kernels
  KernelProducts(const PlacedModel& placed, const RooflineOptions& options);

  /// Those of experts first; none without weights but of these.
  const std::vector<ProductPart>& parts() const { return parts_; }

 private:
  ProductPart part_of(NumberType type) const;
  void add_weights(ProductPart& part, NumberType type, double parameters) const;
  double operations(NumberType type, double parameters) const;
  double moved(const ProductPart& part, double values) const;
  void add_dense(const LayerGroup& group);
  void add_experts(const LayerGroup& group);
  void add_head();

  const ModelSpec& model_;
  const KernelTimes& kernels_;
  const HardwareSpec& hardware_;
  const StoredWeights types_;
  const double shared_by_, accelerators_, parts_of_experts_;
  const double width_, one_bandwidth_;
  ProductPart dense_, unquantized_;
  std::vector<ProductPart> parts_;
};

}  // namespace specdec::cost
