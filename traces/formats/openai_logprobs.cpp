#include "traces/formats/response_formats.hpp"

#include <fmt/format.h>

#include <vector>

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

std::vector<std::int32_t> read_ids(const JsonLines& file, std::optional<dom::element> value, const std::string& list) {
  std::vector<std::int32_t> ids;
  if (!value) return ids;
  JsonField field{list};
  for (const dom::element id : read_array(file, *value, field)) {
    ++field.index;
    ids.push_back(read_token_id(file, id, field));
  }
  return ids;
}

/// One element of prompt_logprobs: {id: {logprob, rank, decoded_token}}.
class PromptRowReader {
 public:
  PromptRowReader(ResponseReader& reader, const std::string& list, ScoredText& text)
      : file_(reader.file()), list_(list), text_(text) {}

  /// `token` is the given token, -1 if the response does not state it.
  void read(dom::object row, std::int64_t index, std::int32_t token) {
    bool first = true;
    std::optional<Scored> emitted;
    for (const auto& [key, value] : row) {
      const std::int32_t id = read_key(key, index);
      const Scored scored = read_scored(value, index);
      text_.list(id, scored.logprob, scored.rank);
      if (first && token < 0) token = id;
      if (id == token && !emitted) emitted = scored;
      first = false;
    }
    if (!emitted) {
      file_.refuse(JsonField{list_, index}.text(), token < 0 ? "empty" : fmt::format("without token {}", token),
                   "the given token and perhaps others");
    }
    text_.end_position(token, emitted->logprob, emitted->rank);
  }

 private:
  struct Scored {
    float logprob = 0;
    std::int32_t rank = 0;
  };

  std::int32_t read_key(std::string_view key, std::int64_t index) const {
    const auto id = number_in<std::int32_t>(key);
    if (!id || *id < 0) {
      file_.refuse(JsonField{list_, index}.text(), fmt::format("with the key \"{}\"", key.substr(0, 40)),
                   "with token ids as keys");
    }
    return *id;
  }

  Scored read_scored(dom::element value, std::int64_t index) const {
    Scored scored;
    bool found = false;
    for (const auto& [key, field] : read_object(file_, value, {list_, index})) {
      if (key == "logprob") {
        scored.logprob = read_log_probability(file_, field, {list_, index, ".logprob"});
        found = true;
      } else if (key == "rank") {
        scored.rank = read_rank(file_, field, {list_, index, ".rank"});
      }
    }
    if (!found) file_.refuse(JsonField{list_, index, ".logprob"}.text(), "missing", "given");
    return scored;
  }

  const JsonLines& file_;
  const std::string& list_;
  ScoredText& text_;
};

void read_prompt(dom::array rows, std::span<const std::int32_t> ids, ResponseReader& reader) {
  const std::string list = reader.name("prompt_logprobs");
  ScoredText& text = reader.add();
  text.space = LogprobSpace::raw;
  PromptRowReader row_reader(reader, list, text);
  if (!ids.empty() && ids.size() != length_of(rows)) {
    reader.refuse("prompt_token_ids", fmt::format("{} long", ids.size()),
                  fmt::format("{} long, as prompt_logprobs is", length_of(rows)));
  }
  std::int64_t index = -1;
  for (const dom::element row : rows) {
    ++index;
    if (row.is_null() && text.size() == 0) continue;
    if (!text.start) text.start = index;
    row_reader.read(read_object(reader.file(), row, {list, index}), index,
                    ids.empty() ? -1 : ids[static_cast<std::size_t>(index)]);
  }
  reader.finish("prompt_logprobs", ScoredText::Lists::perhaps_emitted_too, text.start.value_or(0));
}

