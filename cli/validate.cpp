#include "cli/validate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "cli/figure.hpp"
#include "cli/files.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "sim/validation/validate.hpp"
#include "traces/formats/prompts.hpp"

namespace specdec::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using sim::Token;
using validation::Check;
using validation::Configuration;
using validation::UniformityTest;

struct ValidateOptions {
  std::optional<std::string> target;
  std::optional<std::string> draft;
  std::optional<std::string> prompts;
  std::string gamma = "2,4,8";
  std::string temperature = "0,1";
  std::optional<std::string> tasks;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::int64_t tokens = validation::Options{}.tokens;
  std::int64_t max_new_tokens = validation::Options{}.max_new_tokens;
  std::int64_t timed_prompts = validation::Options{}.timed_prompts;
  std::int64_t seed = 1;
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  bool show = false;
  std::optional<std::string> prompt;
  std::optional<std::string> task;
};

constexpr std::int64_t most_drafts = 1024;

std::vector<std::string> words(std::string_view option, const std::string& list) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(list, ',')) {
    if (part.empty()) refuse(option, list, "a list separated by commas");
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) refuse(option, list, "a list without repetition");
    parts.emplace_back(part);
  }
  return parts;
}

std::vector<std::int64_t> gammas(const ValidateOptions& options) {
  std::vector<std::int64_t> values;
  for (const std::string& part : words("--gamma", options.gamma))
    values.push_back(parse_integer("--gamma", part, 1, most_drafts));
  return values;
}

std::vector<double> temperatures(const ValidateOptions& options) {
  std::vector<double> values;
  for (const std::string& part : words("--temperature", options.temperature))
    values.push_back(parse_number("--temperature", part, {.lo = 0, .hi = 1000}));
  return values;
}

// The shipped pair: beside an installed binary, else in the source tree.
fs::path shipped_models() {
  std::error_code error;
  const fs::path installed = fs::read_symlink("/proc/self/exe", error).parent_path() / "../share/specdec/models";
  return fs::exists(installed, error) ? installed.lexically_normal() : fs::path(SPECDEC_SHIPPED_MODELS);
}

/// The two checkpoints, their tokenizer and the prompts in tokens.
class Material {
 public:
  explicit Material(const ValidateOptions& options) {
    const fs::path shipped = shipped_models();
    target_folder_ = options.target ? fs::path(*options.target) : shipped / "target";
    draft_folder_ = options.draft ? fs::path(*options.draft) : shipped / "draft";
    if (options.target.has_value() != options.draft.has_value())
      throw UsageError("--target and --draft must be given together");
    if (options.target && !options.prompts && !options.prompt)
      throw UsageError("--prompts must be given together with --target and --draft");
    prompts_file_ = options.prompts ? fs::path(*options.prompts) : shipped / "prompts.jsonl";

    target_ = sim::load_checkpoint(target_folder_);
    draft_ = sim::load_checkpoint(draft_folder_);
    load_tokenizer();
    require_one_vocabulary();
  }

  validation::ModelPair models() const { return {factory(target_), factory(draft_)}; }

