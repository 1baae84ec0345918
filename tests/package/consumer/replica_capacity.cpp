#include <planner/load/capacity.hpp>

#include <iostream>

int main() {
  using namespace specdec::planner;
  const Cost cost = Cost::of_hardware("h100-sxm", "llama-3.3-70b",
                                      {.draft = {.model = "eagle3-llama-3.3-70b"}, .tensor_parallel = 4});
  CapacityQuestion question{.arrival_rate = 40, .gamma = {{1, 2, 3}}, .ttft_ms = 1000, .tpot_ms = 40};
  question.workload = {.prompt_tokens = {1000, 0.5}, .output_tokens = {250, 0.5}, .requests = 300};
  const Capacity answer = capacity(Acceptance::of_rate(0.7), cost, question);
  const auto& best = answer.scenarios()[*answer.answer().recommended];
  std::cout << best.scenario.name << " needs " << *best.gpus << " GPUs\n";
}
