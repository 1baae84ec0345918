#include "cli/http_get.hpp"

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include "cli/usage_error.hpp"

#include "cli/values.hpp"
#include "render/version.hpp"

namespace specdec::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint64_t longest_body = std::uint64_t{64} << 20U;

/// One connection. Its operations follow one another, all within one limit of time.
class Exchange {
 public:
  explicit Exchange(std::chrono::milliseconds limit) : stream_(context_) { stream_.expires_after(limit); }

  HttpAnswer get(const HttpAddress& address) {
    connect(address);
    http::request<http::empty_body> request(http::verb::get, address.path, 11);
    request.set(http::field::host, fmt::format("{}:{}", address.host, address.port));
    request.set(http::field::user_agent, fmt::format("specdec/{}", render::version()));
    request.set(http::field::accept, "text/plain;version=0.0.4");
    request.set(http::field::connection, "close");
    finish([&](auto done) { http::async_write(stream_, request, done); });
    http::response_parser<http::string_body> parser;
    parser.body_limit(longest_body);
    beast::flat_buffer buffer;
    try {
      finish([&](auto done) { http::async_read(stream_, buffer, parser, done); });
    } catch (const HttpFailure&) {
      if (!is_tls(buffer)) throw;
      throw HttpFailure("the answer is TLS: the server speaks HTTPS, and only plain HTTP is read");
    }
    http::response<http::string_body> response = parser.release();
    const auto reason = response.reason();
    return {response.result_int(),
            fmt::format("{}{}{}", response.result_int(), reason.empty() ? "" : " ",
                        std::string_view(reason.data(), reason.size())),
            std::move(response.body())};
  }

 private:
  /// An alert or a handshake of TLS 1.0 to 1.3.
  static bool is_tls(const beast::flat_buffer& buffer) {
    const std::string_view bytes(static_cast<const char*>(buffer.data().data()), buffer.size());
    return bytes.starts_with("\x15\x03") || bytes.starts_with("\x16\x03");
  }

  void connect(const HttpAddress& address) {
    beast::error_code error;
    const auto endpoints = asio::ip::tcp::resolver(context_).resolve(address.host, address.port, error);
    if (error) throw HttpFailure(error.message());
    finish([&](auto done) { stream_.async_connect(endpoints, done); });
  }

  /// Runs one operation to its end, or to that of the time.
  template <class Start>
  void finish(const Start& start) {
    beast::error_code error;
    start([&error](beast::error_code how, auto&&...) { error = how; });
    context_.restart();
    context_.run();
    if (error == beast::error::timeout) throw HttpFailure("no answer in time");
    if (error == http::error::end_of_stream) throw HttpFailure("the connection was closed without an answer");
    if (error == http::error::body_limit)
      throw HttpFailure(fmt::format("the answer is longer than {} MiB", longest_body >> 20U));
    if (error == http::error::header_limit) throw HttpFailure("the header of the answer is too long");
    if (error == http::error::partial_message) throw HttpFailure("the answer is cut off");
    if (error.category() == http::make_error_code(http::error::bad_version).category())
      throw HttpFailure(fmt::format("an answer that is not HTTP ({})", error.message()));
    if (error) throw HttpFailure(error.message());
  }

  asio::io_context context_{1};
  beast::tcp_stream stream_;
};

/// Splits "HOST:PORT"; the port is "80" if there is none.
std::pair<std::string_view, std::string_view> host_and_port(std::string_view authority) {
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view port = colon == std::string_view::npos ? "80" : authority.substr(colon + 1);
  const std::string_view host = authority.substr(0, colon);
  if (bracket == std::string_view::npos) return {host, port};
  return {host.ends_with(']') ? host.substr(1, bracket - 1) : std::string_view(), port};
}

}  // namespace

bool HttpAddress::is_loopback() const {
  beast::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

HttpAddress http_address(std::string_view option, std::string_view url) {
  constexpr std::string_view scheme = "http://";
  const auto refused = [&] {
    refuse(option, url, "http://HOST:PORT/PATH, for instance http://127.0.0.1:8000/metrics");
  };
  if (!url.starts_with(scheme)) refused();
  const std::string_view rest = url.substr(scheme.size());
  const std::size_t slash = rest.find('/');
  const auto [host, port] = host_and_port(rest.substr(0, slash));
  const bool is_legal = url.find_first_of(" \t\r\n#@") == std::string_view::npos;
  if (host.empty() || !is_legal) refused();
  parse_integer(fmt::format("port in {}", option), port, 1, 65535);
  return {std::string(host), std::string(port),
          std::string(slash == std::string_view::npos ? "/" : rest.substr(slash))};
}

HttpAnswer http_get(const HttpAddress& address, std::chrono::milliseconds limit) {
  return Exchange(limit).get(address);
}

}  // namespace specdec::cli
