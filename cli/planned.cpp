#include "cli/planned.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <utility>

#include "cli/stated_acceptance.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::cli {
namespace {

using planner::Acceptance;
using planner::Cost;
using planner::DraftWords;

/// True for an engine's log or scrape.
bool is_served_log(const std::string& file) {
  const traces::FileHead head = traces::FileHead::of(file);
  return traces::has_engine_windows(head) || traces::prometheus_text_format().recognises(head);
}

/// True if the files of --cost are engines' logs or scrapes, and none is a table.
bool are_served_logs(const std::vector<std::string>& files) {
  const auto log = std::find_if(files.begin(), files.end(), is_served_log);
  if (log == files.end()) return false;
  const auto table = std::find_if_not(files.begin(), files.end(), is_served_log);
  if (table == files.end()) return true;
  throw UsageError(
      fmt::format("--cost is {}, an engine's log or scrape, and {}, which is neither, but must be logs and scrapes "
                  "alone or tables of times alone",
                  *log, *table));
}

/// The cost of a draft as its own options state it.
struct OwnCost {
  std::optional<double> c;
  std::vector<std::string> files;
};

Cost of_models_or_constants(const PlanOptions& o, const DraftWords& draft, const OwnCost& own) {
  const auto refuse_own = [&](bool given, std::string_view key, std::string_view why) {
    if (given) throw UsageError(fmt::format("{} is given, but {}", option_of(draft, key), why));
  };
  if (!o.roofline.hardware) {
    refuse_own(!own.files.empty(), "cost", "needs --cost beside it");
    planner::StepTimes times = o.cost.times();
    times.c = own.c;
    return Cost::of_constants(times, draft, o.model.value_or(""));
  }
  refuse_own(own.c.has_value(), "c", "--hardware prices rounds");
  refuse_own(!own.files.empty(), "cost", "--hardware prices rounds");
  return hardware_cost(o.roofline, o.model, draft);
}

/// Prices the drafts of one target, whose files are read once.
class Pricing {
 public:
  explicit Pricing(const PlanOptions& o) : o_(o), logs_(!o.cost_files.empty() && are_served_logs(o.cost_files)) {
    if (!o.cost_files.empty() && !logs_) timings_.emplace(o.cost_files);
  }

  Cost cost_of(const DraftWords& draft, const OwnCost& own) const {
    if (logs_) return by_logs(draft, own);
    if (timings_) {
      return Cost::of_timings(*timings_, {o_.model, draft, own.c, own.files, {}, o_.overhead_seconds});
    }
    return of_models_or_constants(o_, draft, own);
  }

 private:
  Cost by_logs(const DraftWords& draft, const OwnCost& own) const {
    const auto refuse_own = [&](bool given, std::string_view key) {
      if (!given) return;
      throw UsageError(fmt::format("{} is given, but the log of --cost holds that time", option_of(draft, key)));
    };
    if (!o_.drafts.empty()) throw UsageError("--draft is given, but the log of --cost is of one draft");
    refuse_own(own.c.has_value(), "c");
    refuse_own(!own.files.empty(), "draft-cost");
    return Cost::of_logs(o_.cost_files,
                         {.model = o_.model, .draft = draft, .at = o_.at, .overhead_seconds = o_.overhead_seconds});
  }

  const PlanOptions& o_;
  bool logs_;
  std::optional<planner::Timings> timings_;
};

/// "NAME:key=value,key=value".
struct DraftText {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;

  std::optional<std::string> one(std::string_view key) const {
    std::optional<std::string> found;
    for (const auto& [its_key, value] : values) {
      if (its_key != key) continue;
      if (found) throw UsageError(fmt::format("--draft {}: {} is given twice, but must be given once", name, key));
      found = value;
    }
    return found;
  }
  std::vector<std::string> all(std::string_view key) const {
    std::vector<std::string> found;
    for (const auto& [its_key, value] : values) {
      if (its_key == key) found.push_back(value);
    }
    return found;
  }
  std::string prefix() const { return fmt::format("--draft {}: ", name); }
};

DraftText draft_text(const std::string& text) {
  constexpr std::array<std::string_view, 14> keys = {"alpha",     "acceptance-length",
                                                     "at",        "rounds",
                                                     "published", "counters",
                                                     "trace",     "array",
                                                     "c",         "cost",
                                                     "kind",      "model",
                                                     "tp",        "rule"};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) refuse("--draft", text, "NAME:KEY=VALUE,...");
  DraftText draft;
  draft.name = text.substr(0, colon);
  for (const std::string_view part : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (equals == std::string_view::npos && !draft.values.empty() && draft.values.back().first == "acceptance-length") {
      // Of a curve, 1:1.81,2:2.40.
      draft.values.back().second += fmt::format(",{}", part);
      continue;
    }
    if (equals == std::string_view::npos || std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse(fmt::format("--draft {}", draft.name), part,
             fmt::format("KEY=VALUE with a key of {}", fmt::join(keys, ", ")));
    }
    draft.values.emplace_back(key, part.substr(equals + 1));
  }
  return draft;
}