  const sim::Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }

  std::int64_t longest_prompt(std::int64_t max_new_tokens) const {
    const std::int64_t room =
        std::min(sim::config_of(*target_).max_length, sim::config_of(*draft_).max_length) - max_new_tokens;
    if (room < 1) {
      refuse("--max-new-tokens", fmt::format("{}", max_new_tokens),
             fmt::format("at most {} for these models", room + max_new_tokens - 1));
    }
    return room;
  }

  std::vector<Token> encoded(const std::string& text) const { return tokenizer_->encode(text, true); }

  /// The prompts of the tasks asked for; one that is too long keeps its end, and `cut` counts it.
  std::vector<validation::Prompt> prompts(const std::optional<std::set<std::string>>& tasks, std::int64_t room,
                                          std::int64_t& cut) const {
    std::vector<validation::Prompt> kept;
    std::set<std::string> found;
    for (const traces::Prompt& prompt : traces::read_prompts(prompts_file_)) {
      found.insert(prompt.task);
      if (tasks && !tasks->contains(prompt.task)) continue;
      kept.push_back({prompt.task, tokens_of(prompt)});
      std::vector<Token>& tokens = kept.back().tokens;
      if (static_cast<std::int64_t>(tokens.size()) <= room) continue;
      tokens.erase(tokens.begin(), tokens.end() - room);
      ++cut;
    }
    for (const std::string& task : tasks.value_or(std::set<std::string>{}))
      if (!found.contains(task)) refuse("--tasks", task, fmt::format("one of {}", fmt::join(found, ", ")));
    return kept;
  }

  ordered_json files() const {
    ordered_json facts = ordered_json::array();
    for (const auto& [option, folder] : {std::pair("--target", &target_folder_), std::pair("--draft", &draft_folder_)})
      for (const char* name : {"config.json", "model.safetensors", "tokenizer.model"})
        if (fs::exists(*folder / name)) facts.push_back(file_facts(option, (*folder / name).string()));
    if (fs::exists(prompts_file_)) facts.push_back(file_facts("--prompts", prompts_file_.string()));
    return facts;
  }

 private:
  using Weights = std::shared_ptr<const sim::TransformerWeights>;

  static validation::ModelFactory factory(const Weights& weights) {
    return [weights](std::int64_t threads) {
      return validation::OwnedModel(sim::Transformer(weights, {.threads = static_cast<int>(threads)}));
    };
  }

  void load_tokenizer() {
    const fs::path beside_target = target_folder_ / "tokenizer.model";
    const fs::path beside_draft = draft_folder_ / "tokenizer.model";
    if (!fs::exists(beside_target)) return;
    tokenizer_ = sim::Tokenizer::load(beside_target);
    if (fs::exists(beside_draft) && file_facts("--draft", beside_draft.string()).at("sha256") !=
                                        file_facts("--target", beside_target.string()).at("sha256"))
      throw UsageError(fmt::format("--draft {}: tokenizer.model differs from the one in {}, but both models must have "
                                   "one vocabulary", draft_folder_.string(), target_folder_.string()));
  }

  void require_one_vocabulary() const {
    const std::int64_t target = sim::config_of(*target_).vocab_size;
    const std::int64_t draft = sim::config_of(*draft_).vocab_size;
    if (target != draft)
      throw UsageError(fmt::format("--draft {}: vocab_size is {}, but must be {} as in {}", draft_folder_.string(),
                                   draft, target, target_folder_.string()));
    if (tokenizer_ && tokenizer_->vocab_size() > target)
      throw UsageError(fmt::format("--target {}: tokenizer.model has {} tokens, but the model only {}",
                                   target_folder_.string(), tokenizer_->vocab_size(), target));
  }

  std::vector<Token> tokens_of(const traces::Prompt& prompt) const {
    if (prompt.tokens.empty() && !tokenizer_)
      throw UsageError(fmt::format("--prompts {}: a prompt is text, but there is no tokenizer.model in {}",
                                   prompts_file_.string(), target_folder_.string()));
    const std::vector<Token> tokens = prompt.tokens.empty() ? encoded(prompt.text) : prompt.tokens;
    const std::int64_t vocab = sim::config_of(*target_).vocab_size;
    for (const Token token : tokens)
      if (token < 0 || token >= vocab)
        throw UsageError(fmt::format("--prompts {}: a token is {}, but must be in [0, {}]", prompts_file_.string(),
                                     token, vocab - 1));
    return tokens;
  }

  fs::path target_folder_;
  fs::path draft_folder_;
  fs::path prompts_file_;
  Weights target_;
  Weights draft_;
  std::optional<sim::Tokenizer> tokenizer_;
};

// JSON ---------------------------------------------------------------------------------------------------------------

ordered_json estimate_json(const estimate::Estimate& e) {
  ordered_json interval;
  if (e.ci95) interval = {e.ci95->lo, e.ci95->hi};
  return {{"value", e.value}, {"ci95", interval}, {"method", e.method}};
}

ordered_json check_json(const Check& check) {
  return {{"name", check.name},
          {"expected", check.expected},
          {"measured", check.measured},
          {"deviation_standard_errors", number_or_null(check.deviation_standard_errors)},
          {"p_value", number_or_null(check.p_value)},
          {"passed", check.passed}};
}

