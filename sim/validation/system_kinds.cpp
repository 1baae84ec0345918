#include <array>
#include <utility>

#include "sim/blockwise.hpp"
#include "sim/decoding.hpp"
#include "sim/validation/beam_system.hpp"
#include "sim/validation/early_exit_system.hpp"
#include "sim/validation/head_drafts.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {
namespace {

/// The target alone: every token is a step.
class PlainDecoder final : public MethodDecoder {
 public:
  explicit PlainDecoder(const MethodContext& context) : context_(context), target_(context.target()) {
    options_.max_new_tokens = context.settings().max_new_tokens;
    options_.end_token = context.settings().end_token;
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

/// Blocks of gamma drafts by parallel heads and the target's own token, proposed with the verification before.
class BlockwiseDecoder final : public MethodDecoder {
 public:
  BlockwiseDecoder(const MethodContext& context, const DraftBenchFactory& benches)
      : context_(context), bench_(benches(context.standardisation(), sim::Proposing::greedy)) {
    options_.block = context.settings().gamma + 1;
    options_.end_token = context.settings().end_token;
    options_.max_new_tokens = context.settings().max_new_tokens;
  }

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource&) override {
    const sim::OffsetPredictors heads = sim::predictors_of(*bench_.draft, prompt);
    sim::Generation text = sim::decode_blockwise(bench_.target.ref(), heads, prompt, options_);
    MethodRun run{std::move(text.counters)};
    const sim::DraftWork work = bench_.draft->work();
    run.counters.draft_calls = work.calls;
    run.counters.draft_positions = work.positions;
    run.counters.operations += work.operations;
    // Nothing is random.
    for (const sim::Step& step : text.steps) {
      for (std::int64_t i = 0; i < step.accepted; ++i) run.rounds.book(1, true);
      if (step.accepted < step.drafted) run.rounds.book(0, false);
    }
    context_.price(run, text.steps, bench_.use(run.counters));
    // The first proposal needs a separate call.
    if (context_.settings().cost) run.cost += 1;
    run.text = std::move(text.tokens);
    return run;
  }

 private:
  const MethodContext& context_;
  DraftBench bench_;
  sim::BlockwiseOptions options_;
};

std::string lacks_greedy_heads(const MethodContext& context) {
  if (context.settings().temperature != 0) return "the text is the greedy one, of temperature 0";
  return lacks_parallel_heads(context);
}

MethodDecoderFactory blockwise(const MethodContext& context) {
  return
      [&context, benches = parallel_drafts(context)] { return std::make_unique<BlockwiseDecoder>(context, benches); };
}

}  // namespace

std::span<const SystemKind> system_kinds() {
  static constexpr std::array kinds{
      SystemKind{"plain", Keeps::law, nullptr, plain, {.temperature = true}},
      SystemKind{"blockwise",
                 Keeps::law,
                 lacks_greedy_heads,
                 blockwise,
                 {.gamma = true, .temperature = true, .cost = true, .draft_model = true, .parallel_heads = true}},
      SystemKind{"calm",
                 Keeps::nothing,
                 lacks_early_exits,
                 early_exit_by_response,
                 {.temperature = true, .exits = true}},
      SystemKind{"calm-saturation",
                 Keeps::nothing,
                 lacks_early_exits,
                 early_exit_by_saturation,
                 {.temperature = true, .exits = true}},
      SystemKind{"beam",
                 Keeps::beams,
                 nullptr,
                 drafted_beams,
                 {.gamma = true, .beams = true, .draft_beams = true, .cost = true, .draft_model = true}},
  };
  return kinds;
}

}  // namespace specdec::validation
