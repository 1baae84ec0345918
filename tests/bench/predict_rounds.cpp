// Do the measured and the fitted cost predict how fast speculative decoding of the shipped pair is? Times passes of
// both models over block sizes and contexts, decodes prompts plainly and speculatively, and predicts every gamma's
// round and speedup without its own block size (measured) or its own runs (fitted). Processor time of one thread,
// single sequence, temperature 1; docs/validation.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "sim/decoding.hpp"
#include "sim/model_factory.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "tests/bench/timing.hpp"
#include "traces/formats/prompts.hpp"

using namespace specdec;
using sim::Token;

namespace {

/// A model that notes how long its calls took, by the number of their tokens; 0 for reading the prompt.
class TimedCalls final : public sim::LanguageModel {
 public:
  explicit TimedCalls(sim::LanguageModel& model) : model_(model) {}
  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_length() const override { return model_.max_length(); }
  std::int64_t length() const override { return model_.length(); }
  double operations_per_token() const override { return model_.operations_per_token(); }
  void score(std::span<const Token> block, std::span<double> rows) override {
    const double start = bench::processor_seconds();
    model_.score(block, rows);
    Calls& calls = by_tokens_[rows.empty() ? 0 : static_cast<std::int64_t>(block.size())];
    calls.seconds += bench::processor_seconds() - start;
    calls.count += 1;
  }
  void roll_back(std::int64_t length) override { model_.roll_back(length); }

  struct Calls {
    double seconds = 0, count = 0;
  };
  const std::map<std::int64_t, Calls>& by_tokens() const { return by_tokens_; }
  double seconds() const {
    double sum = 0;
    for (const auto& [tokens, calls] : by_tokens_) sum += calls.seconds;
    return sum;
  }
  double prompt_seconds() const {
    const auto found = by_tokens_.find(0);
    return found == by_tokens_.end() ? 0 : found->second.seconds;
  }

 private:
  sim::LanguageModel& model_;
  std::map<std::int64_t, Calls> by_tokens_;
};

/// Figures of one gamma's decoding of a task: the median over repetitions of each mean.
struct Decoded {
  std::vector<double> seconds_per_step = {}, rest_per_step = {};
  std::map<std::int64_t, std::vector<double>> target_calls = {}, draft_calls = {};
  double steps = 0, tokens = 0, drafted = 0;

  double step() const { return bench::median(seconds_per_step); }
  /// Outside both models.
  double rest() const { return bench::median(rest_per_step); }
  double tokens_per_step() const { return tokens / steps; }
};

using ByGamma = std::map<std::int64_t, Decoded>;
using Prompts = std::vector<std::vector<Token>>;

/// Decodes all prompts once more.
void decode(sim::LanguageModel& target, sim::LanguageModel& draft, const Prompts& prompts, std::int64_t new_tokens,
            std::int64_t gamma, Decoded& sum) {
  std::map<std::int64_t, TimedCalls::Calls> target_calls, draft_calls;
  double seconds = 0, rest = 0;
  sum.steps = sum.tokens = sum.drafted = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    sim::DecodingOptions options;
    options.gamma = gamma;
    options.max_new_tokens = new_tokens;
    const sim::RandomStream stream(1, i);
    TimedCalls timed_target(target), timed_draft(draft);
    const double start = bench::processor_seconds();
    const sim::Generation text =
        gamma == 0 ? sim::decode_autoregressively(timed_target, prompts[i], options, stream)
                   : sim::decode_speculatively(timed_target, timed_draft, prompts[i], options, stream);
    const double total = bench::processor_seconds() - start;
    seconds += total - timed_target.prompt_seconds() - timed_draft.prompt_seconds();
    rest += total - timed_target.seconds() - timed_draft.seconds();
    const auto add = [](const TimedCalls& model, auto& calls) {
      for (const auto& [tokens, of_tokens] : model.by_tokens()) {
        calls[tokens].seconds += of_tokens.seconds;
        calls[tokens].count += of_tokens.count;
      }
    };
    add(timed_target, target_calls);
    add(timed_draft, draft_calls);
    const auto tokens = static_cast<double>(text.tokens.size());
    sum.tokens += tokens;
    sum.steps += gamma == 0 ? tokens : static_cast<double>(text.counters.steps);
    sum.drafted += static_cast<double>(text.counters.drafted);
  }
  sum.seconds_per_step.push_back(seconds / sum.steps);
  sum.rest_per_step.push_back(rest / sum.steps);
  for (const auto& [tokens, calls] : target_calls) sum.target_calls[tokens].push_back(calls.seconds / calls.count);
  for (const auto& [tokens, calls] : draft_calls) sum.draft_calls[tokens].push_back(calls.seconds / calls.count);
}

traces::TimedPass timed_pass(std::int64_t tokens, double context, double seconds) {
  traces::TimedPass pass;
  pass.axis = traces::TimingAxis::verification;
  pass.tokens = static_cast<double>(tokens);
  pass.context = context;
  pass.seconds = seconds;
  return pass;
}