const char* name_of(UniformityTest::Order order) {
  return order == UniformityTest::Order::by_ratio ? "ratio" : "probability";
}

ordered_json uniformity_json(const UniformityTest& test) {
  return {{"order", name_of(test.order)},
          {"slot", test.slot == 0 ? ordered_json("all") : ordered_json(fmt::format("{}", test.slot))},
          {"tokens", test.tokens},
          {"distance", number_or_null(test.distance)},
          {"p_value", number_or_null(test.p_value)},
          {"passed", test.passed}};
}

template <class Value, class Get>
ordered_json value_or_null(const std::optional<Value>& value, const Get& get) {
  return value ? ordered_json(get(*value)) : ordered_json();
}

ordered_json configuration_json(const Configuration& c) {
  using validation::Speedup;
  using validation::Timing;
  ordered_json checks = ordered_json::array();
  for (const Check& check : c.checks) checks.push_back(check_json(check));
  ordered_json uniformity = ordered_json::array();
  for (const UniformityTest& test : c.uniformity) uniformity.push_back(uniformity_json(test));
  const auto timing = [&](const auto& get) { return value_or_null(c.timing, get); };
  const auto speedup = [&](const auto& get) { return value_or_null(c.speedup, get); };
  return {{"task", c.task},
          {"temperature", c.temperature},
          {"gamma", c.gamma},
          {"sequences", c.sequences},
          {"steps", c.counters.steps},
          {"tokens", c.counters.tokens},
          {"drafted", c.counters.drafted},
          {"accepted", c.counters.accepted},
          {"alpha", estimate_json(c.alpha)},
          {"tokens_per_step",
           {{"iid", c.tokens_per_step.iid},
            {"iid_relative_error", c.tokens_per_step.iid_error()},
            {"replay", c.tokens_per_step.replay},
            {"measured", estimate_json(c.tokens_per_step.measured)}}},
          {"c", timing([](const Timing& t) { return t.c(); })},
          {"verify_factor", timing([](const Timing& t) { return t.verify_factor(); })},
          {"overhead", timing([](const Timing& t) { return t.overhead(); })},
          {"target_step_seconds", timing([](const Timing& t) { return t.target_step_seconds; })},
          {"draft_step_seconds", timing([](const Timing& t) { return t.draft_step_seconds; })},
          {"verify_seconds", timing([](const Timing& t) { return t.verify_seconds; })},
          {"overhead_seconds", timing([](const Timing& t) { return t.overhead_seconds; })},
          {"operations_factor",
           {{"theory", number_or_null(c.operations.theory)}, {"measured", number_or_null(c.operations.measured)}}},
          {"speedup",
           {{"theory", speedup([](const Speedup& s) { return s.theory; })},
            {"generalised", speedup([](const Speedup& s) { return s.generalised; })},
            {"measured", speedup([](const Speedup& s) { return s.measured; })}}},
          {"distribution_test",
           {{"smallest_p_value", number_or_null(c.smallest_p_value)},
            {"tests", c.tests},
            {"steps_z", number_or_null(c.steps_z)}}},
          {"uniformity", uniformity},
          {"checks", checks},
          {"passed", c.passed}};
}

ordered_json empty_json() {
  return {{"passed", nullptr},        {"planned_tests", nullptr}, {"test_level", nullptr},
          {"false_alarm_rate", nullptr}, {"configurations", ordered_json::array()}, {"show", nullptr}};
}

// Text ---------------------------------------------------------------------------------------------------------------

std::string fixed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::string with_half_width(const estimate::Estimate& e, int digits) {
  if (!e.ci95) return fixed(e.value, digits);
  return fmt::format("{} +-{}", fixed(e.value, digits), fixed((e.ci95->hi - e.ci95->lo) / 2, digits));
}

template <class Value, class Get>
std::string cell(const std::optional<Value>& value, int digits, const Get& get) {
  return value ? fixed(get(*value), digits) : "-";
}

