#include "traces/formats/column_names.hpp"

#include "tests/support/catch.hpp"

using namespace specdec;
using traces::PairColumn;
using traces::Role;
using traces::RowSpace;

TEST_CASE("names of the two models' columns are understood in every spelling that people use") {
  for (const char* name : {"p", "target", "P", "Target"}) {
    const auto column = traces::model_column(name);
    REQUIRE(column);
    CHECK(column->role == Role::target);
    CHECK_FALSE(column->space);
    CHECK_FALSE(column->rank);
  }
  for (const char* name : {"q_logprob", "draft_logprobs", "logprob_draft", "log_q", "logq", "q.token_logprob",
                           "Draft Log-Prob", "draft_token_logprobs", "log_prob_q", "draft-model-logprob"}) {
    INFO(name);
    const auto column = traces::model_column(name);
    REQUIRE(column);
    CHECK(column->role == Role::draft);
    CHECK(column->space == RowSpace::log_probabilities);
  }
  CHECK(traces::model_column("target_prob")->space == RowSpace::probabilities);
  CHECK(traces::model_column("p.probs")->space == RowSpace::probabilities);
  CHECK(traces::model_column("draft probabilities")->space == RowSpace::probabilities);
  CHECK(traces::model_column("logits_q")->space == RowSpace::logits);
  CHECK(traces::model_column("p_rank")->rank);
  CHECK(traces::model_column("draft_token_rank")->role == Role::draft);
}

TEST_CASE("names that contradict themselves or mean something else belong to no model") {
  for (const char* name : {"", "_", "loss", "pq", "p_q", "target_draft_logprob", "target_token", "target_model", "p_token_id",
                           "logprob", "log_logits_p", "p_logit_prob", "p_rank_logprob", "target_p", "perplexity"}) {
    INFO(name);
    CHECK_FALSE(traces::model_column(name));
  }
}

TEST_CASE("a file's name says what its numbers are among other words") {
  CHECK(traces::space_named_in("run1_target_logits") == RowSpace::logits);
  CHECK(traces::space_named_in("llama-70b.logprobs") == RowSpace::log_probabilities);
  CHECK_FALSE(traces::space_named_in("llama-70b"));
}

TEST_CASE("the columns beside the models' are known by name") {
  CHECK(traces::index_column("seq") == PairColumn::sequence);
  CHECK(traces::index_column("Request ID") == PairColumn::sequence);
  CHECK(traces::index_column("pos") == PairColumn::place);
  CHECK(traces::index_column("token_ids") == PairColumn::token);
  CHECK(traces::index_column("tasks") == PairColumn::task);
  CHECK(traces::index_column("overlap") == PairColumn::overlap);
  CHECK(traces::index_column("prompt") == PairColumn::prompt);
  CHECK_FALSE(traces::index_column("note"));
}
