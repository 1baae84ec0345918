#include "planner/question_error.hpp"

#include "tests/support/catch.hpp"

using namespace specdec;
using planner::QuestionError;

TEST_CASE("an error about a question names the member, and the option for whoever reads options") {
  const QuestionError error("--draft-model is missing: --hardware prices the draft by its architecture");
  CHECK(error.parameter() == "draft_model");
  CHECK(std::string(error.what()) == "draft_model is missing: hardware prices the draft by its architecture");
  CHECK(error.with_options() == "--draft-model is missing: --hardware prices the draft by its architecture");
}

TEST_CASE("dashes that begin no option stay, and an error of no parameter names none") {
  const QuestionError error("the file a--b.json has -- and 1--2, and --4x");
  CHECK(error.parameter().empty());
  CHECK(std::string(error.what()) == error.with_options());
}

TEST_CASE("a value is refused with what is legal, a long one cut and an empty one said") {
  const auto message = [](std::string_view text) {
    try {
      planner::refuse("--max-gamma", text, "a number");
    } catch (const QuestionError& error) {
      return error.with_options();
    }
  };
  CHECK(message("x") == "--max-gamma is x, but must be a number");
  CHECK(message("") == "--max-gamma is empty, but must be a number");
  CHECK(message(std::string(100, 'y')) == "--max-gamma is " + std::string(60, 'y') + "..., but must be a number");
}
