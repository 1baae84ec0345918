#include "traces/formats/response_formats.hpp"

#include <fmt/format.h>

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

/// [log-probability or null, id, text or null]
struct Entry {
  std::optional<float> logprob;
  std::int32_t id = -1;
};

Entry read_entry(const JsonLines& file, dom::element value, const JsonField& field) {
  const dom::array parts = read_array(file, value, field);
  auto part = parts.begin();
  if (part == parts.end()) file.refuse(field.text(), "empty", "[log-probability, token id, text]");
  Entry entry;
  if (!(*part).is_null()) entry.logprob = read_log_probability(file, *part, field);
  if (++part == parts.end()) file.refuse(field.text(), "without a token id", "[log-probability, token id, text]");
  entry.id = read_token_id(file, *part, field);
  return entry;
}

void read_part(dom::array tokens, std::optional<dom::array> top, std::string_view part, ResponseReader& reader) {
  const JsonLines& file = reader.file();
  const std::string list = reader.name(fmt::format("meta_info.{}_token_logprobs", part));
  const std::string top_list = reader.name(fmt::format("meta_info.{}_top_logprobs", part));
  ScoredText& text = reader.add();
  if (top && length_of(*top) != length_of(tokens)) {
    file.refuse(top_list, fmt::format("{} long", length_of(*top)),
                fmt::format("{} long, as the token log-probabilities are", length_of(tokens)));
  }
  dom::array::iterator listed;
  if (top) listed = top->begin();
  std::int64_t index = -1;
  std::int64_t without = 0;
  for (const dom::element token : tokens) {
    ++index;
    const std::optional<dom::element> row = top ? std::optional(*listed) : std::nullopt;
    if (top) ++listed;
    const Entry emitted = read_entry(file, token, {list, index});
    if (!emitted.logprob && index == 0) {
      ++without;  // the first token of the input follows nothing
      continue;
    }
    if (!emitted.logprob) file.refuse(JsonField{list, index}.text(), "without a log-probability", "with one");
    if (row && !row->is_null()) {
      for (const dom::element value : read_array(file, *row, {top_list, index})) {
        const Entry entry = read_entry(file, value, {top_list, index});
        if (!entry.logprob) file.refuse(JsonField{top_list, index}.text(), "without a log-probability", "with one");
        text.list(entry.id, *entry.logprob);
      }
    }
    text.end_position(emitted.id, emitted.logprob);
  }
  const bool prompt = part == "input";
  text.space = prompt ? LogprobSpace::raw : LogprobSpace::processed;
  text.generated = !prompt;
  if (reader.prompt_tokens) {
    text.start = prompt ? *reader.prompt_tokens - length_of(tokens) + without : *reader.prompt_tokens;
  }
  reader.finish(fmt::format("meta_info.{}_top_logprobs", part), ScoredText::Lists::most_probable, without);
}

}  // namespace

bool is_sglang_response(dom::object response) { return find_member(response, "meta_info").has_value(); }

void read_sglang_response(dom::object response, ResponseReader& reader) {
  const JsonLines& file = reader.file();
  const dom::object meta = read_object(file, *find_member(response, "meta_info"), {reader.name("meta_info")});
  const auto array_of = [&](std::string_view key) -> std::optional<dom::array> {
    const auto value = find_member(meta, key);
    if (!value) return std::nullopt;
    const dom::array array = read_array(file, *value, {reader.name(fmt::format("meta_info.{}", key))});
    return array.begin() != array.end() ? std::optional(array) : std::nullopt;
  };
  const auto input = array_of("input_token_logprobs");
  const auto output = array_of("output_token_logprobs");
  reader.prompt_tokens.reset();
  if (const auto counted = find_member(meta, "prompt_tokens")) reader.prompt_tokens = integer_of(*counted);
  if (!input && !output) {
    reader.refuse("meta_info", "without log-probabilities",
                  "with input_token_logprobs or output_token_logprobs (ask with return_logprob)");
  }
  // One element is the last of a prompt that was not requested.
  const bool scored = input && length_of(*input) > 1;
  const bool is_prompt = !output || (scored && reader.part_of(length_of(*output)) == ScoredPart::prompt);
  if (!is_prompt) {
    read_part(*output, array_of("output_top_logprobs"), "output", reader);
  } else {
    read_part(*input, array_of("input_top_logprobs"), "input", reader);
  }
}

}  // namespace specdec::traces
