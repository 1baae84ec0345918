#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// Internal header of the library.

/// The texts of a file of responses by one model, in any of the formats of response_formats.hpp; JSON or
/// JSONL, one response or a list of responses per document.
///
/// A response may be on its own or in the lines of OpenAI's batch format, whose custom_id is then the id of its text
/// (followed by '#' and a number if it has several):
///
///   {"custom_id": "a", "response": {"status_code": 200, "body": RESPONSE}, "error": null}
class ModelRecording {
 public:
  /// Reads the first text. @throws FileError if there is none
  explicit ModelRecording(const std::filesystem::path& path);

  /// The first text's values, which all texts of the file must share.
  std::string_view engine() const { return engine_; }
  const std::string& model() const { return model_; }
  LogprobSpace space() const { return space_; }
  bool generated() const { return generated_; }
  const SampledWith& sampled() const { return sampled_; }
  const JsonLines& file() const { return file_; }

  /// The next text, valid until the next call of any function; null at the end.
  const ScoredText* next();
  /// The text with that id, wherever it is; null if there is none. The first call reads the file to its end.
  const ScoredText* find(const std::string& id);

 private:
  struct Location {
    JsonLines::Place place;
    std::size_t text = 0;
  };

  bool read_document();
  void read_responses(simdjson::dom::element value);
  void read_response(simdjson::dom::object object);
  void note_model(simdjson::dom::object response, std::string_view engine);
  void check_kind(const ScoredText& text) const;
  static std::string sampling_text(const SampledWith& sampled);
  void index_ids();

  JsonLines file_;
  ResponseReader reader_{file_};
  std::size_t next_text_ = 0;
  std::string engine_;
  std::string model_;
  LogprobSpace space_ = LogprobSpace::unknown;
  bool generated_ = false;
  SampledWith sampled_;
  std::optional<std::unordered_map<std::string, Location>> index_;
};

}  // namespace specdec::traces
