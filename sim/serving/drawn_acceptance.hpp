#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/serving/request_rounds.hpp"
#include "sim/serving/running_requests.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The accepted drafts of the requests of a run: its laws and the uniforms that requests draw.
class DrawnAcceptance {
 public:
  /// @param shared  draws of runs of the same requests; null for own ones
  DrawnAcceptance(const ServingQuestion& question, RequestDraws* shared)
      : largest_gamma_(largest_gamma_of(question.engine)), laws_(question.acceptance, largest_gamma_), shared_(shared) {
    if (!shared) own_.emplace(question.requests, question.seed, 0);
  }

  RequestDraws& draws() { return shared_ ? *shared_ : *own_; }
  std::int64_t largest_gamma() const { return largest_gamma_; }
  /// The first stretch of a request's law.
  std::size_t law_of(std::size_t request) { return largest_gamma_ == 0 ? 0 : laws_.stretch_of(draws().law(request)); }
  /// Accepted drafts out of so many of a running request; moves its stretch to the one of its context.
  std::int64_t accepted(RunningRequests& running, std::size_t i, std::int64_t drafts) {
    const double u = draws().acceptance(running.request[i], running.put_out[i]);
    return laws_.accepted(running.law[i], running.computed[i], u, drafts);
  }

 private:
  std::int64_t largest_gamma_;
  AcceptanceLaws laws_;
  RequestDraws* shared_;
  std::optional<RequestDraws> own_;
};

}  // namespace specdec::sim
