#pragma once

#include "traces/file_error.hpp"

namespace specdec::traces {

/// A file of one model where a recording of both is required: open_trace needs its counterpart.
class UnpairedFile : public FileError {
 public:
  using FileError::FileError;
};

}  // namespace specdec::traces
