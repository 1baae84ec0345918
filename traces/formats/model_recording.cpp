#include "traces/formats/model_recording.hpp"

#include <fmt/format.h>

#include <array>

#include "traces/file_error.hpp"
#include "traces/formats/response_formats.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

struct ResponseFormat {
  std::string_view engine;
  bool (*recognises)(dom::object);
  void (*read)(dom::object, ResponseReader&);
};

constexpr std::array<ResponseFormat, 3> formats = {{{"SGLang", is_sglang_response, read_sglang_response},
                                                    {"llama.cpp", is_llama_server_response, read_llama_server_response},
                                                    {"OpenAI", is_openai_response, read_openai_response}}};

std::string keys_of(dom::object object) {
  constexpr std::size_t most = 8;
  std::string keys;
  std::size_t count = 0;
  for (const auto& [key, value] : object) {
    if (++count > most) return keys + ", ...";
    keys += fmt::format("{}{}", keys.empty() ? "" : ", ", key.substr(0, 30));
  }
  return keys.empty() ? "no keys" : "the keys " + keys;
}

}  // namespace

ModelRecording::ModelRecording(const std::filesystem::path& path) : file_(path) {
  while (reader_.size() == 0 && read_document()) {
  }
  if (reader_.size() == 0) {
    throw FileError(path, "file", "empty", "at least one response with log-probabilities");
  }
  space_ = reader_.texts().front().space;
  generated_ = reader_.texts().front().generated;
  sampled_ = reader_.texts().front().sampled;
}

bool ModelRecording::read_document() {
  next_text_ = 0;
  reader_.clear();
  reader_.prefix.clear();
  if (!file_.next()) return false;
  read_responses(file_.document());
  return true;
}

void ModelRecording::read_responses(dom::element value) {
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return read_response(read_object(file_, value, {"document"}));
  std::int64_t index = 0;
  for (const dom::element element : list) {
    reader_.prefix = fmt::format("[{}].", index);
    read_response(read_object(file_, element, {"", index}));
    ++index;
  }
}

void ModelRecording::read_response(dom::object object) {
  reader_.id.clear();
  reader_.prompt_tokens.reset();
  if (const auto id = find_member(object, "custom_id")) reader_.id = read_string(file_, *id, {"custom_id"});
  dom::element wrapped;
  if (object.at_key("response").get(wrapped) == simdjson::SUCCESS) {
    object = read_object(file_, wrapped, {"response"});
    if (const auto body = find_member(object, "body")) object = read_object(file_, *body, {"response.body"});
  }
  const auto* format = std::find_if(formats.begin(), formats.end(),
                                    [&](const ResponseFormat& known) { return known.recognises(object); });
  if (format == formats.end()) {
    file_.refuse("document", "an object with " + keys_of(object),
                 "a response with log-probabilities (choices, prompt_logprobs, meta_info, completion_probabilities, "
                 "topk_logits or logprobs_b64)");
  }
  const std::size_t before = reader_.size();
  format->read(object, reader_);
  reader_.number_ids(before);
  note_model(object, format->engine);
}

void ModelRecording::note_model(dom::object response, std::string_view engine) {
  if (!engine_.empty()) return;
  engine_ = engine;
  dom::element model;
  std::string_view name;
  if (response.at_key("model").get(model) == simdjson::SUCCESS && model.get(name) == simdjson::SUCCESS) model_ = name;
}

const ScoredText* ModelRecording::next() {
  while (next_text_ == reader_.size()) {
    if (!read_document()) return nullptr;
  }
  const ScoredText& text = reader_.texts()[next_text_++];
  check_kind(text);
  return &text;
}

void ModelRecording::check_kind(const ScoredText& text) const {
  const auto part = [](bool generated) { return generated ? "of what was generated" : "of what was given"; };
  if (text.generated && generated_ && text.sampled != sampled_) {
    file_.refuse("text", sampling_text(text.sampled), sampling_text(sampled_) + ", as the first request's");
  }
  if (text.space == space_ && text.generated == generated_) return;
  file_.refuse("log-probabilities", fmt::format("{}, {}", name_of(text.space), part(text.generated)),
               fmt::format("{}, {}, as the first request's", name_of(space_), part(generated_)));
}

std::string ModelRecording::sampling_text(const SampledWith& s) {
  if (!s.temperature) return "sampled with settings that are not told";
  std::string text = fmt::format("sampled at temperature {}{}, top-k {}, top-p {}, min-p {}", *s.temperature,
                                 *s.temperature_last ? " after the cuts" : "", *s.top_k, *s.top_p, *s.min_p);
  if (s.bans_ends) text += ", its ends banned";
  if (s.bias) text += fmt::format(", {} {}", s.bias->field, s.bias->value);
  return text;
}

void ModelRecording::index_ids() {
  index_.emplace();
  file_.rewind();
  while (read_document()) {
    for (std::size_t i = 0; i < reader_.size(); ++i) {
      const std::string& id = reader_.texts()[i].id;
      if (!id.empty() && !index_->try_emplace(id, Location{file_.place(), i}).second) {
        file_.refuse("custom_id", id, "one request's only");
      }
    }
  }
}

const ScoredText* ModelRecording::find(const std::string& id) {
  if (!index_) index_ids();
  const auto found = index_->find(id);
  if (found == index_->end()) return nullptr;
  if (reader_.size() == 0 || file_.place().offset != found->second.place.offset) {
    file_.seek(found->second.place);
    read_document();
  }
  next_text_ = found->second.text;
  return next();
}

}  // namespace specdec::traces
