#include "sim/serving/serving_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "analysis/core/checks.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view simulation_function = "simulate_serving";
constexpr std::int64_t largest_length = std::int64_t{1} << 30;
constexpr std::int64_t largest_gamma = 1024;

std::int64_t require_schedule(const std::vector<GammaFrom>& schedule) {
  if (schedule.empty()) throw std::invalid_argument(fmt::format("{}: schedule is empty", simulation_function));
  core::require_in(simulation_function, "batch_low of the schedule's first stretch", schedule.front().batch_low, 1, 1);
  std::int64_t lowest = 1;
  std::int64_t most = 0;
  for (const GammaFrom& stretch : schedule) {
    core::require_in(simulation_function, "batch_low of a stretch of the schedule", stretch.batch_low, lowest,
                     std::numeric_limits<std::int64_t>::max() - 1);
    core::require_in(simulation_function, "gamma", stretch.gamma, 0, largest_gamma);
    lowest = stretch.batch_low + 1;
    most = std::max(most, stretch.gamma);
  }
  return most;
}

void require_request(const SimulatedRequest& request, std::size_t i, double before) {
  const auto legal = [](std::int64_t tokens) { return 1 <= tokens && tokens <= largest_length; };
  const double arrival = request.arrival_seconds;
  if (before <= arrival && arrival <= core::largest_double && legal(request.prompt_tokens) &&
      legal(request.output_tokens))
    return;
  core::require_in(simulation_function, fmt::format("arrival_seconds of request {}", i), arrival, before,
                   core::largest_double);
  core::require_in(simulation_function, fmt::format("prompt_tokens of request {}", i), request.prompt_tokens, 1,
                   largest_length);
  core::require_in(simulation_function, fmt::format("output_tokens of request {}", i), request.output_tokens, 1,
                   largest_length);
}

/// The blocks that a request holds before its last round, including drafts and look-ahead slots, must exist.
void require_fits(const SimulatedRequest& request, std::size_t i, const ServingEngine& engine, std::int64_t gamma) {
  const std::int64_t rounds_slots = request.output_tokens > 1 ? 2 * gamma : gamma;
  const std::int64_t tokens = request.prompt_tokens + request.output_tokens - 1 + rounds_slots;
  const std::int64_t blocks = (tokens + engine.block_size - 1) / engine.block_size;
  if (blocks <= engine.cache_blocks) return;
  const std::string name = fmt::format("request {} ({} tokens of prompt, {} of output, {} slots for drafts)", i,
                                       request.prompt_tokens, request.output_tokens, rounds_slots);
  throw CacheTooSmall(fmt::format("{}: {} needs {} blocks of {} tokens, but the cache has {}", simulation_function,
                                  name, blocks, engine.block_size, engine.cache_blocks),
                      name, blocks * engine.block_size, engine.cache_blocks * engine.block_size);
}

void require_rates(const std::vector<double>& conditional) {
  for (const double rate : conditional) core::require_in(simulation_function, "conditional acceptance", rate, 0, 1);
}

void require_laws(const std::vector<RequestAcceptance>& laws) {
  for (const RequestAcceptance& law : laws) {
    require_rates(law.conditional);
    std::int64_t lowest = 1;
    for (const RequestAcceptance::FromContext& part : law.from_contexts) {
      core::require_in(simulation_function, "context from which rates hold", part.tokens, lowest, largest_length);
      require_rates(part.conditional);
      lowest = part.tokens + 1;
    }
    if (contexts_of(law) != contexts_of(laws.front())) {
      throw std::invalid_argument(fmt::format(
          "{}: acceptance changes at different contexts, but must at the same ones in all laws", simulation_function));
    }
  }
}

void require_legal(const ServingQuestion& question) {
  const ServingEngine& engine = question.engine;
  if (question.requests.empty()) throw std::invalid_argument(fmt::format("{}: requests is empty", simulation_function));
  if (!question.cost) throw std::invalid_argument(fmt::format("{}: cost is null", simulation_function));
  const std::int64_t gamma = require_schedule(engine.schedule);
  if (gamma > 0 && question.acceptance.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: acceptance is empty, but the schedule drafts {} tokens", simulation_function, gamma));
  }
  require_laws(question.acceptance);
  core::require_in(simulation_function, "max_num_seqs", engine.max_num_seqs, 1,
                   std::numeric_limits<std::int64_t>::max());
  core::require_in(simulation_function, "max_num_batched_tokens", engine.max_num_batched_tokens, 1,
                   std::numeric_limits<std::int64_t>::max());
  core::require_in(simulation_function, "block_size", engine.block_size, 1, std::int64_t{1} << 20);
  core::require_in(simulation_function, "cache_blocks", engine.cache_blocks, 1, std::int64_t{1} << 40);
  core::require_in(simulation_function, "prefix_cache_hit_rate", engine.prefix_cache_hit_rate, 0,
                   std::nextafter(1.0, 0.0));
  if (engine.shared_prefixes) {
    core::require_in(simulation_function, "shared_prefixes", *engine.shared_prefixes, 1,
                     std::numeric_limits<std::int64_t>::max());
  }
  if (question.clients) {
    core::require_in(simulation_function, "clients", *question.clients, 1, std::numeric_limits<std::int64_t>::max());
  }
  core::require_in(simulation_function, "outside_seconds", question.outside_seconds, 0, core::largest_double);
  core::require_in(simulation_function, "warm_up_share", question.warm_up_share, 0, 0.4);
  double before = 0;
  for (std::size_t i = 0; i < question.requests.size(); ++i) {
    const SimulatedRequest& request = question.requests[i];
    require_request(request, i, before);
    require_fits(request, i, engine, gamma);
    before = request.arrival_seconds;
  }
}

}  // namespace

std::int64_t gamma_at(std::span<const GammaFrom> schedule, double batch) {
  std::int64_t gamma = 0;
  for (const GammaFrom& stretch : schedule) {
    if (static_cast<double>(stretch.batch_low) > batch) break;
    gamma = stretch.gamma;
  }
  return gamma;
}

std::int64_t largest_gamma_of(std::span<const GammaFrom> schedule) {
  return schedule.empty() ? 0 : std::ranges::max(schedule, {}, &GammaFrom::gamma).gamma;
}

ServingResult simulate_serving(const ServingQuestion& question) { return simulate_serving(question, RunOptions()); }

ServingResult simulate_serving(const ServingQuestion& question, const RunOptions& options) {
  require_legal(question);
  RequestDraws draws(question.requests, question.seed, 0);
  RequestRounds rounds(question.requests, question.acceptance, question.engine, draws, 0);
  return run_serving(question, rounds, options);
}

ServingResult simulate_serving(const ServingQuestion& question, RequestRounds& rounds, const RunOptions& options) {
  require_legal(question);
  return run_serving(question, rounds, options);
}

}  // namespace specdec::sim
