#include "traces/formats/response_reader.hpp"

#include <fmt/format.h>

#include <iterator>

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {

ScoredText& ResponseReader::add() {
  if (used_ == texts_.size()) texts_.emplace_back();
  ScoredText& text = texts_[used_++];
  text = ScoredText();
  text.id = id;
  text.line = file_.line();
  return text;
}

void ResponseReader::finish(std::string_view list, ScoredText::Lists lists, std::int64_t first) {
  if (const auto position = texts_[used_ - 1].finish(lists)) {
    refuse(fmt::format("{}[{}]", list, first + *position), "probabilities that sum to more than 1", "at most 1 in sum");
  }
}

void ResponseReader::number_ids(std::size_t first) {
  if (id.empty() || used_ - first < 2) return;
  for (std::size_t i = first; i < used_; ++i) texts_[i].id += fmt::format("#{}", i - first);
}

ScoredPart ResponseReader::part_of(std::size_t output_positions) {
  if (!part_) part_ = output_positions > 1 ? ScoredPart::output : ScoredPart::prompt;
  return *part_;
}

std::optional<std::int32_t> id_of_token_text(std::string_view text) {
  constexpr std::string_view prefix = "token_id:";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const auto id = number_in<std::int32_t>(text);
  return id && *id >= 0 ? id : std::nullopt;
}

std::size_t length_of(simdjson::dom::array array) {
  constexpr std::size_t saturated = 0xFFFFFF;
  const std::size_t size = array.size();
  return size < saturated ? size : static_cast<std::size_t>(std::distance(array.begin(), array.end()));
}

}  // namespace specdec::traces
