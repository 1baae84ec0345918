#include "sim/synthetic_traces.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/full_batch.hpp"
#include "sim/synthetic_worlds.hpp"
#include "sim/variates.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view trace_function = "synthetic_trace";
/// For the scalar laws: the certain token, and two for the draft alone.
constexpr std::int64_t scalar_vocab = 3;

std::string text_of(const BetaLaw& law) {
  return fmt::format("beta(alpha={}, concentration={}, emitted=certain)", law.alpha, law.concentration);
}
std::string text_of(const MarkovLaw& law) {
  return fmt::format("markov(betas={}, stay={}, emitted=certain)", law.betas, law.stay);
}
std::string text_of(const LogitNoiseLaw& law) {
  return fmt::format("logit-noise(alpha={}, vocab={}, contexts={}, exponent={})", law.alpha, law.vocab, law.contexts,
                     law.exponent);
}
std::string text_of(const DirichletLaw& law) {
  return fmt::format("dirichlet(alpha={}, vocab={}, contexts={}, concentration={})", law.alpha, law.vocab, law.contexts,
                     law.concentration);
}

/// Long-run shares of the states: pi_i (1 - stay_i) is the same for all, since a move goes to each other state with the
/// same probability.
std::vector<double> stationary(const MarkovLaw& law) {
  std::vector<double> shares;
  double sum = 0;
  for (const double stay : law.stay) sum += shares.emplace_back(1 / (1 - stay));
  for (double& share : shares) share /= sum;
  return shares;
}

/// The parts of a task's positions, whatever its law.
class TaskMaker {
 public:
  TaskMaker(SyntheticTask task, std::uint64_t seed, std::uint64_t number, std::int64_t threads)
      : task_(std::move(task)) {
    std::visit([&](const auto& law) { prepare(law, seed, number, threads); }, task_.law);
  }

  const std::string& name() const { return task_.name; }
  std::string law() const {
    return std::visit([](const auto& law) { return text_of(law); }, task_.law);
  }
  double alpha() const { return alpha_; }
  /// Null for a scalar law.
  const SyntheticWorld* world() const { return world_ ? &*world_ : nullptr; }
  bool has_states() const { return std::holds_alternative<MarkovLaw>(task_.law); }

  /// The state at a place, given the one before it.
  std::size_t next_state(const RandomStream& stream, std::int64_t place, std::size_t before) const {
    const auto& law = std::get<MarkovLaw>(task_.law);
    const double u = Variates(stream, place).uniform();
    if (place == 0) return at_share(u);
    if (u < law.stay[before]) return before;
    const double moved = (u - law.stay[before]) / (1 - law.stay[before]);
    const std::size_t others = law.betas.size() - 1;
    const std::size_t other = std::min(static_cast<std::size_t>(moved * static_cast<double>(others)), others - 1);
    return other < before ? other : other + 1;
  }

  /// beta at a place of a scalar law. `variates` keeps the next free slot.
  double beta(std::size_t state, Variates& variates) const {
    if (const auto* markov = std::get_if<MarkovLaw>(&task_.law)) return markov->betas[state];
    const auto& law = std::get<BetaLaw>(task_.law);
    const double rejected = 1 - law.alpha;
    if (law.alpha == 0 || rejected == 0) return law.alpha;
    if (law.concentration == 0) return variates.uniform() < law.alpha ? 1 : 0;
    return variates.beta(law.alpha * law.concentration, rejected * law.concentration);
  }

 private:
  void prepare(const BetaLaw& law, std::uint64_t, std::uint64_t, std::int64_t) {
    core::require_in(trace_function, "alpha", law.alpha, 0, 1);
    core::require_in(trace_function, "concentration", law.concentration, 0, 1e12);
    alpha_ = law.alpha;
  }
  void prepare(const MarkovLaw& law, std::uint64_t, std::uint64_t, std::int64_t) {
    core::require_same_size(trace_function, "betas", law.betas.size(), "stay", law.stay.size());
    core::require_in(trace_function, "states", static_cast<std::int64_t>(law.betas.size()), 2, 1024);
    for (const double beta : law.betas) core::require_in(trace_function, "beta", beta, 0, 1);
    constexpr double below_one = 1 - std::numeric_limits<double>::epsilon();
    for (const double stay : law.stay) core::require_in(trace_function, "stay", stay, 0, below_one);
    shares_ = stationary(law);
    for (std::size_t i = 0; i < shares_.size(); ++i) alpha_ += shares_[i] * law.betas[i];
  }
  template <class Law>
  void prepare(const Law& law, std::uint64_t seed, std::uint64_t number, std::int64_t threads) {
    world_.emplace(law, seed, number, threads);
    alpha_ = world_->alpha();
  }

