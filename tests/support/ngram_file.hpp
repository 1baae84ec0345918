#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace specdec::tests {

/// Counts over three tokens: 0 is followed by 1 (3 times) and 2 (once), 1 by 0 (twice), 2 by nothing.
struct NgramFile {
  std::string metadata = R"({"format":"specdec-ngrams","version":"1","discount":"0.5"})";
  std::vector<std::int64_t> unigram{4, 3, 1};
  std::vector<std::int32_t> offsets{0, 2, 3, 3};
  std::vector<std::int32_t> tokens{1, 2, 0};
  std::vector<std::int32_t> counts{3, 1, 2};

  /// The file as sim::read_ngram_tables takes it.
  std::string bytes() const {
    std::string header = "{\"__metadata__\":";
    header += metadata;
    std::string data;
    const auto add = [&](const char* name, const char* type, const auto& values) {
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
      header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, type, values.size(),
                            begin, data.size());
    };
    add("unigram.counts", "I64", unigram);
    add("bigram.row_offsets", "I32", offsets);
    add("bigram.tokens", "I32", tokens);
    add("bigram.counts", "I32", counts);
    header += '}';
    const std::uint64_t length = header.size();
    std::string start(sizeof length, '\0');
    std::memcpy(start.data(), &length, sizeof length);
    return start.append(header).append(data);
  }
};

}  // namespace specdec::tests
