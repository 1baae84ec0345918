#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "traces/file_error.hpp"

namespace specdec::fuzz {

/// The fuzzer's bytes as a file that lives in memory, since readers map files.
class FuzzedFile {
 public:
  FuzzedFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzzed", 0)) {
    if (descriptor_ < 0) std::abort();
    for (std::size_t done = 0; done < size;) {
      const ssize_t written = write(descriptor_, data + done, size - done);
      if (written < 0) std::abort();
      done += static_cast<std::size_t>(written);
    }
  }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;
  ~FuzzedFile() { close(descriptor_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// Runs a reader. A FileError is an answer; any other exception, and any finding of a sanitizer, is a defect.
template <class Read>
int expect_file_errors_only(const Read& read) {
  try {
    read();
  } catch (const traces::FileError&) {
    return 0;
  }
  return 0;
}

}  // namespace specdec::fuzz
