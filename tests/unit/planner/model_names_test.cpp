#include "planner/model_names.hpp"

#include "tests/support/catch.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using planner::other_model;

TEST_CASE("an acceptance of another model is noted where both names can be of one kind") {
  CHECK_FALSE(other_model("meta-llama/Llama-3.3-70B-Instruct", {"llama-3.3-70b"}));
  CHECK_FALSE(other_model(std::nullopt, {"llama-3.3-70b"}));
  CHECK_FALSE(other_model("target.gguf", {}));
  const auto other = other_model("target-8b", {"llama-3.3-70b"});
  REQUIRE(other);
  CHECK(other->code == "acceptance_of_another_model");
}

TEST_CASE("llama-bench's name of a kind of model is not taken for another model than a file") {
  const std::string kind = "llama 8B Q4_0 (4.33 GiB / 8.03 B)";
  for (const auto& [measured, planned] :
       {std::pair<std::string, std::string>{"target.gguf", kind}, {kind, "target.gguf"}}) {
    const auto note = other_model(measured, {planned});
    REQUIRE(note);
    CHECK(note->code == "acceptance_model_not_compared");
    CHECK_THAT(note->message, Contains("measured with " + measured) && Contains("planned for " + planned) &&
                                  Contains("cannot be told"));
  }
  CHECK_FALSE(other_model(kind, {kind}));
}
