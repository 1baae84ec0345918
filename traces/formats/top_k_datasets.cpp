#include "traces/formats/top_k_datasets.hpp"

#include <fmt/format.h>
#include <nettle/base64.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

/// The elements of a base64 text, which must be `count`.
template <class Number>
std::vector<Number> read_base64(dom::object object, std::string_view key, std::size_t count, ResponseReader& reader) {
  const std::string name = reader.name(key);
  const std::string_view text = read_string(reader.file(), member_of(reader.file(), object, key, {}), {name});
  const std::size_t bytes = count * sizeof(Number);
  // The text's length is checked before anything is allocated by the shape's size.
  if (text.size() != (bytes + 2) / 3 * 4) {
    reader.refuse(key, fmt::format("{} characters long", text.size()),
                  fmt::format("base64 of {} bytes, as shape says", bytes));
  }
  std::vector<Number> numbers(BASE64_DECODE_LENGTH(text.size()) / sizeof(Number) + 1);
  base64_decode_ctx context{};
  base64_decode_init(&context);
  std::size_t length = numbers.size() * sizeof(Number);
  const bool decoded = base64_decode_update(&context, &length, reinterpret_cast<std::uint8_t*>(numbers.data()),
                                            text.size(), text.data()) == 1 &&
                       base64_decode_final(&context) == 1;
  if (!decoded || length != bytes) {
    reader.refuse(key, "no base64 of that length", fmt::format("base64 of {} bytes, as shape says", bytes));
  }
  numbers.resize(count);
  return numbers;
}

/// [B, T, K], each at least 1 and their product no more than a document can hold.
std::array<std::size_t, 3> read_shape(dom::object object, ResponseReader& reader) {
  const std::string name = reader.name("shape");
  const dom::element value = member_of(reader.file(), object, "shape", {});
  std::array<std::size_t, 3> shape{};
  std::size_t dimensions = 0;
  std::size_t product = 1;
  for (const dom::element extent : read_array(reader.file(), value, {name})) {
    const std::int64_t n = integer_of(extent).value_or(0);
    if (dimensions == shape.size() || n < 1 || n > static_cast<std::int64_t>(JsonLines::longest_document)) {
      dimensions = 0;
      break;
    }
    shape[dimensions++] = static_cast<std::size_t>(n);
    product = std::min(product * static_cast<std::size_t>(n), JsonLines::longest_document);
  }
  if (dimensions != shape.size() || product == JsonLines::longest_document) {
    reader.file().refuse(name, simdjson::minify(value).substr(0, 60),
                         "[B, T, K], integers from 1 on, of a document's size");
  }
  return shape;
}

std::vector<std::size_t> read_lengths(dom::object object, std::size_t texts, std::size_t longest,
                                      ResponseReader& reader) {
  const auto value = find_member(object, "completion_lengths");
  if (!value) return std::vector<std::size_t>(texts, longest);
  std::vector<std::size_t> lengths;
  const std::string name = reader.name("completion_lengths");
  JsonField field{name};
  for (const dom::element element : read_array(reader.file(), *value, field)) {
    ++field.index;
    const std::int64_t length = integer_of(element).value_or(-1);
    if (length < 0 || static_cast<std::size_t>(length) > longest) {
      reader.file().refuse(field.text(), element, fmt::format("an integer in [0, {}]", longest));
    }
    lengths.push_back(static_cast<std::size_t>(length));
  }
  if (lengths.size() != texts) {
    reader.refuse("completion_lengths", fmt::format("{} long", lengths.size()), fmt::format("{} long", texts));
  }
  return lengths;
}

/// A number of a decoded array as a log-probability.
float checked(float value, std::string_view key, std::size_t index, const ResponseReader& reader) {
  const auto logprob = log_probability_of(value);
  if (!logprob) {
    reader.refuse(fmt::format("{} number {}", key, index), fmt::format("{}", value),
                  "a log-probability, a number up to 0");
  }
  return *logprob;
}

std::size_t rows_of(dom::object object, std::string_view key, std::optional<std::size_t> rows, ResponseReader& reader,
                    dom::array& array) {
  array = read_array(reader.file(), member_of(reader.file(), object, key, {}), {key});
  const std::size_t length = length_of(array);
  if (rows && length != *rows) {
    reader.refuse(key, fmt::format("{} long", length), fmt::format("{} long, as topk_logits is", *rows));
  }
  return length;
}

}  // namespace

