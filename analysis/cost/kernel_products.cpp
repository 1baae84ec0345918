#include "analysis/cost/kernel_products.hpp"

#include <cmath>

namespace specdec::cost {
namespace {

/// Kernels of a layer's dense products: queries with keys and values, outputs, gate with up, down; their inputs and
/// outputs are once the width each, beside the sides that accelerators divide.
constexpr double products_per_layer = 4;
/// Kernels between them also move what they take and give, gates and rotations once; two norms of a layer read the
/// residual and what is added to it, and write both.
constexpr double moves_beside_products = 1, norm_rows_per_layer = 8;
/// Kernels of its experts, where these were not measured together: gate with up, and down.
constexpr double products_of_experts = 2;

}  // namespace

RooflineCost::KernelProducts::KernelProducts(const PlacedModel& placed, const RooflineOptions& options)
    : model_(placed.model),
      kernels_(*options.kernels),
      hardware_(options.hardware),
      types_(stored_weights(placed)),
      shared_by_(static_cast<double>(placed.tensor_parallel)),
      accelerators_(static_cast<double>(placed.accelerators())),
      parts_of_experts_(static_cast<double>(placed.expert_parallel)),
      width_(static_cast<double>(placed.model.width)),
      one_bandwidth_(options.hardware.memory_bandwidth_bytes_per_second.value),
      dense_(part_of(types_.dense)),
      unquantized_(part_of(types_.unquantized)) {
  for (const LayerGroup& group : model_.layers) {
    add_dense(group);
    if (group.experts > 0) add_experts(group);
  }
  add_head();
  for (const ProductPart& part : {dense_, unquantized_})
    if (part.weights > 0) parts_.push_back(part);
}

RooflineCost::ProductPart RooflineCost::KernelProducts::part_of(NumberType type) const {
  ProductPart part;
  part.times = kernels_.products_in(type);
  return part;
}

void RooflineCost::KernelProducts::add_weights(ProductPart& part, NumberType type, double parameters) const {
  part.weights += parameters * types_.bytes_of(type) / (shared_by_ * one_bandwidth_);
}

double RooflineCost::KernelProducts::operations(NumberType type, double parameters) const {
  return 2 * parameters / (shared_by_ * peak_flops_for(hardware_, type));
}

double RooflineCost::KernelProducts::moved(const ProductPart& part, double values) const {
  return values * activation_bytes / (part.times.bandwidth_share * one_bandwidth_);
}

void RooflineCost::KernelProducts::add_dense(const LayerGroup& group) {
  const auto count = static_cast<double>(group.count);
  const auto kept = static_cast<double>(group.unquantized_parameters);
  const double quantized = static_cast<double>(group.dense_parameters) - kept;
  add_weights(dense_, types_.dense, count * quantized);
  add_weights(unquantized_, types_.unquantized, count * kept);
  dense_.per_position += operations(types_.dense, count * quantized);
  unquantized_.per_position += operations(types_.unquantized, count * kept);
  ProductPart& main = quantized >= kept ? dense_ : unquantized_;
  main.calls += count * products_per_layer * main.times.call_seconds;
  const double dense_sides = static_cast<double>(group.dense_parameters) / width_ / shared_by_;
  const double rows = products_per_layer + norm_rows_per_layer;
  main.moved_per_position += moved(main, count * ((1 + moves_beside_products) * dense_sides + rows * width_));
}

void RooflineCost::KernelProducts::add_experts(const LayerGroup& group) {
  const auto count = static_cast<double>(group.count);
  const double most_routed = std::pow(parts_of_experts_, expert_load_exponent);
  ProductPart expert = part_of(types_.expert);
  const ExpertTimes* const measured = kernels_.experts_in(types_.expert);
  if (measured != nullptr) {
    expert.times = measured->products;
    expert.routing = measured->routing;
  }
  const auto per_expert = static_cast<double>(group.parameters_per_expert);
  const auto per_token = static_cast<double>(group.experts_per_token);
  add_weights(expert, types_.expert,
              count * static_cast<double>(group.experts) * per_expert * shared_by_ / accelerators_);
  expert.per_position =
      operations(types_.expert, count * per_token * per_expert * shared_by_ / accelerators_) * most_routed;
  expert.calls = count * (measured != nullptr ? 1 : products_of_experts) * expert.times.call_seconds;
  const double sides = per_expert / width_ * parts_of_experts_ / accelerators_ + products_of_experts * width_;
  expert.moved_per_position = moved(expert, count * per_token / parts_of_experts_ * sides) * most_routed;
  expert.log_missed = log_share_passed_over(group.experts, group.experts_per_token);
  parts_.push_back(expert);
}

/// With the parameters that belong to no layer.
void RooflineCost::KernelProducts::add_head() {
  const auto extra = static_cast<double>(model_.extra_dense_parameters);
  add_weights(unquantized_, types_.unquantized, extra);
  unquantized_.per_position += operations(types_.unquantized, extra);
  const auto head = static_cast<double>(model_.head_parameters);
  const NumberType head_type = model_.quantized_head ? types_.dense : types_.unquantized;
  ProductPart& heads = model_.quantized_head ? dense_ : unquantized_;
  add_weights(heads, head_type, head);
  heads.per_headed_position += operations(head_type, head);
  heads.moved_per_headed_position += moved(heads, static_cast<double>(model_.vocabulary) / shared_by_ + width_);
  heads.calls += heads.times.call_seconds;
}

}  // namespace specdec::cost
