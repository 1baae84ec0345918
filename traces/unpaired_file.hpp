#pragma once

#include "traces/file_error.hpp"

namespace specdec::traces {

/// A file of one model where a recording of both is read: open_trace wants it with its other half.
class UnpairedFile : public FileError {
 public:
  using FileError::FileError;
};

}  // namespace specdec::traces
