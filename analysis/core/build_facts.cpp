#include "analysis/core/build_facts.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <hwy/highway.h>
#include <cstdint>

namespace specdec::core {
namespace {

/// The best of those that were compiled and that the processor has; Highway gives better ones lower bits.
std::string instruction_set() {
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);
}

#ifdef __clang__
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "gcc " __VERSION__;
#endif

}  // namespace

std::string build_facts() {
  return fmt::format("{}, glibc {}, {}", compiler, gnu_get_libc_version(), instruction_set());
}

}  // namespace specdec::core
