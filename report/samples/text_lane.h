// TextLane: the thread of a TextView's pen. Addresses are looked up in the mappings alone, without tables.
#pragma once

#include <cstdint>
#include <vector>

#include "report/samples/batches.h"
#include "report/samples/chain_reader.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sample_lane.h"
#include "report/samples/text_view.h"

namespace tacho::report {

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