/// Passes of plain decoding and of whole rounds at all gammas but one, a plain step's sampling with each, and what the
/// other rounds spent outside the models.
cost::MeasuredCost measured_without(std::int64_t left_out, const ByGamma& runs, double context) {
  const double sampling = runs.at(0).rest();
  std::vector<traces::TimedPass> target = {
      timed_pass(1, context, bench::median(runs.at(0).target_calls.at(1)) + sampling)};
  std::vector<double> draft_one, draft_two, overheads;
  for (const auto& [gamma, run] : runs) {
    if (gamma == 0 || gamma == left_out) continue;
    target.push_back(timed_pass(gamma + 1, context, bench::median(run.target_calls.at(gamma + 1)) + sampling));
    draft_one.push_back(bench::median(run.draft_calls.at(1)));
    if (const auto two = run.draft_calls.find(2); two != run.draft_calls.end())
      draft_two.push_back(bench::median(two->second));
    overheads.push_back(run.rest() - sampling);
  }
  std::vector<traces::TimedPass> draft = {timed_pass(1, context, bench::median(draft_one))};
  if (!draft_two.empty()) draft.push_back(timed_pass(2, context, bench::median(draft_two)));
  cost::MeasuredOptions options;
  options.overhead_seconds = std::max(0.0, bench::median(overheads));
  // The last and the first block size have no neighbour beyond them.
  return {target, draft, options};
}

/// Share of rounds after a full accept, by the run's own acceptance rate.
double full_accepts(const Decoded& run, std::int64_t gamma) {
  const double accepted = (run.tokens - run.steps) / run.drafted;
  return std::pow(std::clamp(accepted, 0.0, 1.0), static_cast<double>(gamma));
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path models = "sim/models";
  std::vector<std::int64_t> gammas = {1, 2, 3, 4, 5, 6, 8, 10, 12};
  std::int64_t prompts_per_task = 2, repetitions = 7, new_tokens = 128;
  CLI::App app("Predicts rounds and speedups of the shipped pair from other block sizes and from other rounds");
  app.add_option("--models", models, "folder of a trained pair")->capture_default_str();
  app.add_option("--gamma", gammas)->delimiter(',');
  app.add_option("--prompts", prompts_per_task, "per task")->capture_default_str();
  app.add_option("--repetitions", repetitions)->capture_default_str();
  app.add_option("--new-tokens", new_tokens)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto load = [&](const char* name) { return sim::Transformer(sim::load_checkpoint(models / name)); };
  sim::Transformer target = load("target"), draft = load("draft");
  const sim::Tokenizer tokenizer = sim::Tokenizer::load(models / "target" / "tokenizer.model");
  std::map<std::string, Prompts> prompts;
  for (const traces::Prompt& prompt : traces::read_prompts(models / "prompts.jsonl")) {
    Prompts& of_task = prompts[prompt.task];
    if (static_cast<std::int64_t>(of_task.size()) < prompts_per_task)
      of_task.push_back(tokenizer.encode(prompt.text, true));
  }

  // Texts and steps are the same in every repetition; times are not, and a repetition goes through everything in turn.
  std::map<std::string, ByGamma> decoded;
  gammas.push_back(0);
  for (std::int64_t repetition = 0; repetition < repetitions; ++repetition)
    for (const auto& [task, of_task] : prompts)
      for (const std::int64_t gamma : gammas) decode(target, draft, of_task, new_tokens, gamma, decoded[task][gamma]);

  fmt::print(
      "| task | gamma | tokens/step | round, ms | measured cost | fitted cost | speedup | measured cost | fitted cost "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  std::map<std::string, std::vector<double>> errors;
  for (const auto& [task, by_gamma] : decoded) {
    double context = static_cast<double>(new_tokens) / 2;
    for (const std::vector<Token>& prompt : prompts.at(task))
      context += static_cast<double>(prompt.size()) / static_cast<double>(prompts.at(task).size());
    std::vector<cost::ObservedRound> runs;
    for (const auto& [gamma, run] : by_gamma) {
      runs.push_back({.name = fmt::format("{} {}", task, gamma),
                      .gamma = run.drafted / run.steps,
                      .batch = 1,
                      .context = context,
                      .seconds = run.step()});
    }
    const auto left_out = cost::leave_one_out(runs, {});
    const double plain = by_gamma.at(0).step();
    std::size_t place = 0;
    for (const auto& [gamma, run] : by_gamma) {
      const std::optional<double> fitted = left_out[place++];
      if (gamma == 0) continue;
      const cost::MeasuredCost measured = measured_without(gamma, by_gamma, context);
      const double round =
          measured.round({.gamma = gamma, .context = context, .full_accepts = full_accepts(run, gamma)}).total();
      const double tokens = run.tokens_per_step(), seconds = run.step();
      const double speedup = tokens * plain / seconds;
      const double by_measured = tokens * measured.round({.context = context}).total() / round;
      const double by_fitted = tokens * plain / fitted.value_or(std::nan(""));
      const auto error = [&](const std::string& name, double predicted, double observed) {
        errors[name].push_back(std::abs(predicted / observed - 1));
        return fmt::format("{:+.1f}%", 100 * (predicted / observed - 1));
      };
      const std::string round_measured = error("round, measured cost", round, seconds);
      const std::string round_fitted = error("round, fitted cost", fitted.value_or(std::nan("")), seconds);
      const std::string speedup_measured = error("speedup, measured cost", by_measured, speedup);
      const std::string speedup_fitted = error("speedup, fitted cost", by_fitted, speedup);
      fmt::print("| {} | {} | {:.2f} | {:.3f} | {} | {} | {:.2f} | {} | {} |\n", task, gamma, tokens, 1000 * seconds,
                 round_measured, round_fitted, speedup, speedup_measured, speedup_fitted);
    }
  }
  fmt::print("\n");
  for (const auto& [name, values] : errors) {
    fmt::print("{}: median error {:.1f}%, largest {:.1f}% over {} configurations\n", name, 100 * bench::median(values),
               100 * *std::max_element(values.begin(), values.end()), values.size());
  }
}
