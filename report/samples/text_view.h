// Parallel text: several threads format chunks of a batch, and the chunks are written in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "report/samples/batches.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sample_lane.h"
#include "report/samples/sink.h"
#include "report/samples/stack_table.h"

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

// Gives the samples of batches to a pen.
class TextLane {
 public:
  // All must outlive it.
  TextLane(SampleLane& lane, Pen& pen) : lane_(&lane), pen_(&pen) {}
  ChainReader& reader() { return reader_; }
  void give(const BatchRecord& item);

 private:
  Location location_of(const BatchRecord& item, std::uint64_t ip, std::uint8_t mode);

  SampleLane* lane_;
  Pen* pen_;
  ChainReader reader_;
  struct CachedMapping {
    symbolize::AddressRange range{1, 0, nullptr};  // none yet: last is before first
    std::uint8_t cpumode = 0;
  };
  RangeCache<CachedMapping, 8, 128> mappings_;
  std::vector<Location> frames_;  // scratch
};

}  // namespace tacho::report
