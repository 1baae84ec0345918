#include "analysis/core/staged_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "traces/formats/half_float.hpp"

namespace specdec::core {
namespace {

using row_kernels::block_tokens;
using traces::ElementType;
using traces::Row;
using traces::RowSpace;

/// All stored values; exact.
void read_stored(const Row& row, std::span<double> out) {
  const auto read = [&](auto bits, auto value_of) {
    const std::byte* at = row.data;
    for (double& value : out) {
      std::memcpy(&bits, at, sizeof bits);
      value = double{value_of(bits)};
      at += sizeof bits;
    }
  };
  if (row.type == ElementType::f32) return read(float{}, [](float value) { return value; });
  if (row.type == ElementType::f16) return read(std::uint16_t{}, traces::float_from_f16);
  read(std::uint16_t{}, traces::float_from_bf16);
}

/// In eight lanes, which processors compare in parallel; NaN is passed over.
double largest_of(std::span<const double> numbers) {
  std::array<double, 8> lanes;
  lanes.fill(-infinity);
  std::size_t i = 0;
  for (; i + lanes.size() <= numbers.size(); i += lanes.size())
    for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] = lanes[l] < numbers[i + l] ? numbers[i + l] : lanes[l];
  for (; i < numbers.size(); ++i) lanes[0] = std::max(lanes[0], numbers[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

/// The first entry that is invalid in any distribution.
std::optional<RowFault> faulty_entry(const Row& row, RowRole role) {
  for (std::int64_t i = 0; i < row.vocab; ++i) {
    const double value = stored_value(row, i);
    if (std::isnan(value)) return RowFault{RowFault::Kind::not_a_number, role, i, value};
    if (value == infinity) return RowFault{RowFault::Kind::infinite, role, i, value};
    if (row.space != RowSpace::probabilities) continue;
    if (value == -infinity) return RowFault{RowFault::Kind::infinite, role, i, value};
    if (value < 0) return RowFault{RowFault::Kind::negative, role, i, value};
  }
  return std::nullopt;
}

std::optional<RowFault> faulty_sum(const Row& row, RowRole role, double sum) {
  if (row.space == RowSpace::logits || std::abs(sum - 1) <= sum_tolerance(row)) return std::nullopt;
  return RowFault{sum == 0 ? RowFault::Kind::no_mass : RowFault::Kind::sum, role, -1, sum, sum_tolerance(row)};
}

/// The lowest token in [begin, end) with that stored value, which must exist.
std::int64_t first_with(const Row& row, double value, std::int64_t begin, std::int64_t end) {
  while (begin + 1 < end && stored_value(row, begin) != value) ++begin;
  return begin;
}

}  // namespace

void require_readable(std::string_view function, const Row& row) {
  if (row.type != ElementType::f32 && row.type != ElementType::f16 && row.type != ElementType::bf16) {
    throw std::invalid_argument(
        fmt::format("{}: a row has the type {}, but must have F32, F16 or BF16", function, traces::name_of(row.type)));
  }
  if (row.vocab < 1) throw std::invalid_argument(fmt::format("{}: a row has no tokens", function));
}

double stored_value(const Row& row, std::int64_t token) {
  const std::byte* at = row.data + token * traces::size_of(row.type);
  if (row.type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return double{value};
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return double{row.type == ElementType::f16 ? traces::float_from_f16(bits) : traces::float_from_bf16(bits)};
}

bool is_floor(double logarithm) { return logarithm <= double{row_kernels::floor_logarithm}; }

std::optional<RowFault> fault_in_probabilities(const Row& row, RowRole role) {
  if (const auto fault = faulty_entry(row, role)) return fault;
  const auto value = [&](std::size_t i) { return stored_value(row, static_cast<std::int64_t>(i)); };
  return faulty_sum(row, role, sum_of_terms(static_cast<std::size_t>(row.vocab), value));
}

std::optional<RowFault> read_row(const Row& row, RowRole role, std::span<double> out, double& sum) {
  read_stored(row, out);
  const auto total_of_out = [&] { return sum_of_terms(out.size(), [&](std::size_t i) { return out[i]; }); };
  if (row.space == RowSpace::probabilities) {
    sum = total_of_out();
    // Every invalid probability is infinite, NaN or has its sign set.
    std::uint64_t signs = 0;
    for (const double p : out) signs |= std::bit_cast<std::uint64_t>(p);
    if (signs >> 63U != 0 || !std::isfinite(sum))
      if (const auto fault = faulty_entry(row, role)) return fault;
    return faulty_sum(row, role, sum);
  }
  // A row with NaN or infinity among its logarithms does not have a finite total above 0.
  const double largest = largest_of(out);
  for (double& p : out) p = is_floor(p) ? 0 : std::exp(p - largest);
  const double total = total_of_out();
  if (!(0 < total && total < infinity)) {
    if (const auto fault = faulty_entry(row, role)) return fault;
    return RowFault{RowFault::Kind::no_mass, role, -1, 0};
  }
  for (double& p : out) p /= total;
  const double log_sum = largest + std::log(total);
  sum = row.space == RowSpace::logits ? log_sum : std::exp(log_sum);
  return faulty_sum(row, role, sum);
}

std::optional<RowFault> StagedRow::stage(const Row& row, RowRole role) {
  row_ = row;
  reserve();
  if (row.space == RowSpace::probabilities || !stage_exponentials()) return stage_in_double(role);
  if (argmax_ < 0) return RowFault{RowFault::Kind::no_mass, role, -1, 0};
  sum_ = row.space == RowSpace::logits ? log_total_ : std::exp(log_total_);
  return faulty_sum(row, role, sum_);
}

void StagedRow::reserve() {
  const std::size_t blocks = (static_cast<std::size_t>(row_.vocab) + block_tokens - 1) / block_tokens;
  blocks_.resize(blocks);
  scale_.resize(blocks);
  scale_low_.resize(blocks);
  if (blocks * block_tokens <= capacity_) return;
  capacity_ = blocks * block_tokens;
  values_ = hwy::AllocateAligned<float>(capacity_);
}

// Two floats, so that the rounding of the scale does not shift all probabilities of a row in one direction.
void StagedRow::set_scale(std::size_t block, double scale) {
  scale_[block] = static_cast<float>(scale);
  scale_low_[block] = static_cast<float>(scale - double{scale_[block]});
}

// False if the kernels cannot take the numbers, for instance NaN.
bool StagedRow::stage_exponentials() {
  if (!row_kernels::exponentials(row_.type, row_.data, static_cast<std::size_t>(row_.vocab), values_.get(),
                                 blocks_.data())) {
    return false;
  }
  const auto top = std::max_element(blocks_.begin(), blocks_.end(),
                                    [](const auto& a, const auto& b) { return a.largest < b.largest; });
  argmax_ = -1;
  if (is_floor(double{top->largest})) return true;
  const auto begin = static_cast<std::int64_t>(top - blocks_.begin()) * static_cast<std::int64_t>(block_tokens);
  const auto end = begin + static_cast<std::int64_t>(block_tokens);
  argmax_ = first_with(row_, double{top->largest}, begin, std::min(end, row_.vocab));

  // Sums all tokens but the largest: beside it their sum would lose its digits.
  take_out(argmax_);
  top->sum = 0;
  for (std::int64_t i = begin; i < end; ++i) top->sum += double{values_[static_cast<std::size_t>(i)]};
  double rest = 0;
  for (const auto& block : blocks_) rest += std::ldexp(block.sum, block.exponent - top->exponent);
  const double largest = std::exp(double{top->largest} - top->exponent * std::log(2.0));
  largest_ = {largest / (largest + rest), rest / (largest + rest), -std::log1p(rest / largest)};
  log_total_ = double{top->largest} - largest_.logarithm;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    set_scale(b, std::ldexp(1 / (largest + rest), blocks_[b].exponent - top->exponent));
  }
  return true;
}

std::optional<RowFault> StagedRow::stage_in_double(RowRole role) {
  probabilities_.resize(static_cast<std::size_t>(row_.vocab));
  if (const auto fault = read_row(row_, role, probabilities_, sum_)) return fault;
  std::fill(values_.get(), values_.get() + blocks_.size() * block_tokens, 0.0F);
  for (std::int64_t i = 0; i < row_.vocab; ++i) {
    // A nonzero probability must not become 0 by underflow.
    const bool zero =
        row_.space == RowSpace::probabilities ? stored_value(row_, i) == 0 : is_floor(stored_value(row_, i));
    const auto at = static_cast<std::size_t>(i);
    if (!zero) values_[at] = std::max(static_cast<float>(probabilities_[at]), std::numeric_limits<float>::denorm_min());
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) set_scale(b, 1);
  const auto top = std::max_element(probabilities_.begin(), probabilities_.end());
  argmax_ = top - probabilities_.begin();
  log_total_ = stored_value(row_, argmax_) - std::log(*top);
  largest_ = {*top, 1 - *top, std::log(*top)};
  take_out(argmax_);
  return std::nullopt;
}

ExactToken StagedRow::token(std::int64_t token) const {
  if (token == argmax_) return largest_;
  const double stored = stored_value(row_, token);
  if (row_.space == RowSpace::probabilities) return {stored, 1 - stored, std::log(stored)};
  const double logarithm = is_floor(stored) ? -infinity : stored - log_total_;
  return {std::exp(logarithm), -std::expm1(logarithm), logarithm};
}

}  // namespace specdec::core