bool is_nemo_text(dom::object object) { return find_member(object, "topk_logits").has_value(); }

void read_nemo_text(dom::object object, ResponseReader& reader) {
  const JsonLines& file = reader.file();
  dom::array logits;
  dom::array ids;
  dom::array sums;
  const std::size_t rows = rows_of(object, "topk_logits", std::nullopt, reader, logits);
  rows_of(object, "topk_token_ids", rows, reader, ids);
  rows_of(object, "log_sum_exp_logits", rows, reader, sums);
  const dom::array tokens = read_array(file, member_of(file, object, "tokens", {}), {"tokens"});
  const std::size_t length = length_of(tokens);
  if (length != rows && length != rows + 1) {
    reader.refuse("tokens", fmt::format("{} long", length),
                  fmt::format("{} or {} long: a row a token", rows, rows + 1));
  }
  ScoredText& text = reader.add();
  text.space = LogprobSpace::raw;
  text.start = 1;
  auto row = logits.begin();
  auto row_ids = ids.begin();
  auto sum = sums.begin();
  auto token = tokens.begin();
  for (std::int64_t t = 0; t + 1 < static_cast<std::int64_t>(length); ++t, ++row, ++row_ids, ++sum) {
    const double normaliser = number_of(*sum).value_or(NAN);
    if (!std::isfinite(normaliser)) file.refuse(JsonField{"log_sum_exp_logits", t}.text(), *sum, "a finite number");
    const dom::array values = read_array(file, *row, {"topk_logits", t});
    const dom::array names = read_array(file, *row_ids, {"topk_token_ids", t});
    auto name = names.begin();
    for (const dom::element value : values) {
      if (name == names.end()) file.refuse(JsonField{"topk_token_ids", t}.text(), "shorter than the logits", "as long");
      const auto logit = number_of(value);
      const auto logprob = logit ? log_probability_of(*logit - normaliser) : std::nullopt;
      if (!logprob) {
        file.refuse(JsonField{"topk_logits", t}.text(), value,
                    fmt::format("numbers up to log_sum_exp_logits ({})", normaliser));
      }
      text.list(read_token_id(file, *name, {"topk_token_ids", t}), *logprob);
      ++name;
    }
    if (name != names.end()) file.refuse(JsonField{"topk_token_ids", t}.text(), "longer than the logits", "as long");
    ++token;
    text.end_position(read_token_id(file, *token, {"tokens", t + 1}), std::nullopt);
  }
  reader.finish("topk_logits", ScoredText::Lists::most_probable);
}

bool is_trl_batch(dom::object object) { return find_member(object, "logprobs_b64").has_value(); }

void read_trl_batch(dom::object object, ResponseReader& reader) {
  const auto [texts, longest, k] = read_shape(object, reader);
  const std::vector<std::size_t> lengths = read_lengths(object, texts, longest, reader);
  const auto logprobs = read_base64<float>(object, "logprobs_b64", texts * longest * k, reader);
  const auto ids = read_base64<std::int32_t>(object, "token_ids_b64", texts * longest * k, reader);
  const bool named = find_member(object, "actual_token_ids_b64") && find_member(object, "actual_logprobs_b64");
  std::vector<float> actual_logprobs;
  std::vector<std::int32_t> actual_ids;
  if (named) {
    actual_logprobs = read_base64<float>(object, "actual_logprobs_b64", texts * longest, reader);
    actual_ids = read_base64<std::int32_t>(object, "actual_token_ids_b64", texts * longest, reader);
  }
  for (std::size_t b = 0; b < texts; ++b) {
    ScoredText& text = reader.add();
    for (std::size_t t = 0; t < lengths[b]; ++t) {
      const std::size_t position = b * longest + t;
      for (std::size_t j = position * k; j < (position + 1) * k; ++j) {
        text.list(ids[j], checked(logprobs[j], "logprobs_b64", j, reader));
      }
      text.end_position(named ? actual_ids[position] : -1,
                        named
                            ? std::optional(checked(actual_logprobs[position], "actual_logprobs_b64", position, reader))
                            : std::nullopt);
    }
    reader.finish(fmt::format("logprobs_b64[{}]", b), ScoredText::Lists::most_probable);
  }
}

}  // namespace specdec::traces
