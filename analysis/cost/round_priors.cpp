#include "analysis/cost/round_priors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace specdec::cost {
namespace {

// Means and spreads over servers of published rounds; a fixed part that is normal about nearly 0 has the log-normal law
// of the same median and 84% quantile.
const std::vector<RoundPrior> eagle_dense = {{0.55, {0.07, 0.69}, {0.085, 0.4}}, {0.25, {0.14, 0.41}, {0.06, 0.4}}};
const std::vector<RoundPrior> eagle_experts = {{0.5, {0.45, 0.34}, {0.085, 0.45}}, {0.3, {0.08, 0.92}, {0.1, 0.5}}};
const std::vector<RoundPrior> mtp_dense = {{0.55, {0.01, 1.9}, {0.25, 0.3}}, {0.25, {0.15, 0.85}, {0.2, 0.7}}};
const std::vector<RoundPrior> mtp_experts = {{0.45, {0.05, 1.1}, {0.27, 0.4}}, {0.35, {0.35, 0.54}, {0.15, 0.7}}};
const std::vector<RoundPrior> parallel = {{0.6, {0.04, 1.1}, {0.2, 0.5}}, {0.2, {0.2, 0.56}, {0.05, 0.7}}};
const std::vector<RoundPrior> draft_model = {{0.8, {0.08, 0.92}, {0.4, 0.5}}};
const std::vector<RoundPrior> lookup = {{0.8, {0.04, 0.92}, {0.03, 0.8}}};
constexpr RoundPrior any_other = {0.2, {0.12, 1.13}, {0.14, 0.8}};

const std::vector<RoundPrior>& families(DraftKind kind, bool experts) {
  switch (kind) {
    case DraftKind::eagle:
      return experts ? eagle_experts : eagle_dense;
    case DraftKind::mtp:
      return experts ? mtp_experts : mtp_dense;
    case DraftKind::parallel:
      return parallel;
    case DraftKind::model:
    case DraftKind::mirrored:
      return draft_model;
    case DraftKind::ngram:
    case DraftKind::suffix:
      break;
  }
  return lookup;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "-A3B" or "8x7B": a count of active parameters, or of experts.
bool counts_experts(std::string_view name) {
  for (std::size_t i = 0; i + 2 < name.size(); ++i) {
    if (name[i + 1] == 'a' && is_digit(name[i + 2]) && (name[i] == '-' || name[i] == '_')) {
      const std::size_t end = name.find_first_not_of("0123456789.", i + 2);
      if (end != std::string_view::npos && name[end] == 'b') return true;
    }
    if (is_digit(name[i]) && name[i + 1] == 'x' && is_digit(name[i + 2])) return true;
  }
  return false;
}

bool holds(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

}  // namespace

std::vector<RoundPrior> usual_rounds(std::optional<DraftKind> kind, std::optional<bool> experts) {
  using Share = std::pair<DraftKind, double>;
  const std::vector<Share> kinds =
      kind ? std::vector<Share>{{*kind, 1.0}}
           : std::vector<Share>{
                 {DraftKind::eagle, 0.4}, {DraftKind::mtp, 0.3}, {DraftKind::model, 0.2}, {DraftKind::parallel, 0.1}};
  std::vector<RoundPrior> all;
  for (const auto& [its, share] : kinds) {
    const std::vector<RoundPrior>& dense = families(its, false);
    const std::vector<RoundPrior>& mixtures = families(its, true);
    const auto add = [&all](const std::vector<RoundPrior>& some, double weight) {
      for (RoundPrior family : some) {
        family.weight *= weight;
        all.push_back(family);
      }
    };
    if (experts || &dense == &mixtures) {
      add(experts.value_or(false) ? mixtures : dense, share);
    } else {
      add(dense, share / 2);
      add(mixtures, share / 2);
    }
  }
  all.push_back(any_other);
  return all;
}

std::optional<bool> named_with_experts(std::string_view model) {
  std::string name(model);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (counts_experts(name)) return true;
  constexpr std::array<std::string_view, 15> mixtures = {
      "moe",     "deepseek-v2", "deepseek-v3", "deepseek-r1", "gpt-oss", "glm-4.5",          "glm-4.6",   "glm-4.7",
      "kimi-k2", "llama-4",     "minimax-m",   "ling-",       "mixtral", "qwen3-coder-next", "qwen3-next"};
  if (std::any_of(mixtures.begin(), mixtures.end(), [&](auto part) { return holds(name, part); })) return true;
  constexpr std::array<std::string_view, 8> dense = {"llama-2", "llama-3", "vicuna",  "qwen2",
                                                     "qwen3",   "gemma-2", "gemma-3", "opt-"};
  if (std::any_of(dense.begin(), dense.end(), [&](auto part) { return holds(name, part); })) return false;
  return std::nullopt;
}

}  // namespace specdec::cost
