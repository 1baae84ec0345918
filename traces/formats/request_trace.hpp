#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace specdec::traces {

/// A request as it arrived at a service.
struct RequestArrival {
  /// Seconds since the first request, >= 0, nondecreasing.
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

/// Reads requests; the format is determined from the content:
///
///   azure          TIMESTAMP,ContextTokens,GeneratedTokens   2023-11-16 18:17:03.9799600,4808,10
///                  also with T instead of the blank, and with Z or +00:00 appended, as in 2024's traces
///   mooncake       {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [..]}   milliseconds;
///                  one object per line, or an array of them; hash_ids is optional and ignored
///   request table  seconds,prompt_tokens,output_tokens, or JSON with these keys
///
/// Columns come in any order. Others are rejected: a timestamp beside them may have another unit.
/// @throws FileError  with line and column or key: a missing one, negative or decreasing times, lengths that are not
///   integers or not in [1, 2^30], an empty file
RequestTrace read_request_trace(const std::filesystem::path& path);

}  // namespace specdec::traces