/// With its own acceptance in the place of that of all.
PlanOptions with_own_acceptance(const DraftText& text, const PlanOptions& o) {
  const std::string prefix = text.prefix();
  PlanOptions own = o;
  own.alpha = text.one("alpha");
  own.acceptance_length = text.one("acceptance-length");
  own.published = text.one("published");
  own.at.reset();
  if (const auto at = text.one("at")) own.at = parse_integer(prefix + "at", *at, 1, planner::largest_max_gamma);
  own.rounds.reset();
  if (const auto rounds = text.one("rounds")) {
    own.rounds = parse_number(prefix + "rounds", *rounds, {1.0, 1e15});
    if (!own.acceptance_length) throw UsageError(prefix + "rounds is given, but goes with acceptance-length only");
  }
  own.counters = text.all("counters");
  own.trace = text.all("trace");
  own.draft_array = text.one("array");
  if (own.draft_array && own.trace.empty())
    throw UsageError(fmt::format("{}array is given, but goes with trace only", prefix));
  own.acceptance = text.one("rule").value_or(o.acceptance);
  if ((o.mix || o.by) && own.counters.empty() && own.trace.empty()) {
    throw UsageError(
        fmt::format("{} is given, but draft {} states one acceptance for all requests: counters or trace "
                    "tell that of groups",
                    o.mix ? "--mix" : "--by", text.name));
  }
  const int given = own.alpha.has_value() + own.acceptance_length.has_value() + own.published.has_value() +
                    !own.counters.empty() + !own.trace.empty();
  if (given == 1 || (given == 0 && (text.one("model") || text.one("kind")))) return own;
  throw UsageError(fmt::format(
      "{}{} of alpha, acceptance-length, published, counters and trace are given, but must be one", prefix, given));
}

/// @param at  --at, which holds for every draft that does not state its own
Acceptance acceptance_of(const DraftText& text, PlanOptions own, std::optional<std::int64_t> at,
                         std::int64_t max_gamma) {
  if (!own.counters.empty() || !own.trace.empty()) {
    if (!own.at) own.at = at;
    return cli::acceptance_of(own, {max_gamma});
  }
  try {
    return stated_acceptance(own);
  } catch (const UsageError& error) {
    throw UsageError(text.prefix() + error.with_options());
  }
}

planner::Draft draft_of(const DraftText& text, const PlanOptions& o, std::int64_t max_gamma, const Pricing& pricing) {
  const std::string prefix = text.prefix();
  DraftWords words;
  words.name = text.name;
  words.model = text.one("model");
  if (const auto kind = text.one("kind")) {
    words.kind = cost::draft_kind_named(*kind);
    if (!words.kind) refuse(prefix + "kind", *kind, "one of model, mirrored, eagle, mtp, parallel, ngram, suffix");
  }
  if (const auto tp = text.one("tp")) words.tensor_parallel = parse_integer(prefix + "tp", *tp, 1, 1024);
  OwnCost own;
  if (const auto c = text.one("c")) own.c = parse_number(prefix + "c", *c, {});
  own.files = text.all("cost");
  const PlanOptions stated = with_own_acceptance(text, o);
  if (!stated.states_acceptance()) {
    Cost cost = pricing.cost_of(words, own);
    Acceptance prior = Acceptance::prior_for(cost, rule_of(stated));
    return {text.name, std::move(prior), std::move(cost)};
  }
  Acceptance acceptance = acceptance_of(text, stated, o.at, max_gamma);
  return {text.name, std::move(acceptance), pricing.cost_of(words, own)};
}

OwnCost own_cost(const PlanOptions& o) { return {o.cost.c, o.draft_cost_files}; }

}  // namespace

