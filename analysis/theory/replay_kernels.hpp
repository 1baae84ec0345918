#pragma once

#include <cstddef>

/// The inner loops of streaming replay over a stretch of positions, in SIMD lanes chosen at run time.
namespace specdec::theory::kernels {

/// out[i] = a[i] b[i]; out overlaps neither.
void multiply(const double* a, const double* b, double* out, std::size_t n);

/// starts[r][i] = 1 - acceptance[i - 1] + products[r][i] starts[r][i - r - 1], in order of i, for rows r that are
/// `stride` apart.
void advance_starts(const double* acceptance, const double* products, double* starts, std::size_t rows,
                    std::size_t stride, std::size_t n);

/// The sum of values[0..n).
double sum(const double* values, std::size_t n);

/// The sum of a[i] b[i].
double dot(const double* a, const double* b, std::size_t n);

}  // namespace specdec::theory::kernels