std::string table_of(const validation::Report& report) {
  using validation::Speedup;
  using validation::Timing;
  using Align = TextTable::Align;
  TextTable table({{"task", Align::left}, {"T"}, {"gamma"}, {"alpha"}, {"Eq.1"}, {"replay"}, {"tokens/step"}, {"c"},
                   {"v"}, {"ops"}, {"Thm3.8"}, {"general"}, {"speedup"}, {"least p"}, {"z"}, {"ok"}});
  const auto same = [](double value) { return value; };
  for (const Configuration& c : report.configurations) {
    table.add_row({c.task, fmt::format("{}", c.temperature), fmt::format("{}", c.gamma), with_half_width(c.alpha, 3),
                   fixed(c.tokens_per_step.iid, 2), fixed(c.tokens_per_step.replay, 2),
                   with_half_width(c.tokens_per_step.measured, 2), cell(c.timing, 2, [](const Timing& t) { return t.c(); }),
                   cell(c.timing, 2, [](const Timing& t) { return t.verify_factor(); }),
                   cell(c.operations.measured, 2, same),
                   cell(c.speedup, 2, [](const Speedup& s) { return s.theory; }),
                   cell(c.speedup, 2, [](const Speedup& s) { return s.generalised; }),
                   cell(c.speedup, 2, [](const Speedup& s) { return s.measured; }),
                   c.smallest_p_value ? fmt::format("{:.1e}", *c.smallest_p_value) : "-", cell(c.steps_z, 1, same),
                   c.passed ? "yes" : "NO"});
  }
  return table.to_string();
}

std::vector<std::string> failures(const Configuration& c) {
  std::vector<std::string> lines;
  const std::string where = fmt::format("{}, T = {}, gamma = {}", c.task, c.temperature, c.gamma);
  for (const Check& check : c.checks) {
    if (check.passed) continue;
    lines.push_back(fmt::format("{}: {} expected {:.6g}, measured {:.6g}{}", where, check.name, check.expected,
                                check.measured,
                                check.deviation_standard_errors
                                    ? fmt::format(", {:.1f} standard errors", *check.deviation_standard_errors)
                                    : ""));
  }
  for (const UniformityTest& test : c.uniformity) {
    if (test.passed) continue;
    lines.push_back(fmt::format("{}: {} of the round is not distributed as the target's own (ordered by {}, p = {:.1e})",
                                where, test.slot == 0 ? "some slot" : fmt::format("slot {}", test.slot),
                                test.order == UniformityTest::Order::by_ratio ? "q/p" : "p", test.p_value.value_or(0)));
  }
  return lines;
}

std::string verdict(const validation::Report& report) {
  std::int64_t tests = 0;
  std::int64_t tokens = 0;
  double smallest = 1;
  std::vector<std::string> failed;
  for (const Configuration& c : report.configurations) {
    tests += c.tests;
    tokens += c.counters.tokens;
    smallest = std::min(smallest, c.smallest_p_value.value_or(1));
    for (const std::string& line : failures(c)) failed.push_back("  " + line);
  }
  const std::string facts = fmt::format(
      "{} configurations, {} tokens, {} statistical tests at level {:.1e} each (smallest p-value {:.1e}), so that a "
      "right sampler fails fewer than one run in 1000.", report.configurations.size(), tokens, tests, report.level,
      smallest);
  if (report.passed) return wrapped("Passed: speculative decoding agrees with the target and with theory in " + facts) + "\n";
  return wrapped("FAILED: speculative decoding does not agree with the target or with theory in " + facts) + "\n" +
         fmt::format("{}\n", fmt::join(failed, "\n"));
}

constexpr char legend[] =
    "alpha: mean of sum min(p, q), 95% interval. Tokens per step: Eq. (1) at alpha, the exact law on this text, and "
    "measured. c, v: a draft call and a verification over one plain step; ops: operations per token over plain "
    "decoding's. Speedup: Thm. 3.8 at (alpha, c), the same with v and overhead, and measured. least p: smallest "
    "p-value of all tests; z: steps against the exact law.";

// One line on a terminal's standard error, rewritten in place and removed at the end.
validation::Progress progress_line() {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [](double share) {
    if (share < 1)
      fmt::print(stderr, "\rspecdec: validating, {:3.0f}%", 100 * share);
    else
      fmt::print(stderr, "\r{:30}\r", "");
    std::fflush(stderr);
  };
}

