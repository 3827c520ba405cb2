// Inflates independent zstd frames on worker threads, a few records ahead of the reader. A frame that no
// worker has started when the reader needs it is inflated by the reader.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "format/base/buffer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/time_order.h"

namespace tacho::format {

// The inflated size in bytes of a frame that can be inflated alone: it is whole and has its size, at most
// `limit`, in its header. Else nothing.
std::optional<std::size_t> standalone_frame_size(Bytes packed, std::size_t limit);

class InflateAhead {
 public:
  // A frame being inflated. Its bytes must stay valid until take_block().
  class Job;
  using JobRef = std::shared_ptr<Job>;

  InflateAhead();
  InflateAhead(InflateAhead&&) noexcept;
  InflateAhead& operator=(InflateAhead&&) noexcept;
  ~InflateAhead();

  // `size`: as standalone_frame_size() said. `keep` holds the packed bytes.
  JobRef start(Bytes packed, std::size_t size, BlockRef keep);
  // Waits for the job, or does it.
  Result<std::shared_ptr<Block>> take_block(const JobRef& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::format
