// Parallel text: several threads format chunks of a batch, and the chunks are written in order.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "report/samples/sink.h"

namespace tacho::report {

// One thread's formatter and its two buffers. The samples it gets have `frames` instead of `stack`, and
// location numbers of 0.
class Pen : public Sink {
 public:
  bool takes_non_samples() const override { return false; }
  // Bytes in the current buffer.
  virtual std::size_t size() const = 0;
  // Switches to the other buffer; write() may then write this one.
  virtual void swap_buffers() = 0;
};

class TextView {
 public:
  virtual ~TextView() = default;
  // The pen locks `symbols` to look up names; null: there is no other pen.
  virtual std::unique_ptr<Pen> fork(std::mutex* symbols) = 0;
  // Writes out bytes [begin, end) of the buffer that the pen filled before swap_buffers().
  virtual Sink::Flow put(Pen& pen, std::size_t begin, std::size_t end) = 0;
};

}  // namespace tacho::report