/// {tokens, token_logprobs, top_logprobs}, all of one length.
class CompletionReader {
 public:
  CompletionReader(dom::object logprobs, std::vector<std::int32_t> ids, ResponseReader& reader)
      : file_(reader.file()),
        tokens_list_(reader.name("logprobs.tokens")),
        logprobs_list_(reader.name("logprobs.token_logprobs")),
        top_list_(reader.name("logprobs.top_logprobs")),
        tokens_(read_array(file_, member_of(file_, logprobs, "tokens", {reader.name("logprobs")}), {tokens_list_})),
        logprobs_(read_array(file_, member_of(file_, logprobs, "token_logprobs", {reader.name("logprobs")}),
                             {logprobs_list_})),
        ids_(std::move(ids)) {
    if (const auto top = find_member(logprobs, "top_logprobs")) top_ = read_array(file_, *top, {top_list_});
    size_ = length_of(tokens_);
    check_length(logprobs_, logprobs_list_);
    if (top_) check_length(*top_, top_list_);
  }

  std::size_t size() const { return size_; }

  void read(ScoredText& text) {
    by_id_ =
        size_ > 0 && (id_of_token_text(read_string(file_, tokens_.at(0).value(), {tokens_list_, 0})) || ids_serve());
    auto logprob = logprobs_.begin();
    dom::array::iterator top;
    if (top_) top = top_->begin();
    std::int64_t index = 0;
    for (const dom::element token : tokens_) {
      read_position(text, index, token, *logprob, top_ ? std::optional(*top) : std::nullopt);
      ++index;
      ++logprob;
      if (top_) ++top;
    }
  }

 private:
  void check_length(dom::array array, const std::string& list) const {
    if (length_of(array) == size_) return;
    file_.refuse(list, fmt::format("{} long", length_of(array)), fmt::format("{} long, as tokens is", size_));
  }

  /// Ids beside the texts name the tokens of a text without lists; the lists' tokens have none.
  bool ids_serve() const { return !top_ && ids_.size() == size_; }

  void read_position(ScoredText& text, std::int64_t index, dom::element token, dom::element logprob,
                     std::optional<dom::element> top) {
    if (logprob.is_null() && index == 0) {
      text.start = 1;  // echo: the very first token follows nothing
      return;
    }
    const std::int32_t number = number_of(text, read_string(file_, token, {tokens_list_, index}), index);
    if (top && !top->is_null()) {
      for (const auto& [key, value] : read_object(file_, *top, {top_list_, index})) {
        const float listed = read_log_probability(file_, value, {top_list_, index});
        if (by_id_) {
          text.list(read_id(key, top_list_, index), listed);
        } else {
          text.list_text(key, listed);
        }
      }
    }
    text.end_position(number, read_log_probability(file_, logprob, {logprobs_list_, index}));
  }

  std::int32_t number_of(ScoredText& text, std::string_view token, std::int64_t index) const {
    if (!by_id_) return text.number_of_text(token);
    return ids_serve() ? ids_[static_cast<std::size_t>(index)] : read_id(token, tokens_list_, index);
  }

  std::int32_t read_id(std::string_view token, const std::string& list, std::int64_t index) const {
    const auto id = id_of_token_text(token);
    if (!id) {
      file_.refuse(JsonField{list, index}.text(), fmt::format("\"{}\"", token.substr(0, 40)),
                   "\"token_id:\" and the id, as the first token");
    }
    return *id;
  }

  const JsonLines& file_;
  std::string tokens_list_;
  std::string logprobs_list_;
  std::string top_list_;
  dom::array tokens_;
  dom::array logprobs_;
  std::optional<dom::array> top_;
  std::vector<std::int32_t> ids_;
  std::size_t size_ = 0;
  bool by_id_ = false;
};

/// An echoed prompt is the text if the output is at most one token, which is then left out; otherwise the prompt is
/// left out.
void cut_echo(ScoredText& text, std::optional<std::int64_t> prompt_tokens, ResponseReader& reader) {
  if (!prompt_tokens || *prompt_tokens <= 1) return;
  const std::int64_t prompt_positions = *prompt_tokens - 1;
  const std::int64_t output = text.size() - prompt_positions;
  if (output < 0) return;
  if (reader.part_of(static_cast<std::size_t>(output)) == ScoredPart::prompt) {
    text.keep(0, prompt_positions);
  } else {
    text.keep(prompt_positions, output);
    text.start = prompt_tokens;
    text.generated = true;
  }
}

