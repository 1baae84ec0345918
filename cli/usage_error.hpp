#pragma once

#include <stdexcept>

namespace specdec::cli {

/// Wrong usage or wrong input: the frame prints its one line on standard error and exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace specdec::cli
