#include <array>
#include <utility>

#include "sim/decoding.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {
namespace {

/// The target alone: every token is a step.
class PlainDecoder final : public MethodDecoder {
 public:
  explicit PlainDecoder(const MethodContext& context) : context_(context), target_(context.source().models.target(1)) {
    options_.max_new_tokens = context.settings().max_new_tokens;
    options_.standardisation = context.standardisation();
  }

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    sim::Generation text = sim::decode_autoregressively(target_.ref(), prompt, options_, uniforms);
    text.steps.resize(text.tokens.size());
    MethodRun run{std::move(text.counters)};
    run.counters.steps = run.counters.tokens;
    context_.price(run, text.steps, {});
    run.text = std::move(text.tokens);
    return run;
  }

 private:
  const MethodContext& context_;
  sim::OwnedModel target_;
  sim::DecodingOptions options_;
};

MethodDecoderFactory plain(const MethodContext& context) {
  return [&context] { return std::make_unique<PlainDecoder>(context); };
}

}  // namespace

std::span<const SystemKind> system_kinds() {
  static constexpr std::array kinds{SystemKind{"plain", true, nullptr, plain}};
  return kinds;
}

}  // namespace specdec::validation
