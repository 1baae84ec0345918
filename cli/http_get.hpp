#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace specdec::cli {

/// An address of plain HTTP, taken apart.
struct HttpAddress {
  std::string host, port, path;

  /// The host is "localhost" or an address of the loopback, which no name service and no network is asked for.
  bool is_loopback() const;
};

/// "http://HOST[:PORT][/PATH]", the host of IPv6 in brackets.
/// @throws UsageError naming the option
HttpAddress http_address(std::string_view option, std::string_view url);

/// The answer of a server; redirections are answers.
struct HttpAnswer {
  unsigned status = 0;
  /// "404 Not Found".
  std::string status_line;
  std::string body;
};

/// Why there is no answer: "Connection refused".
class HttpFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One GET, of a body of 64 MiB at most.
/// @param limit  until the last byte of the answer
/// @throws HttpFailure
HttpAnswer http_get(const HttpAddress& address, std::chrono::milliseconds limit);

}  // namespace specdec::cli
