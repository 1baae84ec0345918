#pragma once

#include <string>

#include "sim/validation/method_decoder.hpp"

/// Entries of system_kinds(): the target with early exits (sim/transformer/early_exit.hpp).
namespace specdec::validation {

std::string lacks_early_exits(const MethodContext& context);
/// By softmax response, and by saturation of the states.
MethodDecoderFactory early_exit_by_response(const MethodContext& context);
MethodDecoderFactory early_exit_by_saturation(const MethodContext& context);

}  // namespace specdec::validation
