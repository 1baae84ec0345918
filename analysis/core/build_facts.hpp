#pragma once

#include <string>

namespace specdec::core {

/// What, beside the version of the program, decides the last bits of a number: "gcc 12.2.0, glibc 2.36, AVX2", the
/// compiler, the C library and the instruction set that the kernels run on.
std::string build_facts();

}  // namespace specdec::core
