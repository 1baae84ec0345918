#pragma once

#include <string>
#include <vector>

#include "cli/capacity_options.hpp"
#include "cli/plan_options.hpp"
#include "cli/report.hpp"

/// The defaults of figures of deployments: the deployment of docs/examples/chat_70b.toml, from presets alone.
namespace specdec::cli {

/// Names a deployment where no cost is given: the model, its draft and its acceptance are replaced together, and the
/// hardware by itself.
/// @return the assumptions taken
std::vector<Assumption> default_deployment(PlanOptions& o);

/// Declares what names its acceptance, one draft's, by one figure or file.
/// @param alpha, about_alpha  the value of --alpha, and what it is
void declare_one_acceptance(Options& options, PlanOptions& o, const std::string& alpha, const std::string& about_alpha);

/// Declares what names its hardware and its models.
void declare_deployment(Options& options, PlanOptions& o);

/// default_deployment() with a workload, limits and a price.
std::vector<Assumption> default_service(CapacityOptions& o);

/// The assumptions taken by default, followed by those of the others that it does not name.
std::vector<Assumption> with_defaults(std::vector<Assumption> taken, const std::vector<Assumption>& others);

/// "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm"; without the draft where none drafts.
std::string deployment_text(const PlanOptions& o);

}  // namespace specdec::cli
