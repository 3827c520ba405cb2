// Parallel text: workers format slices of a batch, and the slices are written in order.
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

// A worker's formatter with its own buffer. Its samples have frames instead of interned stacks, and places
// without numbers.
class Pen : public Sink {
 public:
  bool takes_others() const override { return false; }
  // Bytes written since turn().
  virtual std::size_t size() const = 0;
  // Switches to the second buffer; the first one is written to the output meanwhile.
  virtual void turn() = 0;
};

class TextView {
 public:
  virtual ~TextView() = default;
  // The pen asks for names while `naming` is locked; null: there is no other pen.
  virtual std::unique_ptr<Pen> fork(std::mutex* naming) = 0;
  // Puts out bytes [begin, end) of what the pen wrote before its turn.
  virtual Sink::Flow put(Pen& pen, std::size_t begin, std::size_t end) = 0;
};

// Mappings of addresses; those of the processes and ranges that were asked for last are kept.
class MappingCache {
 public:
  const symbolize::Mapping* find(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                 std::uint8_t cpumode);

 private:
  struct Known {
    symbolize::AddressRange range{1, 0, nullptr};  // empty at first: last is before first
    std::uint8_t cpumode = 0;
  };
  struct Process {
    std::uint32_t version = 0;
    std::uint32_t last = 0, next = 0;  // which was asked for last, and which gives way to a new one
    std::array<Known, 8> all{};
  };
  std::vector<Process> processes_ = std::vector<Process>(128);  // by the low bits of their versions' numbers
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
