#include "traces/formats/column_names.hpp"

#include <array>
#include <string>

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

std::string normalised_name(std::string_view name) {
  std::string normalised;
  bool separated = false;
  for (const char c : lower_case(name)) {
    if (c == '_' || c == '-' || c == '.' || c == ' ') {
      separated = !normalised.empty();
      continue;
    }
    if (separated) normalised += '_';
    separated = false;
    normalised += c;
  }
  return normalised;
}

std::string_view singular(std::string_view word) {
  if (word == "probabilities") return "probability";
  if (word.size() > 1 && word.ends_with('s')) word.remove_suffix(1);
  return word;
}

/// Collects the meanings of the words in one name; with a contradiction it is not a known name.
class WordReader {
 public:
  void read(std::string_view word) {
    if (word == "p" || word == "target") {
      set_role(Role::target);
    } else if (word == "q" || word == "draft") {
      set_role(Role::draft);
    } else if (word == "logp" || word == "logq") {
      set_role(word == "logp" ? Role::target : Role::draft);
      set_space(RowSpace::log_probabilities);
    } else if (word == "log" && !log_) {
      log_ = true;
    } else if (word == "prob" || word == "probability") {
      set_space(RowSpace::probabilities);
    } else if (word == "logprob" || word == "logprobability") {
      set_space(RowSpace::log_probabilities);
    } else if (word == "logit") {
      set_space(RowSpace::logits);
    } else if (word == "rank" && !rank_) {
      rank_ = true;
    } else if (word == "token" || word == "model") {
      filled_ = true;
    } else {
      known_ = false;
    }
  }

  std::optional<RowSpace> space() const {
    if (log_) return RowSpace::log_probabilities;
    return space_;
  }

  std::optional<ModelColumn> column() const {
    const bool contradicts = (log_ && space_.value_or(RowSpace::probabilities) != RowSpace::probabilities) ||
                             (rank_ && space()) || (filled_ && !rank_ && !space());
    if (!known_ || !role_ || contradicts) return std::nullopt;
    return ModelColumn{*role_, space(), rank_};
  }

 private:
  void set_role(Role role) {
    known_ = known_ && !role_;
    role_ = role;
  }
  void set_space(RowSpace space) {
    known_ = known_ && !space_;
    space_ = space;
  }

  std::optional<Role> role_;
  std::optional<RowSpace> space_;
  bool known_ = true;
  bool log_ = false;
  bool rank_ = false;
  bool filled_ = false;
};

WordReader read_words(std::string_view name) {
  const std::string normalised = normalised_name(name);
  WordReader words;
  for (std::string_view left = normalised; !left.empty();) words.read(singular(take_part(left, '_')));
  return words;
}

}  // namespace

std::optional<ModelColumn> model_column(std::string_view name) { return read_words(name).column(); }

std::optional<RowSpace> space_named_in(std::string_view name) { return read_words(name).space(); }

std::optional<PairColumn> index_column(std::string_view name) {
  struct Entry {
    std::string_view name;
    PairColumn column;
  };
  static constexpr std::array<Entry, 14> entries = {{{"seq", PairColumn::sequence},
                                                     {"sequence", PairColumn::sequence},
                                                     {"sequence_id", PairColumn::sequence},
                                                     {"request", PairColumn::sequence},
                                                     {"request_id", PairColumn::sequence},
                                                     {"pos", PairColumn::place},
                                                     {"position", PairColumn::place},
                                                     {"place", PairColumn::place},
                                                     {"token", PairColumn::token},
                                                     {"token_id", PairColumn::token},
                                                     {"task", PairColumn::task},
                                                     {"category", PairColumn::task},
                                                     {"prompt", PairColumn::prompt},
                                                     {"overlap", PairColumn::overlap}}};
  const std::string normalised = normalised_name(name);
  for (const Entry& entry : entries) {
    if (entry.name == normalised || entry.name == singular(normalised)) return entry.column;
  }
  return std::nullopt;
}

std::string_view name_of(Role role) { return role == Role::target ? "target" : "draft"; }

std::string_view name_of(RowSpace space) {
  constexpr std::array<std::string_view, 3> names = {"probabilities", "log-probabilities", "logits"};
  return names.at(static_cast<std::size_t>(space));
}

}  // namespace specdec::traces
