#include "cli/plan_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/planning/best_gamma.hpp"
#include "cli/given_options.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/usage_error.hpp"
#include "planner/distinct_files.hpp"
#include "planner/near_names.hpp"
#include "planner/traffic_mix.hpp"

namespace specdec::cli {
namespace {

using planner::largest_max_gamma;

constexpr std::int64_t largest_tokens = 1'000'000;
constexpr std::int64_t largest_num_seqs = 65536;

GivenOptions acceptance_options(const PlanOptions& o) {
  return {{"--alpha", o.alpha.has_value()},
          {"--rejection", o.rejection.has_value()},
          {"--acceptance-length", o.acceptance_length.has_value()},
          {"--acceptance-rate", o.acceptance_rate.has_value()},
          {"--acceptance-per-position", o.acceptance_per_position.has_value()},
          {"--published", o.published.has_value()},
          {"--counters", !o.counters.empty()},
          {"--trace", !o.trace.empty()}};
}

GivenOptions cost_options(const PlanOptions& o) {
  return {{"--c", o.cost.c.has_value()},
          {"--verify-factor", o.cost.verify_factor.has_value()},
          {"--overhead", o.cost.overhead.has_value()},
          {"--cost", !o.cost_files.empty()},
          {"--draft-cost", !o.draft_cost_files.empty()},
          {"--overhead-seconds", o.overhead_seconds.has_value()},
          {"--hardware", o.roofline.hardware.has_value()}};
}

void require_acceptance(const PlanOptions& o) {
  const auto given = names_given(acceptance_options(o));
  if (!o.drafts.empty()) return refuse_given(acceptance_options(o), "each --draft brings its own acceptance");
  if (given.empty()) {
    if (!o.bench.empty() || o.leaves_acceptance_to_draft()) return;
    throw UsageError(
        "the acceptance is missing: --acceptance-length L --at G of a server's log; or --acceptance-rate, --counters, "
        "--bench, --trace, --alpha, --acceptance-per-position, --published, --draft, or --draft-model with --hardware");
  }
  if (given.size() > 1) throw UsageError(fmt::format("{} are given, but must be one", fmt::join(given, " and ")));
}

void require_about_acceptance(const PlanOptions& o) {
  const bool stated_for_drafts = !o.drafts.empty();
  if (o.at && !o.acceptance_length && !o.acceptance_rate && o.counters.empty() && o.bench.empty() &&
      o.cost_files.empty() && !stated_for_drafts) {
    throw UsageError(
        "--at is given, but goes with --acceptance-length, --acceptance-rate, --counters, --bench or a log of --cost "
        "only");
  }
  if (o.rounds && !o.acceptance_length && !o.acceptance_rate && !o.acceptance_per_position) {
    throw UsageError(
        "--rounds is given, but goes with --acceptance-length, --acceptance-rate or --acceptance-per-position only");
  }
  if (o.conditional && !o.acceptance_per_position) {
    throw UsageError("--conditional is given, but goes with --acceptance-per-position only");
  }
  if (o.draft_array && o.trace.empty()) throw UsageError("--draft-array is given, but goes with --trace only");
  if (o.acceptance != "recorded" && o.trace.empty() && !o.published && !o.question.emit && !stated_for_drafts &&
      !o.leaves_acceptance_to_draft()) {
    throw UsageError("--acceptance is given, but goes with --trace, --published or --emit only");
  }
  if (o.mix && o.counters.empty() && o.trace.empty() && o.drafts.empty()) {
    throw UsageError("--mix is given, but goes with --counters or --trace only");
  }
  if (!o.mix) {
    refuse_given({{"--by", o.by && o.trace.empty() && o.drafts.empty()}, {"--mix-by", o.mix_by != "tokens"}},
                 "needs --mix beside it");
    if (o.by && !o.bench.empty())
      throw UsageError("--by is given, but must not be beside --bench: its runs have one acceptance for all contexts");
  }
}

GivenOptions lookup_options(const PlanOptions& o) {
  return {{"--hit-rate", o.draft().hit_rate.has_value()},
          {"--mean-draft-length", o.draft().mean_draft_length.has_value()}};
}

void require_costs(const PlanOptions& o) {
  if (!o.bench.empty()) {
    GivenOptions others = cost_options(o);
    const auto beside = [](const auto& option) {
      return option.first.starts_with("--overhead") || option.first == "--hardware";
    };
    others.erase(std::remove_if(others.begin(), others.end(), beside), others.end());
    refuse_given(others, "--bench brings its own costs");
    if (!o.roofline.hardware) refuse_given(given_beside_hardware(o.roofline), "needs --hardware beside it");
    if (!o.drafts.empty()) throw UsageError("--draft is given, but --bench brings its own draft");
    refuse_given(lookup_options(o), "the rounds of --bench hold misses and lengths");
    return;
  }
  if (!o.holdout.empty()) throw UsageError("--holdout is given, but needs --bench beside it");
  if (o.roofline.hardware) {
    GivenOptions others = cost_options(o);
    others.pop_back();
    refuse_given(others, "--hardware prices rounds");
  } else if (!o.cost_files.empty()) {
    refuse_given({{"--verify-factor", o.cost.verify_factor.has_value()}}, "--cost measures that");
    refuse_given({{"--overhead", o.cost.overhead.has_value()}},
                 "with --cost the other time of a step is --overhead-seconds");
    if (o.cost.c && !o.draft_cost_files.empty()) {
      throw UsageError("--c is given, but --draft-cost measures that");
    }
  } else {
    refuse_given(
        {{"--draft-cost", !o.draft_cost_files.empty()}, {"--overhead-seconds", o.overhead_seconds.has_value()}},
        "needs --cost beside it");
  }
  if (!o.roofline.hardware) refuse_given(given_beside_hardware(o.roofline), "needs --hardware beside it");
  if (!o.drafts.empty()) {
    refuse_given({{"--c", o.cost.c.has_value()},
                  {"--draft-cost", !o.draft_cost_files.empty()},
                  {"--draft-kind", o.draft().kind.has_value()},
                  {"--draft-model", o.draft().model.has_value()}},
                 "each --draft brings its own");
    refuse_given(lookup_options(o), "a --draft that is looked up finds something in every round");
  }
}

/// A draft's name alone tells something where it is a preset, which is held against the target's.
void require_read_draft_model(const PlanOptions& o) {
  const bool is_read = o.roofline.hardware || !o.cost_files.empty() || !o.draft_cost_files.empty() ||
                       !o.bench.empty() || o.question.emit;
  if (!o.draft().model || is_read || cost::model_preset(*o.draft().model) != nullptr) return;
  std::vector<std::string> known;
  for (const cost::ModelSpec& preset : cost::model_presets()) known.push_back(preset.name);
  refuse("--draft-model", *o.draft().model,
         "one of `specdec list models`: only --hardware, --cost, --draft-cost, --bench and --emit read others" +
             planner::near_names(*o.draft().model, known));
}

void require_question(const PlanOptions& o) {
  const planner::PlanQuestion& q = o.question;
  const bool has_schedule = !q.schedule.empty();
  if (q.gamma && has_schedule) throw UsageError("--schedule is given, but must not be beside --gamma");
  if (q.max_regret && !q.gamma && !has_schedule) {
    throw UsageError("--max-regret is given, but needs --gamma, the gamma in use");
  }
  if (o.emit_file && !o.question.emit) throw UsageError("--emit-file is given, but needs --emit beside it");
  if (o.is_closed_form())
    return refuse_given({{"--model", o.model.has_value()}, {"--draft-model", o.draft().model.has_value()}},
                        "goes with a deployment: --batch, files, --hardware or --emit");
  require_read_draft_model(o);
  refuse_given({{"--tokens", q.tokens.has_value()}, {"--c-hat", q.c_hat.has_value()}},
               "goes with one acceptance and --c alone, without batches, files and drafts");
}

}  // namespace

bool PlanOptions::states_acceptance() const { return !names_given(acceptance_options(*this)).empty(); }

bool PlanOptions::states_cost() const { return !names_given(cost_options(*this)).empty(); }

bool PlanOptions::leaves_acceptance_to_draft() const {
  return !states_acceptance() && drafts.empty() && bench.empty() && (draft().model || draft().kind);
}

bool PlanOptions::is_closed_form() const {
  const bool files = !counters.empty() || !trace.empty() || !cost_files.empty() || !draft_cost_files.empty() ||
                     !bench.empty() || !holdout.empty() || roofline.hardware;
  const bool deployment = !drafts.empty() || !question.batch.empty() || !question.context.empty() ||
                          question.max_num_seqs || !question.schedule.empty() || question.emit;
  return !files && !deployment && !draft().kind && !overhead_seconds;
}

void declare_acceptance(Options& options, PlanOptions& o, const std::string& how_many) {
  options.group(fmt::format("Acceptance ({})", how_many));
  options.text("--alpha", o.alpha, "A|LOW:HIGH",
               "acceptance rate of each draft looked at, or an interval\nof it; the rate of a log is --acceptance-rate");
  options.text("--rejection", o.rejection, "E|LOW:HIGH", "1 - alpha, exact where alpha is close to 1");
  options.text("--acceptance-length", o.acceptance_length, "L|G:L,...",
               "tokens per step, bonus token included; one at --at,\nor one for each gamma: 1:1.84,2:2.51,3:3.01");
  options.text("--acceptance-rate", o.acceptance_rate, "R",
               "accepted / drafted tokens at --at, as engines print it;\nit falls with gamma, and is not --alpha");
  options.text("--acceptance-per-position", o.acceptance_per_position, "P1,P2,...",
               "rate at which draft 1, 2, ... is accepted");
  options.text(
      "--published", o.published, "NAME",
      "what others printed: a name of `specdec list published`;\nthat of --draft-model where no acceptance is given");
  options.texts("--counters", o.counters, "FILE",
                "counters of your server, in any format of docs/reference/formats.md");
  options.texts("--trace", o.trace, "FILE", "a recording, in any format of docs/reference/formats.md");
  options.group("About the acceptance");
  options.text("--draft-array", o.draft_array, "NAME", "the draft of --trace, where that holds several, or its array");
  options.integer("--at", o.at, {1, largest_max_gamma},
                  "gamma at which --acceptance-length or --acceptance-rate was\nmeasured, or counters or benchmark runs that do not say it");
  options.number("--rounds", o.rounds, {1.0, 1e15},
                 "rounds behind each number of --acceptance-length,\n--acceptance-rate or --acceptance-per-position, for an interval");
  options.flag("--conditional", o.conditional,
               "--acceptance-per-position holds rates given that all\nbefore are accepted");
  options.choice("--acceptance", o.acceptance, {"recorded", "rejection", "greedy-draft", "greedy"},
                 "the engine's acceptance rule; recorded: as the files say");
  options.text("--mix", o.mix, "GROUP=SHARE,...",
               "the traffic to plan for, as shares of groups of --counters\nor --trace: code=0.6,chat=0.4");
  options.choice("--mix-by", o.mix_by, {"tokens", "requests"}, "of what --mix has shares");
  options.text(
      "--by", o.by, "LABEL[:B1,B2,...]",
      "the label whose values, or ranges of numbers, are these\ngroups [category; of --trace task]; of --trace "
      "alone\ncontext:N1,N2,...: acceptance by context");
}

void declare_lookups(Options& options, planner::DraftWords& draft) {
  options.number("--hit-rate", draft.hit_rate, {.lo = 0, .hi = 1},
                 "of ngram and suffix: the share of rounds in which a\nlookup finds something [1]");
  options.number("--mean-draft-length", draft.mean_draft_length, {.lo = 1, .hi = 1e6},
                 "tokens that it then finds on average, of which gamma at\nmost are drafted [gamma]");
}

void declare(Options& options, PlanOptions& o) {
  declare_acceptance(options, o);
  o.cost.declare(options, "(or --cost, --hardware, --bench)");
  options.number("--c-hat", o.question.c_hat, {}, "draft operations / target operations per token [c]");
  options.texts("--cost", o.cost_files, "FILE",
                "measured times of the target's passes: a table of batch,\ntokens,context,seconds, or llama-bench "
                "files; or logs of\n"
                "vLLM or SGLang, or scrapes of vLLM");
  options.texts("--draft-cost", o.draft_cost_files, "FILE", "the same of the draft; or one model of --cost");
  options.number("--overhead-seconds", o.overhead_seconds, {},
                 "other time of a speculative step, with --cost or --bench\n(there beyond that of the runs) [0]");
  declare_draft_kind(options, o.draft().kind, "how drafts are made [model; mirrored of llama.cpp]");
  declare_lookups(options, o.draft());
  declare(options, o.roofline);
  options.group("Benchmark runs");
  options.texts(
      "--bench", o.bench, "FILE",
      "results of vllm bench serve or SGLang's bench_serving,\nlogs or timed answers of llama-server, or a table of\n"
      "runs (CSV: concurrency, gamma, output_tokens_per_second\nor ms_per_token, tokens_per_step); with and without\n"
      "speculation");
  options.texts("--holdout", o.holdout, "FILE", "runs to predict, which are used for nothing else");
  options.group("Models and drafts");
  options.text("--model", o.model, "NAME",
               "target model, where files hold several; stands in --emit;\n"
               "with --hardware a name of `specdec list models`, or a file");
  options.text("--draft-model", o.draft().model, "NAME", "draft model, the same");
  options.texts("--draft", o.drafts, "NAME:KEY=VALUE,...",
                "a draft to choose among, repeatedly; keys alpha,\nacceptance-length, at, rounds, published, counters, "
                "trace,\narray, rule, c, cost, kind, model, tp");
  options.group("Question");
  planner::PlanQuestion& q = o.question;
  declare_batch(options, q.batch, "sequences decoded together [1]");
  declare_context(options, q.context, "tokens in the cache per sequence [that of the files]");
  options.integer("--max-num-seqs", q.max_num_seqs, {1, largest_num_seqs},
                  "the schedule covers batch 1 to N [the largest batch]");
  options.number("--min-gain", q.min_gain, {}, "speculation must be 1 + X times as fast to be worth it [0.05]");
  options.integer("-k,--gamma,--num-speculative-tokens", q.gamma, {0, planning::no_max_gamma},
                  "gamma in use: shows its speedup and regret");
  declare_schedule(options, q.schedule, "gammas in use by batch: 1-64:3,65-128:1,129-512:0");
  options.number(
      "--max-regret", q.max_regret, {0.0, 1.0},
      "exit with 1 if the gamma in use is slower than the\nrecommended one by a larger share, by any reading "
      "or at any\nend of an interval, at any point");
  options.integer("--max-gamma", q.max_gamma, {1, largest_max_gamma}, "largest gamma to recommend and to show");
  options.integer("--tokens", q.tokens, {1, largest_tokens}, "also for generations of N tokens");
  options.group("Configuration");
  declare_emit(options, q.emit, "configuration for this engine");
  options.text("--emit-file", o.emit_file, "FILE", "write it there");
  options.footer(
      "Examples:\n"
      "  specdec plan --alpha 0.8 --c 0.05\n"
      "  specdec plan --acceptance-length 2.92 --at 3 --c 0.02 --gamma 3 --max-regret 0.05\n"
      "  specdec plan --alpha 0.7:0.8 --c 0.05 --verify-factor 2:1.02,5:1.10,9:1.31\n"
      "  specdec plan --counters metrics.txt --cost timings.csv --c 0.1 --batch 1,8,64\n"
      "  specdec plan --alpha 0.8 --hardware h200 --model llama-3.1-70b --draft-model llama-3.2-1b\n"
      "  specdec plan --bench results/*.json --emit vllm");
  options.shown_first({"--bench", "--counters", "--trace", "--cost", "--acceptance-length", "--acceptance-rate", "--at",
                       "--alpha", "--c", "--batch", "--hardware", "--model", "--draft-model", "--emit"});
}

void require_consistent_acceptance(const PlanOptions& o) {
  require_acceptance(o);
  require_about_acceptance(o);
}

void require_consistent(const PlanOptions& o) {
  using Paths = std::vector<std::filesystem::path>;
  const auto paths = [](const std::vector<std::string>& files) { return Paths(files.begin(), files.end()); };
  for (const auto& [option, files] :
       {std::pair("--counters", &o.counters), std::pair("--trace", &o.trace), std::pair("--cost", &o.cost_files),
        std::pair("--draft-cost", &o.draft_cost_files), std::pair("--bench", &o.bench),
        std::pair("--holdout", &o.holdout)})
    planner::require_distinct(option, paths(*files));
  planner::require_apart("--holdout", paths(o.holdout), "--bench", paths(o.bench));
  require_acceptance(o);
  require_about_acceptance(o);
  require_costs(o);
  require_question(o);
}

}  // namespace specdec::cli