  std::size_t at_share(double u) const {
    std::size_t state = 0;
    for (double below = shares_[0]; state + 1 < shares_.size() && u >= below; below += shares_[state]) ++state;
    return state;
  }

  SyntheticTask task_;
  double alpha_ = 0;
  std::vector<double> shares_;
  std::optional<SyntheticWorld> world_;
};

bool mix(const SyntheticWorld* a, const SyntheticWorld* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->vocab() == b->vocab() && a->space() == b->space();
}

class SyntheticTrace : public traces::PositionSource {
 public:
  SyntheticTrace(std::vector<SyntheticTask> tasks, const SyntheticOptions& options) : options_(options) {
    core::require_in(trace_function, "sequences", options.sequences, 1, std::int64_t{1} << 40U);
    core::require_in(trace_function, "tokens", options.tokens, 1, RandomStream::max_round + 1);
    core::require_in(trace_function, "sequences times tokens",
                     static_cast<double>(options.sequences) * static_cast<double>(options.tokens), 1, 0x1p53);
    core::require_in(trace_function, "threads", options.threads, 1, 1024);
    if (tasks.empty())
      throw std::invalid_argument(fmt::format("{}: tasks are none, but must be one or more", trace_function));
    for (SyntheticTask& task : tasks)
      makers_.emplace_back(std::move(task), options.seed, makers_.size(), options.threads);
    for (const TaskMaker& maker : makers_) {
      if (mix(maker.world(), makers_.front().world())) continue;
      throw std::invalid_argument(fmt::format("{}: the law {} does not mix with {}: they differ in what is recorded",
                                              trace_function, maker.law(), makers_.front().law()));
    }
    describe();
  }

