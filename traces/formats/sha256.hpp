#pragma once

#include <nettle/sha2.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// The SHA-256 of what is added one after another.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, SHA256_DIGEST_SIZE>;

  Sha256() { sha256_init(&context_); }
  void add(std::string_view bytes) {
    sha256_update(&context_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }
  Digest digest() {
    Digest digest;
    sha256_digest(&context_, digest.size(), digest.data());
    return digest;
  }
  /// The digest in 64 hexadecimal digits.
  std::string digits();

 private:
  sha256_ctx context_;
};

}  // namespace specdec::traces
