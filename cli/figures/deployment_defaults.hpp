#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/capacity_options.hpp"
#include "cli/files.hpp"
#include "cli/plan_options.hpp"
#include "cli/report.hpp"
#include "render/figures/chart.hpp"

/// The defaults of figures of deployments: the deployment of docs/examples/chat_70b.toml, from presets alone.
namespace specdec::cli {

/// Names a deployment where no cost is given: the model, its draft and its acceptance are replaced together, and the
/// hardware by itself.
/// @return the assumptions taken
std::vector<Assumption> default_deployment(PlanOptions& o);

/// Declares what names its hardware and its models.
void declare_deployment(Options& options, PlanOptions& o);

/// default_deployment() with a workload, limits and a price.
std::vector<Assumption> default_service(CapacityOptions& o);

/// The assumptions taken by default, followed by those of the others that it does not name.
std::vector<Assumption> with_defaults(std::vector<Assumption> taken, const std::vector<Assumption>& others);

/// A chart of an answer with what that rests on: its warnings, presets and files, and behind the assumptions taken by
/// default its own and the chart's.
template <class Answer>
render::Chart resting_on(const Answer& answer, const std::vector<std::string>& files, std::vector<Assumption> taken,
                         render::Chart chart) {
  chart.assumptions = with_defaults(with_defaults(std::move(taken), answer.assumptions), chart.assumptions);
  for (const Note& warning : answer.warnings) {
    if (!warning.explains_null) chart.warnings.push_back(warning);
  }
  chart.presets = answer.presets;
  chart.files = facts_of_each(files);
  append(chart.warnings, same_content(chart.files));
  return chart;
}

}  // namespace specdec::cli