// Commands -----------------------------------------------------------------------------------------------------------

Report run_validation(const ValidateOptions& options) {
  validation::Options run;
  run.gammas = gammas(options);
  run.temperatures = temperatures(options);
  run.tokens = options.tokens;
  run.max_new_tokens = options.max_new_tokens;
  run.top_k = options.top_k;
  run.top_p = options.top_p;
  run.timed_prompts = options.timed_prompts;
  run.seed = static_cast<std::uint64_t>(options.seed);
  run.threads = options.threads;
  for (const std::int64_t gamma : run.gammas)
    if (gamma >= options.max_new_tokens)
      refuse("--gamma", fmt::format("{}", gamma), fmt::format("below --max-new-tokens {}", options.max_new_tokens));
  std::optional<std::set<std::string>> tasks;
  if (options.tasks) {
    const std::vector<std::string> list = words("--tasks", *options.tasks);
    tasks.emplace(list.begin(), list.end());
  }

  const Material material(options);
  std::int64_t cut = 0;
  const std::vector<validation::Prompt> prompts =
      material.prompts(tasks, material.longest_prompt(options.max_new_tokens), cut);
  const validation::Report found = validation::validate(material.models(), prompts, run, progress_line());

  Report report;
  report.json = empty_json();
  report.json["passed"] = found.passed;
  report.json["planned_tests"] = found.planned_tests;
  report.json["test_level"] = found.level;
  report.json["false_alarm_rate"] = validation::run_level;
  for (const Configuration& c : found.configurations) report.json["configurations"].push_back(configuration_json(c));
  report.json["files"] = material.files();
  report.text = table_of(found) + "\n" + wrapped(legend) + "\n\n" + verdict(found);
  report.exit_code = found.passed ? success : check_failed;
  if (cut > 0)
    report.warnings.push_back({"prompts_cut", fmt::format("{} prompts were too long for the models' context and kept "
                                                          "their last tokens only", cut)});
  return report;
}

Report show_figure(const ValidateOptions& options) {
  const Material material(options);
  const sim::Tokenizer* const tokenizer = material.tokenizer();
  if (tokenizer == nullptr) throw UsageError("--show needs a tokenizer.model beside the target");
  if (options.prompt && options.prompt->empty()) refuse("--prompt", "empty", "a text");
  constexpr std::int64_t default_length = 48;
  const std::int64_t length =
      options.max_new_tokens == ValidateOptions{}.max_new_tokens ? default_length : options.max_new_tokens;
  const std::int64_t room = material.longest_prompt(length);
  std::int64_t cut = 0;
  std::vector<Token> prompt;
  if (options.prompt) {
    prompt = material.encoded(*options.prompt);
    if (static_cast<std::int64_t>(prompt.size()) > room)
      refuse("--prompt", fmt::format("{} tokens long", prompt.size()), fmt::format("at most {} tokens long", room));
  } else {
    std::optional<std::set<std::string>> tasks;
    if (options.task) tasks = std::set<std::string>{*options.task};
    prompt = material.prompts(tasks, room, cut).front().tokens;
  }

  const validation::ModelPair models = material.models();
  const validation::OwnedModel target = models.target(options.threads);
  const validation::OwnedModel draft = models.draft(options.threads);
  sim::DecodingOptions decoding;
  decoding.gamma = gammas(options).back();
  decoding.max_new_tokens = length;
  decoding.standardisation = {
      .temperature = temperatures(options).back(), .top_k = options.top_k, .top_p = options.top_p};
  const sim::RandomStream stream(static_cast<std::uint64_t>(options.seed), 0);
  const sim::Generation text = sim::decode_speculatively(target.ref(), draft.ref(), prompt, decoding, stream);

  Report report;
  std::vector<FigureStep> steps;
  ordered_json step_list = ordered_json::array();
  std::size_t at = 0;
  for (const sim::Step& step : text.steps) {
    FigureStep drawn;
    for (std::int64_t j = 0; j < step.accepted; ++j) drawn.accepted += tokenizer->piece(text.tokens[at++]);
    if (step.rejected >= 0) drawn.rejected = tokenizer->piece(step.rejected);
    drawn.extra = tokenizer->piece(text.tokens[at++]);
    step_list.push_back({{"drafted", step.drafted},
                         {"accepted", step.accepted},
                         {"accepted_text", visible(drawn.accepted)},
                         {"rejected_text", step.rejected >= 0 ? ordered_json(visible(drawn.rejected)) : ordered_json()},
                         {"target_text", visible(drawn.extra)}});
    steps.push_back(std::move(drawn));
  }
  report.json = empty_json();
  report.json["show"] = {{"prompt", visible(tokenizer->decode(prompt))},
                         {"temperature", decoding.standardisation.temperature},
                         {"gamma", decoding.gamma},
                         {"tokens", text.counters.tokens},
                         {"steps", step_list}};
  report.json["files"] = material.files();
  const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  report.text = fmt::format(
      "{}\n\n{}\n{} tokens by {} runs of the target; gamma = {}, temperature {}. {}.\n",
      visible(tokenizer->decode(prompt)), figure_of_steps(steps, colour), text.counters.tokens, text.counters.steps,
      decoding.gamma, decoding.standardisation.temperature,
      colour ? "Green: accepted drafts; red: the rejected one; blue: the target's own token"
             : "<accepted drafts>[-the rejected one-]{+the target's own token+}");
  return report;
}

