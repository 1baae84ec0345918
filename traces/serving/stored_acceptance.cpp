#include <fmt/format.h>

#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::traces {

// Files that evaluations of speculative decoding store: JSON lines, a question a line, as CountUnit::request. The
// question's category becomes the label "category", its model_id the label "model_name".
//
// Spec-Bench:
//
//   {"question_id":81,"category":"writing","model_id":"m","choices":[{"index":0,"turns":["..."],
//    "decoding_steps":[2,1],"new_tokens":[7,1],"wall_time":[2.1,1.9],"accept_lengths":[3,4,1]}],"tstamp":1.7e9}
//
// accept_lengths holds the tokens of every round, the bonus token included, of all turns behind each other;
// decoding_steps says where they part. A turn's last round may be cut off by the end of the text; it counts as it
// stands, and not at all where nothing of it is left.
//
// EAGLE:
//
//   {"question_id":81,"model_id":"m","choices":[{"index":0,"turns":["..."],"idxs":[1,0],"new_tokens":[7,1],
//    "wall_time":[2.1,1.9],"alpha":[2,2,1],"alpha_num":[3,2,2]}]}
//
// idxs are indices of the last rounds from 0, so a turn has idxs + 1 rounds, which put out new_tokens. alpha and
// alpha_num, where they are, count accepted and attempted drafts by depth, a draft being attempted only after those
// before it: rounds are then those of alpha_num[0].
//
// Where no round of a file accepted anything, it may be a baseline's: warning "no_accepted_drafts".

namespace {

constexpr std::string_view spec_bench_name = "spec-bench";
constexpr std::string_view eagle_name = "eagle";

// Readers of one format's choices each, which sum them over a question.

class SpecBenchChoices {
 public:
  void begin(ServingCounts& /*counts*/) {}

  void add(const CountedFields& choice, ServingCounts& counts) {
    if (!choice.list("accept_lengths", lengths_)) choice.refuse("accept_lengths", "missing", "given");
    const bool parted = choice.list("decoding_steps", steps_);
    if (parted && sum_of(steps_) != static_cast<double>(lengths_.size())) {
      choice.refuse("accept_lengths", fmt::format("{} long", lengths_.size()),
                    fmt::format("{} long, the sum of decoding_steps", shown(sum_of(steps_))));
    }
    if (!parted) steps_.assign(1, static_cast<double>(lengths_.size()));
    std::size_t i = 0;
    for (const double steps : steps_) {
      const std::size_t end = i + static_cast<std::size_t>(steps);
      for (; i < end; ++i) take_round(choice, i, i + 1 == end, counts);
    }
  }

  void end(const CountedFields& /*question*/, ServingCounts& counts) {
    add_totals(counts);
    counts.emitted = *counts.rounds + *counts.accepted;
  }

 private:
  void take_round(const CountedFields& choice, std::size_t i, bool last, ServingCounts& counts) {
    const double tokens = lengths_[i];
    if (tokens == 0 && last) return;
    if (tokens < 1 || tokens > static_cast<double>(CountedFields::longest_draft)) {
      choice.refuse(fmt::format("accept_lengths[{}]", i), shown(tokens),
                    fmt::format("in [1, {}], the bonus token included", CountedFields::longest_draft));
    }
    add_round(counts.rounds_by_accepted, static_cast<std::size_t>(tokens) - 1);
  }

  std::vector<double> lengths_, steps_;
};

class EagleChoices {
 public:
  void begin(ServingCounts& counts) {
    counts.rounds = counts.emitted = 0;
    accepted_.clear();
    attempted_.clear();
  }

  void add(const CountedFields& choice, ServingCounts& counts) {
    if (!choice.list("idxs", last_)) choice.refuse("idxs", "missing", "given");
    if (!choice.list("new_tokens", tokens_)) choice.refuse("new_tokens", "missing", "given");
    if (last_.size() != tokens_.size()) {
      choice.refuse("idxs", fmt::format("{} long", last_.size()),
                    fmt::format("{} long, as new_tokens is", tokens_.size()));
    }
    for (std::size_t i = 0; i < last_.size(); ++i) {
      if (tokens_[i] < last_[i] + 1) {
        choice.refuse(fmt::format("new_tokens[{}]", i), shown(tokens_[i]),
                      fmt::format("at least {}, one of each round", shown(last_[i] + 1)));
      }
      *counts.rounds += last_[i] + 1;
      *counts.emitted += tokens_[i];
    }
    const bool accepted = choice.list("alpha", alpha_);
    const bool attempted = choice.list("alpha_num", alpha_num_);
    if (accepted != attempted || alpha_.size() != alpha_num_.size()) {
      choice.refuse("alpha", fmt::format("{} long", alpha_.size()),
                    fmt::format("{} long, as alpha_num is", alpha_num_.size()));
    }
    check_depths(choice);
    add_counts(accepted_, alpha_);
    add_counts(attempted_, alpha_num_);
  }

