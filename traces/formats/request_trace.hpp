#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace specdec::traces {

/// A request as it reached a service.
struct RequestArrival {
  /// Since the first request, >= 0, never before the request above it.
  double seconds = 0;
  /// Tokens, each in [1, 2^30].
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
};

/// Requests in order of arrival.
struct RequestTrace {
  std::filesystem::path path;
  /// "azure", "mooncake", "request table".
  std::string_view format;
  std::vector<RequestArrival> requests;
};

/// Reads requests; the format is told from the content:
///
///   azure          TIMESTAMP,ContextTokens,GeneratedTokens   2023-11-16 18:17:03.9799600,4808,10
///                  also with T for the blank, and with Z or +00:00 behind, as in 2024's traces
///   mooncake       {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [..]}   milliseconds;
///                  one object a line, or an array of them; hash_ids, which may be missing, is not looked at
///   request table  seconds,prompt_tokens,output_tokens, or JSON with these keys
///
/// Columns come in any order. Others are refused: a timestamp beside them may have another unit.
/// @throws FileError  with line and column or key: a missing one, negative or falling times, lengths that are not whole
///   or not in [1, 2^30], an empty file
RequestTrace read_request_trace(const std::filesystem::path& path);

}  // namespace specdec::traces
