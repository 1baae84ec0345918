#include "sim/text_scoring.hpp"

#include <algorithm>
#include <vector>

namespace specdec::sim {

void for_each_prefix(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                     std::span<const Token> text, const PrefixVisitor& visit) {
  constexpr std::size_t block_size = 12;
  target.roll_back(0);
  draft.roll_back(0);
  for (std::size_t begin = 0; begin + 1 < prompt.size(); begin += block_size) {
    const auto block = prompt.subspan(begin, std::min(block_size, prompt.size() - 1 - begin));
    target.score(block, {});
    draft.score(block, {});
  }
  if (text.empty()) return;
  const auto vocab = static_cast<std::size_t>(target.vocab_size());
  std::vector<Token> inputs{prompt.back()};
  inputs.insert(inputs.end(), text.begin(), text.end() - 1);
  std::vector<double> target_rows(block_size * vocab);
  std::vector<double> draft_rows(block_size * vocab);
  for (std::size_t begin = 0; begin < inputs.size(); begin += block_size) {
    const auto block = std::span<const Token>(inputs).subspan(begin, std::min(block_size, inputs.size() - begin));
    target.score(block, std::span(target_rows).first(block.size() * vocab));
    draft.score(block, std::span(draft_rows).first(block.size() * vocab));
    for (std::size_t i = 0; i < block.size(); ++i)
      visit(begin + i, std::span(target_rows).subspan(i * vocab, vocab),
            std::span(draft_rows).subspan(i * vocab, vocab));
  }
}

}  // namespace specdec::sim
