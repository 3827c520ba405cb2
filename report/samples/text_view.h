// Parallel text: several threads format chunks of a batch, and the chunks are written in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "report/samples/batches.h"
#include "report/samples/place_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sample_lane.h"
#include "report/samples/sink.h"
#include "report/samples/stack_table.h"

namespace tacho::report {

// A thread's formatter with a buffer. Its samples have frames instead of stacks, and locations without
// numbers.
class Pen : public Sink {
 public:
  bool takes_others() const override { return false; }
  // Bytes in the current buffer.
  virtual std::size_t size() const = 0;
  // Goes on with the other buffer, while put() writes out this one.
  virtual void swap_buffers() = 0;
};

class TextView {
 public:
  virtual ~TextView() = default;
  // The pen locks `naming` to look up names; null: there is no other pen.
  virtual std::unique_ptr<Pen> fork(std::mutex* naming) = 0;
  // Writes out bytes [begin, end) of the buffer that the pen filled before swap_buffers().
  virtual Sink::Flow put(Pen& pen, std::size_t begin, std::size_t end) = 0;
};

// Finds mappings of addresses, with a cache of processes and their ranges.
class MappingCache {
 public:
  const symbolize::Mapping* find(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                 std::uint8_t cpumode);

 private:
  struct Known {
    symbolize::AddressRange range{1, 0, nullptr};  // none yet: last is before first
    std::uint8_t cpumode = 0;
  };
  struct Process {
    std::uint32_t version = 0;
    std::uint32_t last = 0, next = 0;  // the last one used, and the next one to be replaced
    std::array<Known, 8> all{};
  };
  std::vector<Process> processes_ = std::vector<Process>(128);  // by the low bits of the version's number
  Process kernel_{};
};

// Gives the samples of batches to a pen.
class TextLane {
 public:
  // All must outlive it.
  TextLane(SampleLane& lane, const CgroupNames& cgroups, Pen& pen)
      : lane_(&lane), cgroups_(&cgroups), pen_(&pen) {}
  ChainReader& reader() { return reader_; }
  void give(const BatchItem& item);

 private:
  Location place_of(const BatchItem& item, std::uint64_t ip, std::uint8_t mode);

  SampleLane* lane_;
  const CgroupNames* cgroups_;
  Pen* pen_;
  ChainReader reader_;
  MappingCache mappings_;
  std::vector<Location> frames_;  // scratch
};

}  // namespace tacho::report
