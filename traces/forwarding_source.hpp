#pragma once

#include <memory>
#include <utility>

#include "traces/position_source.hpp"

namespace specdec::traces {

/// A recording made of another one, of which all is passed on but what a derived class says otherwise.
class ForwardingSource : public PositionSource {
 public:
  /// @param source  non-null
  explicit ForwardingSource(std::unique_ptr<PositionSource> source) : source_(std::move(source)) {}

  const TraceMetadata& metadata() const override { return source_->metadata(); }
  std::vector<std::filesystem::path> files() const override { return source_->files(); }
  std::string format() const override { return source_->format(); }
  std::vector<Note> notes() const override { return source_->notes(); }
  /// Those of the whole recording.
  std::optional<std::int64_t> positions() const override { return source_->positions(); }
  std::int64_t depths() const override { return source_->depths(); }
  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    return source_->refusal(position, role, std::move(found), std::move(expected));
  }

 protected:
  PositionSource& source() const { return *source_; }

 private:
  std::unique_ptr<PositionSource> source_;
};

}  // namespace specdec::traces