  const traces::TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {}; }
  std::string format() const override { return "synthetic"; }
  std::optional<std::int64_t> positions() const override { return options_.sequences * options_.tokens; }

  bool read(traces::PositionBatch& batch) override {
    made_.first += made_.size;
    const std::int64_t size = std::min(batch_positions(), options_.sequences * options_.tokens - made_.first);
    if (size == 0) return false;
    resize(static_cast<std::size_t>(size));
    number_positions();
    constexpr std::int64_t block = 2048;
    core::for_each_index((size + block - 1) / block, options_.threads, [&](std::int64_t number, std::int64_t) {
      const std::int64_t end = std::min(size, (number + 1) * block);
      for (std::int64_t i = number * block; i < end; ++i) make(static_cast<std::size_t>(i));
    });
    batch = made_.view();
    return true;
  }

 private:
  bool scalar() const { return makers_.front().world() == nullptr; }

  std::int64_t batch_positions() const {
    if (scalar()) return std::int64_t{1} << 18U;
    constexpr std::int64_t row_bytes = std::int64_t{32} << 20U;
    return std::max<std::int64_t>(1, row_bytes / (8 * makers_.front().world()->vocab()));
  }

  const TaskMaker& maker_of(std::int64_t sequence) const {
    return makers_[static_cast<std::size_t>(sequence) % makers_.size()];
  }

  void describe() {
    const bool named = makers_.size() > 1 || !makers_.front().name().empty();
    metadata_.vocab_size = scalar() ? scalar_vocab : makers_.front().world()->vocab();
    metadata_.temperature = 1;
    metadata_.target_model = "synthetic target";
    metadata_.draft_model = "synthetic draft";
    metadata_.engine = "specdec trace generate";
    metadata_.acceptance = traces::AcceptanceRule::rejection;
    metadata_.logprob_space = traces::LogprobSpace::raw;
    metadata_.path = traces::TextSource::target;
    const auto tasks = static_cast<std::int64_t>(makers_.size());
    double alpha = 0;
    std::vector<std::string> laws;
    for (std::int64_t i = 0; i < tasks; ++i) {
      const TaskMaker& maker = makers_[static_cast<std::size_t>(i)];
      const std::int64_t sequences = options_.sequences / tasks + (i < options_.sequences % tasks ? 1 : 0);
      alpha += maker.alpha() * static_cast<double>(sequences) / static_cast<double>(options_.sequences);
      laws.push_back(maker.law());
      if (!named) continue;
      metadata_.task_names.push_back(maker.name());
      metadata_.other["truth.alpha." + maker.name()] = fmt::format("{}", maker.alpha());
      metadata_.other["truth.law." + maker.name()] = maker.law();
    }
    metadata_.other["truth.alpha"] = fmt::format("{}", alpha);
    metadata_.other["truth.law"] = fmt::format("{}", fmt::join(laws, " + "));
    metadata_.other["truth.seed"] = fmt::format("{}", options_.seed);
  }

  void resize(std::size_t size) {
    made_.size = static_cast<std::int64_t>(size);
    made_.sequence.resize(size);
    made_.place.resize(size);
    made_.task.resize(metadata_.task_names.empty() ? 0 : size);
    made_.token.resize(size);
    state_.resize(size);
    if (scalar()) {
      made_.target_token_logprob.resize(size);
      made_.draft_token_logprob.resize(size);
      made_.overlap.resize(size);
      made_.target_token_rank.resize(size);
      made_.draft_token_rank.resize(size);
    } else {
      made_.tier = traces::Tier::full;
      made_.space = makers_.front().world()->space();
      made_.vocab = makers_.front().world()->vocab();
      made_.target_rows.resize(size * static_cast<std::size_t>(made_.vocab));
      made_.draft_rows.resize(made_.target_rows.size());
    }
  }

  /// Assigns sequences, places and the states of chains, one after the other.
  void number_positions() {
    std::int64_t sequence = made_.first / options_.tokens;
    std::int64_t place = made_.first % options_.tokens;
    for (std::size_t i = 0; i < made_.sequence.size(); ++i) {
      made_.sequence[i] = sequence;
      made_.place[i] = place;
      if (!made_.task.empty())
        made_.task[i] = static_cast<std::int32_t>(sequence % static_cast<std::int64_t>(makers_.size()));
      const TaskMaker& maker = maker_of(sequence);
      if (maker.has_states()) last_state_ = maker.next_state(stream_of(sequence), place, last_state_);
      state_[i] = last_state_;
      if (++place < options_.tokens) continue;
      place = 0;
      ++sequence;
    }
  }

  RandomStream stream_of(std::int64_t sequence) const { return {options_.seed, static_cast<std::uint64_t>(sequence)}; }

  void make(std::size_t i) {
    const RandomStream stream = stream_of(made_.sequence[i]);
    // Slot 0 is used for the state.
    Variates variates(stream, made_.place[i], 1);
    const TaskMaker& maker = maker_of(made_.sequence[i]);
    if (maker.world() == nullptr) return make_scalar(i, maker, variates);
    const SyntheticWorld& world = *maker.world();
    const auto context = std::min(static_cast<std::int64_t>(variates.uniform() * static_cast<double>(world.contexts())),
                                  world.contexts() - 1);
    made_.token[i] = world.sample(context, variates.uniform());
    const auto vocab = static_cast<std::ptrdiff_t>(world.vocab());
    const auto at = static_cast<std::ptrdiff_t>(i) * vocab;
    std::copy_n(world.target_row(context).data(), vocab, made_.target_rows.begin() + at);
    std::copy_n(world.draft_row(context).data(), vocab, made_.draft_rows.begin() + at);
  }

  void make_scalar(std::size_t i, const TaskMaker& maker, Variates& variates) {
    const double beta = maker.beta(state_[i], variates);
    made_.overlap[i] = static_cast<float>(beta);
    made_.token[i] = 0;
    made_.target_token_logprob[i] = 0;
    made_.draft_token_logprob[i] = static_cast<float>(std::log(beta));
    made_.target_token_rank[i] = 1;
    made_.draft_token_rank[i] = beta >= 0.5 ? 1 : 2;
  }

  SyntheticOptions options_;
  std::vector<TaskMaker> makers_;
  traces::TraceMetadata metadata_;

  std::size_t last_state_ = 0;
  FullBatch made_;
  std::vector<std::size_t> state_;
};

}  // namespace

std::unique_ptr<traces::PositionSource> synthetic_trace(std::vector<SyntheticTask> tasks,
                                                        const SyntheticOptions& options) {
  return std::make_unique<SyntheticTrace>(std::move(tasks), options);
}

}  // namespace specdec::sim
