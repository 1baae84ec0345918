// Beam search against one written down from its definition, and the search with a draft against the one without.

#include "sim/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/decoding.hpp"
#include "tests/support/algorithm_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

using Beams = std::vector<Beam>;

/// All continuations, sorted; the first `width` of them.
Beams step_of(const ContextTableModel& model, const Beams& beams, std::size_t width) {
  Beams all;
  for (const Beam& beam : beams) {
    if (beam.ended) {
      all.push_back(beam);
      continue;
    }
    Tokens text = enumerated_prompt;
    text.insert(text.end(), beam.tokens.begin(), beam.tokens.end());
    const std::span<const double> row = model.row(text);
    for (std::size_t x = 0; x < row.size(); ++x) {
      Beam next = beam;
      next.tokens.push_back(static_cast<Token>(x));
      next.log_probability += std::log(row[x]);
      if (row[x] > 0) all.push_back(next);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Beam& a, const Beam& b) { return a.log_probability > b.log_probability; });
  all.resize(std::min(width, all.size()));
  return all;
}

bool among(const Beams& drafted, const Beam& beam) {
  return std::any_of(drafted.begin(), drafted.end(), [&](const Beam& other) { return other.tokens == beam.tokens; });
}

/// The beams that have to be among the draft's for a step to be kept.
enum class Kept { all_beams, the_best };

struct Searched {
  Beams beams;
  std::int64_t rounds = 0;
};

/// Appendix A.4 as it says, or with a rule that looks at the best beam alone: the others have no rows then.
Searched search_by_hand(const TablePair& pair, std::size_t width, const BeamDrafting& drafting, std::int64_t steps,
                        Kept rule) {
  Searched found{{Beam{}}};
  for (std::int64_t t = 0; t < steps; ++found.rounds) {
    std::vector<Beams> levels;
    Beams last = found.beams;
    for (std::int64_t j = 0; j < std::min(drafting.gamma, steps - t - 1); ++j)
      levels.push_back(last = step_of(pair.draft, last, static_cast<std::size_t>(drafting.width)));
    for (std::size_t kept = 0;; ++kept) {
      found.beams = step_of(pair.target, found.beams, width);
      ++t;
      if (kept == levels.size()) break;
      const auto is_drafted = [&](const Beam& beam) { return among(levels[kept], beam); };
      if (rule == Kept::all_beams) {
        if (!std::all_of(found.beams.begin(), found.beams.end(), is_drafted)) break;
      } else {
        if (!is_drafted(found.beams.front())) break;
        std::erase_if(found.beams, [&](const Beam& beam) { return !is_drafted(beam); });
      }
    }
  }
  return found;
}

TablePair alike_pair(std::uint64_t seed) { return synthetic_bigram_pair(5, 0.4, seed); }

}  // namespace

TEST_CASE("beam search finds what its definition says, and with enough beams the most probable text of all") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const TablePair pair = random_pair(3, 3, Likeness::independent, seed);
    ContextTableModel target = pair.target;
    for (const std::int64_t width : {1, 2, 5, 81}) {
      Beams expected{Beam{}};
      for (int t = 0; t < 5; ++t) expected = step_of(pair.target, expected, static_cast<std::size_t>(width));
      const BeamSearch found = search_beams(target, enumerated_prompt, {.width = width, .max_new_tokens = 5});
      CHECK(found.beams == expected);
      CHECK(found.counters.target_calls == 5);
      for (const Beam& beam : found.beams) {
        Tokens text = enumerated_prompt;
        text.insert(text.end(), beam.tokens.begin(), beam.tokens.end());
        CHECK(std::exp(beam.log_probability) == Approx(target_probability(pair.target, text)).epsilon(1e-13));
      }
      if (width < 81) continue;
      double best = 0;
      for (int text = 0; text < 243; ++text) {
        Tokens whole = enumerated_prompt;
        for (int rest = text, t = 0; t < 5; ++t, rest /= 3) whole.push_back(rest % 3);
        best = std::max(best, target_probability(pair.target, whole));
      }
      CHECK(std::exp(found.beams.front().log_probability) == Approx(best).epsilon(1e-13));
    }
  }
}

TEST_CASE("of equally probable beams the better beam's and then the lower token's come first") {
  ContextTableModel uniform = uniform_model(3);
  const BeamSearch found = search_beams(uniform, Tokens{0}, {.width = 4, .max_new_tokens = 2});
  CHECK(found.beams[0].tokens == Tokens{0, 0});
  CHECK(found.beams[1].tokens == Tokens{0, 1});
  CHECK(found.beams[2].tokens == Tokens{0, 2});
  CHECK(found.beams[3].tokens == Tokens{1, 0});
}

