#pragma once

#include <hwy/targets.h>

#include <cstdint>

#include "tests/support/catch.hpp"

/// Calls check() for each instruction set, chosen in place of the best one.
template <class Check>
void on_every_instruction_set(const Check& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    CAPTURE(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