PlanOptions with_scrapes(PlanOptions o, const std::vector<std::string>& scrapes) {
  if (o.states_acceptance() || !o.drafts.empty() || !o.bench.empty())
    throw UsageError("--scrape is given beside another acceptance or runs, but is the acceptance of the server");
  o.counters = scrapes;
  if (o.cost_files.empty() ? !o.states_cost() : are_served_logs(o.cost_files))
    o.cost_files.insert(o.cost_files.end(), scrapes.begin(), scrapes.end());
  return o;
}

Acceptance acceptance_of(const PlanOptions& o, const AcceptanceReading& reading) {
  if (!o.counters.empty()) {
    planner::CountersOptions how;
    if (reading.picks_model) how.model = o.model;
    how.at = o.at;
    how.acceptance = rule_of(o);
    how.kind = o.draft().kind;
    how.by_request = reading.by_request;
    if (o.mix) how.mix = planner::traffic_mix(o.by, *o.mix, o.mix_by == "requests");
    return Acceptance::from_counters(o.counters, how);
  }
  if (o.trace.empty()) return stated_acceptance(o);
  planner::RecordingOptions how;
  how.draft_array = o.draft_array;
  how.acceptance = rule_of(o);
  how.engine = o.question.emit;
  how.max_gamma = reading.max_gamma;
  how.by_request = reading.by_request;
  if (o.mix) {
    how.mix = planner::traffic_mix(o.by, *o.mix, o.mix_by == "requests");
  } else if (o.by) {
    how.context_bounds = planner::context_bounds(*o.by);
  }
  how.progress = o.progress;
  return Acceptance::from_recording(o.trace, how);
}

Cost cost_of(const PlanOptions& o, const DraftWords& draft) { return Pricing(o).cost_of(draft, own_cost(o)); }

Cost hardware_cost(const RooflineArguments& a, const std::optional<std::string>& model, const DraftWords& draft,
                   bool drafts) {
  if (!model) throw UsageError("--model is missing: --hardware prices it");
  planner::HardwareOptions options = hardware_options(a);
  const std::optional<std::int64_t> of_all = options.draft.tensor_parallel;
  options.draft = draft;
  if (!options.draft.tensor_parallel) options.draft.tensor_parallel = of_all;
  options.drafts = drafts;
  if (a.shared_costs) return a.shared_costs->of_hardware(*a.hardware, *model, options);
  return Cost::of_hardware(*a.hardware, *model, options);
}

planner::PlanQuestion question_of(const PlanOptions& o) {
  planner::PlanQuestion q = o.question;
  if (q.emit) q.points_only = false;
  if (o.emit_file) q.config_file = *o.emit_file;
  return q;
}

planner::BenchFiles bench_files(const PlanOptions& o) {
  planner::BenchFiles files{o.bench, o.holdout, o.model, o.draft()};
  // With --acceptance-length or --acceptance-rate it is the gamma of that.
  if (!o.acceptance_length && !o.acceptance_rate) files.at = o.at;
  if (o.roofline.hardware) files.hardware = hardware_cost(o.roofline, o.model, o.draft());
  files.overhead_seconds = o.overhead_seconds;
  files.overhead = o.cost.overhead;
  files.acceptance = rule_of(o);
  return files;
}

planner::Plan planned_of_runs(const PlanOptions& o, const planner::BenchFiles& files) {
  const planner::PlanQuestion question = question_of(o);
  std::optional<Acceptance> acceptance;
  if (o.states_acceptance())
    acceptance = acceptance_of(o, {question.largest_compared_gamma(planner::usual_max_gamma_of_runs)});
  return planner::plan_runs(files, acceptance, question);
}

planner::Plan planned(const PlanOptions& o) {
  if (!o.bench.empty()) return planned_of_runs(o, bench_files(o));
  const planner::PlanQuestion question = question_of(o);
  const Pricing pricing(o);
  const std::int64_t max_gamma = question.largest_compared_gamma(planner::usual_max_gamma);
  if (!o.drafts.empty()) {
    std::vector<planner::Draft> drafts;
    for (const std::string& text : o.drafts) drafts.push_back(draft_of(draft_text(text), o, max_gamma, pricing));
    return planner::plan(std::move(drafts), question);
  }
  if (o.leaves_acceptance_to_draft()) {
    const Cost cost = pricing.cost_of(o.draft(), own_cost(o));
    return planner::plan(Acceptance::prior_for(cost, rule_of(o)), cost, question);
  }
  const Acceptance acceptance = acceptance_of(o, {max_gamma});
  return planner::plan(acceptance, pricing.cost_of(o.draft(), own_cost(o)), question);
}

}  // namespace specdec::cli
