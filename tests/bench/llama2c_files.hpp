#pragma once

#include <filesystem>

#include "tests/support/random_checkpoint.hpp"

namespace specdec::bench {

/// Writes the checkpoint as llama2.c reads it, with a tokenizer of made-up words: model.bin and tokenizer.bin.
void write_llama2c_files(const std::filesystem::path& folder, const tests::Shape& shape,
                         const std::vector<tests::NamedTensor>& tensors);

}  // namespace specdec::bench