void read_completion(CompletionReader& completion, ResponseReader& reader) {
  ScoredText& text = reader.add();
  completion.read(text);
  if (text.start) {
    cut_echo(text, reader.prompt_tokens, reader);
  } else {
    text.generated = true;
    text.start = reader.prompt_tokens;
  }
  reader.finish("logprobs.top_logprobs", ScoredText::Lists::perhaps_emitted_too);
}

void read_chat(dom::array content, std::span<const std::int32_t> ids, ResponseReader& reader) {
  ScoredText& text = reader.add();
  text.generated = true;
  text.start = reader.prompt_tokens;
  read_token_entries(content, reader.name("logprobs.content"), ids, reader, text);
  if (text.space == LogprobSpace::raw) text.sampled = settings_not_stated(true);
  reader.finish("logprobs.content", ScoredText::Lists::perhaps_emitted_too);
}

void read_choice(dom::object choice, std::optional<dom::element> prompt, std::optional<dom::element> prompt_ids,
                 ResponseReader& reader) {
  const JsonLines& file = reader.file();
  if (const auto own = find_member(choice, "prompt_logprobs")) prompt = own;
  if (const auto own = find_member(choice, "prompt_token_ids")) prompt_ids = own;
  const std::vector<std::int32_t> given = read_ids(file, prompt_ids, reader.name("prompt_token_ids"));
  const std::vector<std::int32_t> ids = read_ids(file, find_member(choice, "token_ids"), reader.name("token_ids"));
  if (!given.empty()) reader.prompt_tokens = static_cast<std::int64_t>(given.size());
  std::optional<dom::object> logprobs;
  if (const auto value = find_member(choice, "logprobs"))
    logprobs = read_object(file, *value, {reader.name("logprobs")});
  std::optional<dom::array> content;
  std::optional<CompletionReader> completion;
  std::size_t output = 0;
  if (logprobs) {
    if (const auto value = find_member(*logprobs, "content")) {
      content = read_array(file, *value, {reader.name("logprobs.content")});
      output = length_of(*content);
    } else {
      completion.emplace(*logprobs, ids, reader);
      output = completion->size();
    }
  }
  if (prompt && (!logprobs || reader.part_of(output) == ScoredPart::prompt)) {
    read_prompt(read_array(file, *prompt, {reader.name("prompt_logprobs")}), given, reader);
  } else if (content) {
    read_chat(*content, ids, reader);
  } else if (completion) {
    read_completion(*completion, reader);
  } else {
    reader.refuse("logprobs", "missing", "given (ask the server for logprobs or prompt_logprobs)");
  }
}

}  // namespace

bool is_openai_response(dom::object response) {
  return find_member(response, "choices") || find_member(response, "prompt_logprobs");
}

void read_openai_response(dom::object response, ResponseReader& reader) {
  const auto prompt = find_member(response, "prompt_logprobs");
  const auto prompt_ids = find_member(response, "prompt_token_ids");
  const auto choices = find_member(response, "choices");
  if (!choices) return read_choice(response, prompt, prompt_ids, reader);
  std::optional<std::int64_t> counted;
  if (const auto usage = find_member(response, "usage")) {
    dom::element prompt_tokens;
    if (usage->at_key("prompt_tokens").get(prompt_tokens) == simdjson::SUCCESS) counted = integer_of(prompt_tokens);
  }
  const std::string outside = reader.prefix;
  std::int64_t index = 0;
  const std::string list = reader.name("choices");
  for (const dom::element choice : read_array(reader.file(), *choices, {list})) {
    reader.prefix = fmt::format("{}[{}].", list, index);
    reader.prompt_tokens = counted;
    read_choice(read_object(reader.file(), choice, {list, index}), prompt, prompt_ids, reader);
    ++index;
  }
  reader.prefix = outside;
}

}  // namespace specdec::traces
