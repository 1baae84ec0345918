#include "traces/formats/response_formats.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view probabilities_key = "completion_probabilities";

/// One {id, token, logprob} of a list; log-probability or probability.
struct TokenEntry {
  std::optional<std::int32_t> id;
  std::string_view text;
  float logprob = 0;
  bool sampled_from = false;  ///< `prob`
  bool has_own_id = false;    ///< `id`, which only llama-server writes
  std::optional<dom::array> top;
};

/// Reads one entry in a single pass over its keys.
class EntryReader {
 public:
  EntryReader(const JsonLines& file, std::string_view list) : file_(file), list_(list) {}

  TokenEntry read(dom::element value, std::int64_t index, std::string_view member = {}) const {
    TokenEntry entry;
    bool has_number = false;
    bool has_name = false;
    for (const auto& [key, field] : read_object(file_, value, {list_, index, member})) {
      if (key == "logprob") {
        entry.logprob = read_log_probability(file_, field, {list_, index, ".logprob"});
        has_number = true;
      } else if (key == "prob") {
        entry.logprob = read_probability(file_, field, {list_, index, ".prob"});
        has_number = entry.sampled_from = true;
      } else if (key == "token" || key == "tok_str") {
        entry.text = read_string(file_, field, {list_, index, ".token"});
        has_name = true;
        if (!entry.id) entry.id = id_of_token_text(entry.text);
      } else if (key == "id") {
        entry.id = read_token_id(file_, field, {list_, index, ".id"});
        has_name = entry.has_own_id = true;
      } else if ((key == "top_logprobs" || key == "top_probs") && !field.is_null()) {
        entry.top = read_array(file_, field, {list_, index, ".top_logprobs"});
      }
    }
    if (!has_number) file_.refuse(JsonField{list_, index, ".logprob"}.text(), "missing", "given");
    if (!has_name) file_.refuse(JsonField{list_, index, ".token"}.text(), "missing", "given");
    return entry;
  }

 private:
  const JsonLines& file_;
  std::string_view list_;
};

/// [{content, probs: [{tok_str, prob}]}]
void read_old_entries(dom::array entries, const std::string& list, ResponseReader& reader, ScoredText& text) {
  const EntryReader entry_reader(reader.file(), list);
  JsonField field{list};
  for (const dom::element value : entries) {
    ++field.index;
    const dom::object object = read_object(reader.file(), value, field);
    const std::string_view content =
        read_string(reader.file(), member_of(reader.file(), object, "content", field), {list, field.index, ".content"});
    const std::int32_t number = text.number_of_text(content);
    std::optional<float> logprob;
    for (const dom::element listed :
         read_array(reader.file(), member_of(reader.file(), object, "probs", field), {list, field.index, ".probs"})) {
      const TokenEntry entry = entry_reader.read(listed, field.index, ".probs");
      if (!logprob && entry.text == content) logprob = entry.logprob;
      text.list_text(entry.text, entry.logprob);
    }
    if (!logprob)
      reader.file().refuse(JsonField{list, field.index, ".probs"}.text(), "without the token that was written",
                           "with it (a larger n_probs)");
    text.end_position(number, logprob);
  }
}

}  // namespace

void read_token_entries(dom::array entries, const std::string& list, std::span<const std::int32_t> token_ids,
                        ResponseReader& reader, ScoredText& text) {
  const EntryReader entry_reader(reader.file(), list);
  std::int64_t index = -1;
  bool by_id = false;
  for (const dom::element value : entries) {
    ++index;
    TokenEntry emitted = entry_reader.read(value, index);
    const bool has_list = emitted.top && emitted.top->begin() != emitted.top->end();
    // Ids beside the text only help for a text without lists: the lists' tokens have none.
    if (!emitted.id && !has_list && static_cast<std::size_t>(index) < token_ids.size()) {
      emitted.id = token_ids[static_cast<std::size_t>(index)];
    }
    if (index == 0) by_id = emitted.id.has_value();
    if (by_id != emitted.id.has_value()) {
      reader.file().refuse(JsonField{list, index}.text(), by_id ? "without an id" : "with an id",
                           by_id ? "with one, as the tokens before" : "without, as the tokens before");
    }
    if (emitted.has_own_id) text.space = LogprobSpace::raw;
    if (emitted.sampled_from) text.space = LogprobSpace::processed;
    const std::int32_t token = by_id ? *emitted.id : text.number_of_text(emitted.text);
    if (has_list) {
      for (const dom::element listed : *emitted.top) {
        const TokenEntry entry = entry_reader.read(listed, index, ".top_logprobs");
        if (by_id && !entry.id) {
          reader.file().refuse(JsonField{list, index, ".top_logprobs"}.text(), "without an id",
                               "with ids, as the token");
        }
        if (by_id) {
          text.list(*entry.id, entry.logprob);
        } else {
          text.list_text(entry.text, entry.logprob);
        }
      }
    }
    text.end_position(token, emitted.logprob);
  }
}

bool is_llama_server_response(dom::object response) { return find_member(response, probabilities_key).has_value(); }

void read_llama_server_response(dom::object response, ResponseReader& reader) {
  const std::string list = reader.name(probabilities_key);
  const dom::array entries = read_array(reader.file(), *find_member(response, probabilities_key), {list});
  ScoredText& text = reader.add();
  text.generated = true;
  if (const auto evaluated = find_member(response, "tokens_evaluated")) text.start = integer_of(*evaluated);
  dom::element content;
  const bool old = entries.at(0).at_key("probs").get(content) == simdjson::SUCCESS;
  old ? read_old_entries(entries, list, reader, text) : read_token_entries(entries, list, {}, reader, text);
  text.sampled = read_generation_settings(response, reader, text.space != LogprobSpace::processed);
  reader.finish(probabilities_key, ScoredText::Lists::most_probable);
}

}  // namespace specdec::traces
