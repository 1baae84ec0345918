#include "sim/validation/early_exit_system.hpp"

#include <memory>
#include <utility>

#include "sim/decoding.hpp"
#include "sim/transformer/early_exit.hpp"

namespace specdec::validation {
namespace {

class EarlyExitDecoder final : public MethodDecoder {
 public:
  EarlyExitDecoder(const MethodContext& context, sim::ExitConfidence confidence, double threshold)
      : context_(context),
        early_(context.source().target_weights,
               {.confidence = confidence, .threshold = threshold, .exits = context.source().exits}),
        full_(context.source().models.target(1)) {
    options_.max_new_tokens = context.settings().max_new_tokens;
    options_.end_token = context.settings().end_token;
    options_.standardisation = context.standardisation();
  }

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    early_.run_all_blocks_before(static_cast<std::int64_t>(prompt.size()) - 1);
    sim::Generation text = sim::decode_autoregressively(early_, prompt, options_, uniforms);
    const sim::EarlyExitText measured =
        sim::measure_early_exit(early_, full_.ref(), prompt, text.tokens, options_.standardisation);
    MethodRun run{std::move(text.counters)};
    run.counters.steps = run.counters.tokens;
    run.rounds.distance = measured.total_variation;
    // Every product reads its weights once, and time is proportional to that.
    run.weight_reads = measured.operations / context_.target_operations();
    if (context_.settings().cost) run.cost = run.weight_reads;
    EarlyExitSums& sums = run.early_exit.emplace();
    for (std::size_t i = 0; i < measured.blocks_run.size(); ++i)
      sums.blocks += static_cast<double>(i + 1) * static_cast<double>(measured.blocks_run[i]);
    sums.kullback_leibler = measured.kullback_leibler;
    run.text = std::move(text.tokens);
    return run;
  }

 private:
  const MethodContext& context_;
  sim::EarlyExitTransformer early_;
  sim::OwnedModel full_;
  sim::DecodingOptions options_;
};

MethodDecoderFactory prepare_early_exit(const MethodContext& context, sim::ExitConfidence confidence,
                                        double threshold) {
  return
      [&context, confidence, threshold] { return std::make_unique<EarlyExitDecoder>(context, confidence, threshold); };
}

}  // namespace

std::string lacks_early_exits(const MethodContext& context) {
  return context.source().target_weights ? "" : "the source's target has no blocks";
}

MethodDecoderFactory early_exit_by_response(const MethodContext& context) {
  return prepare_early_exit(context, sim::ExitConfidence::softmax_response, context.settings().exit_response);
}

MethodDecoderFactory early_exit_by_saturation(const MethodContext& context) {
  return prepare_early_exit(context, sim::ExitConfidence::state_saturation, context.settings().exit_saturation);
}

}  // namespace specdec::validation