std::function<Report()> setup(Options& options) {
  const auto values = std::make_shared<ValidateOptions>();
  options.group("Models and prompts");
  options.text("--target", values->target, "DIR", "target: config.json, model.safetensors (default: the shipped pair)");
  options.text("--draft", values->draft, "DIR", "draft, with the target's vocabulary");
  options.text("--prompts", values->prompts, "FILE",
               "JSON lines of {\"task\", \"text\"} with a tokenizer.model beside the target, else {\"task\", \"tokens\"}");
  options.group("What to run");
  options.text("--tasks", values->tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.text("--temperature", values->temperature, "LIST", "temperatures, 0 for greedy decoding");
  options.text("-k,--gamma,--num-speculative-tokens", values->gamma, "LIST", "drafted tokens per step");
  options.integer("--top-k", values->top_k, {.lo = 0}, "keep the K most probable tokens; 0 keeps all");
  options.number("--top-p", values->top_p, {.lo = 0, .hi = 1, .lo_open = true}, "keep this share of the probability");
  options.integer("--tokens", values->tokens, {.lo = 1, .hi = 1'000'000'000}, "tokens per configuration");
  options.integer("--max-new-tokens", values->max_new_tokens, {.lo = 1, .hi = 1'000'000},
                  "tokens per sequence (48 with --show)");
  options.integer("--timed-prompts", values->timed_prompts, {.lo = 0, .hi = 1'000'000},
                  "prompts per configuration that are decoded for the clock");
  options.integer("--seed", values->seed, {}, "seed of all random numbers");
  options.integer("--threads", values->threads, {.lo = 1, .hi = 1024},
                  "sequences decoded at a time, and threads of a model while the clock runs");
  options.group("Figure 1");
  options.flag("--show", values->show, "draw the steps over one prompt instead, for the last gamma and temperature");
  options.text("--prompt", values->prompt, "TEXT", "text to continue");
  options.text("--task", values->task, "NAME", "or the first prompt of this task");
  options.footer("specdec validate\nspecdec validate --target big --draft small --prompts prompts.jsonl --gamma 3,5\n"
                 "specdec validate --show --task code --gamma 5");
  return [values] {
    if (!values->show && (values->prompt || values->task)) throw UsageError("--prompt and --task go with --show");
    if (values->prompt && values->task) throw UsageError("--prompt and --task exclude each other");
    return values->show ? show_figure(*values) : run_validation(*values);
  };
}

}  // namespace

Command validate_command() {
  return {"validate",
          "Run Algorithm 1 on a pair of transformers and hold it against theory.",
          {{"configurations", "/configurations"}, {"show", "/show/steps"}},
          setup};
}

}  // namespace specdec::cli