  void end(const CountedFields& question, ServingCounts& counts) {
    if (attempted_.empty()) {
      counts.accepted = *counts.emitted - *counts.rounds;
      return;
    }
    const double rounds = attempted_.front();
    if (rounds > *counts.rounds) {
      question.refuse("alpha_num[0]", fmt::format("{} in sum over choices", shown(rounds)),
                      fmt::format("at most {}, the rounds of idxs", shown(*counts.rounds)));
    }
    counts.rounds = rounds;
    counts.accepted = sum_of(accepted_);
    if (*counts.emitted != rounds + *counts.accepted) counts.emitted.reset();
    counts.accepted_at = accepted_;
    double reached = rounds;
    for (const double accepted : accepted_) {
      counts.rounds_by_accepted.push_back(reached - accepted);
      reached = accepted;
    }
    counts.rounds_by_accepted.push_back(reached);
  }

 private:
  void check_depths(const CountedFields& choice) const {
    if (alpha_.size() > CountedFields::longest_draft) {
      choice.refuse("alpha", fmt::format("{} long", alpha_.size()),
                    fmt::format("at most {} long", CountedFields::longest_draft));
    }
    for (std::size_t j = 0; j < alpha_.size(); ++j) {
      if (alpha_[j] > alpha_num_[j]) {
        choice.refuse(fmt::format("alpha[{}]", j), shown(alpha_[j]),
                      fmt::format("at most {}, as alpha_num[{}] is: counts of drafts", shown(alpha_num_[j]), j));
      }
      if (j > 0 && alpha_num_[j] > alpha_[j - 1]) {
        choice.refuse(
            fmt::format("alpha_num[{}]", j), shown(alpha_num_[j]),
            fmt::format("at most {}, as alpha[{}] is: attempted after those before", shown(alpha_[j - 1]), j - 1));
      }
    }
  }

  std::vector<double> last_, tokens_, alpha_, alpha_num_;
  std::vector<double> accepted_, attempted_;
};

template <class Choices>
void read_questions(std::span<const std::filesystem::path> files, const CountsSink& sink, std::string_view name) {
  Choices choices;
  ServingCounts counts = no_counts(name, name, CountUnit::request);
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    counts.file = path;
    bool accepted = false;
    each_document(file, counts, "a question a line", [&](const CountedFields& question) {
      set_label(counts, "model_name", question.text_if_any("model_id"));
      set_label(counts, "category", question.text_if_any("category"));
      choices.begin(counts);
      if (!question.value("choices")) question.refuse("choices", "missing", "given");
      question.each("choices", [&](const CountedFields& choice) { choices.add(choice, counts); });
      choices.end(question, counts);
      accepted = accepted || *counts.accepted > 0;
      if (*counts.rounds > 0) sink.take(counts);
    });
    if (!accepted) {
      sink.warn({"no_accepted_drafts",
                 fmt::format("{}: every round put out one token, as a run without speculation does", path.string())});
    }
  }
}

}  // namespace

CountsFormat spec_bench_format() {
  return {spec_bench_name,
          [](const FileHead& head) {
            return first_document_passes(head, [](std::string_view text) {
              return mentions_key(text, "choices") && mentions_key(text, "accept_lengths");
            });
          },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            read_questions<SpecBenchChoices>(files, sink, spec_bench_name);
          }};
}

CountsFormat eagle_format() {
  return {eagle_name,
          [](const FileHead& head) {
            return first_document_passes(head, [](std::string_view text) {
              return mentions_key(text, "choices") && mentions_key(text, "idxs") && mentions_key(text, "new_tokens");
            });
          },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            read_questions<EagleChoices>(files, sink, eagle_name);
          }};
}

}  // namespace specdec::traces