TEST_CASE("with a draft the beams are the same, to the last bit, and every step is counted once") {
  std::int64_t kept = 0, lost = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (const TablePair& pair :
         {random_pair(4, 2, Likeness::independent, seed), random_pair(4, 2, Likeness::equal, seed), alike_pair(seed)}) {
      ContextTableModel target = pair.target, draft = pair.draft;
      for (const std::int64_t width : {1, 2, 4}) {
        for (const std::int64_t more : {0, 3}) {
          const auto gamma = static_cast<std::int64_t>(seed % 5);
          CAPTURE(seed, width, more);
          BeamSearchOptions options{.width = width, .max_new_tokens = 9};
          if (seed % 3 == 0) options.end_token = 2;
          const BeamSearch plain = search_beams(target, enumerated_prompt, options);
          const BeamSearch found =
              search_beams_speculatively(target, draft, enumerated_prompt, options, {width + more, gamma});
          CHECK(found.beams == plain.beams);
          const Counters& c = found.counters;
          CHECK(c.tokens == plain.counters.tokens);
          CHECK(c.target_calls == c.steps);
          CHECK(c.draft_calls == c.drafted);
          if (!options.end_token) CHECK(c.tokens == c.steps + c.accepted);
          kept += c.accepted;
          lost += c.drafted - c.accepted;
        }
      }
    }
  }
  CHECK(kept > 500);
  CHECK(lost > 500);
}

TEST_CASE("a round scores w + u gamma prefixes, and a draft that is the target keeps all of them at the same width") {
  const TablePair pair = alike_pair(1);
  ContextTableModel target = pair.target, same = pair.target;
  const BeamSearchOptions options{.width = 2, .max_new_tokens = 31};
  const Counters c = search_beams_speculatively(target, same, enumerated_prompt, options, {2, 2}).counters;
  // One step makes two beams of one; ten rounds and one more step, drafted by none.
  CHECK(c.steps == 11);
  CHECK(c.accepted_at == std::vector<std::int64_t>{10, 10});
  CHECK(c.target_positions == (1 + 2 * 2) + 9 * (2 + 2 * 2) + 2);
  // From the second round on also those parents of the two beams that the draft has not seen, one or two.
  CHECK(c.draft_positions >= (1 + 2) + 9 * (2 + 2 + 1));
  CHECK(c.draft_positions <= (1 + 2) + 9 * (2 + 2 + 2));
  CHECK(search_beams(target, enumerated_prompt, options).counters.target_positions == 61);
}

TEST_CASE("a draft that is the target, but searches wider, may lose a beam to those that plain search has dropped") {
  std::int64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const TablePair pair = random_pair(4, 2, Likeness::equal, seed);
    ContextTableModel target = pair.target, same = pair.draft;
    const BeamSearchOptions options{.width = 2, .max_new_tokens = 12};
    const Counters at_same = search_beams_speculatively(target, same, enumerated_prompt, options, {2, 4}).counters;
    CHECK(at_same.accepted == at_same.drafted);
    const Counters wider = search_beams_speculatively(target, same, enumerated_prompt, options, {3, 4}).counters;
    lost += wider.drafted - wider.accepted;
  }
  CHECK(lost > 0);
}

TEST_CASE("one beam and one draft are greedy speculative decoding") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    TablePair pair = alike_pair(seed);
    DecodingOptions greedy;
    greedy.gamma = 3;
    greedy.max_new_tokens = 40;
    greedy.standardisation = {.temperature = 0};
    const Generation text =
        decode_speculatively(pair.target, pair.draft, enumerated_prompt, greedy, RandomStream(0, 0));
    const BeamSearch found = search_beams_speculatively(pair.target, pair.draft, enumerated_prompt,
                                                        {.width = 1, .max_new_tokens = 40}, {1, 3});
    CHECK(found.beams.front().tokens == text.tokens);
    CHECK(found.counters == text.counters);
  }
}

TEST_CASE(
    "a rule that looks at the best beam alone finds other beams than the search, one that looks at all does not") {
  std::int64_t different = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const TablePair pair = alike_pair(seed);
    ContextTableModel target = pair.target, draft = pair.draft;
    const BeamSearchOptions options{.width = 3, .max_new_tokens = 8};
    const BeamDrafting drafting{4, 3};
    const Beams plain = search_beams(target, enumerated_prompt, options).beams;
    const BeamSearch found = search_beams_speculatively(target, draft, enumerated_prompt, options, drafting);
    const Searched all = search_by_hand(pair, 3, drafting, 8, Kept::all_beams);
    CHECK(all.beams == plain);
    CHECK(all.rounds == found.counters.steps);
    different += search_by_hand(pair, 3, drafting, 8, Kept::the_best).beams != plain;
  }
  CHECK(different > 5);
}

TEST_CASE("searches refuse widths, lengths and models that do not fit") {
  TablePair pair = alike_pair(0);
  const auto search = [&](const BeamSearchOptions& options, const BeamDrafting& drafting) {
    return search_beams_speculatively(pair.target, pair.draft, enumerated_prompt, options, drafting);
  };
  CHECK_THROWS_AS(search({.width = 0}, {}), std::domain_error);
  CHECK_THROWS_WITH(search({.width = 4}, {.width = 3}), Catch::Contains("drafted width is 3, but must be in [4, "));
  CHECK_THROWS_AS(search({}, {.gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(search_beams(pair.target, {}, {}), std::domain_error);
  ContextTableModel wider = uniform_model(9);
  CHECK_THROWS_AS(search_beams_speculatively(pair.target, wider, enumerated_prompt, {}, {}), std::invalid_argument);
  CHECK(search({.width = 2, .max_new_tokens = 0}, {}).beams == Beams{Beam{}});
}
