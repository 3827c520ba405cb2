// LaneFilter: tests of samples by --where, --dsos, --symbols and --symbol-filter. Each lane has one, since
// tests keep what they looked up.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "report/samples/filter.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Belongs to one thread.
class LaneFilter : private LocationFinder {
 public:
  // All must outlive it. The condition of `filter` is bound. `symbols` is locked for names; null: no other
  // thread looks them up.
  LaneFilter(const Filter& filter, Resolver& resolver, std::mutex* symbols);

  bool has_condition() const { return condition_ != nullptr; }
  bool looks_at_names() const { return filter_->looks_at_names(); }
  // --where. The sample needs no location and no stack. `space`: the address space at its time.
  bool accepts_values(ResolvedSample sample, const symbolize::SpaceVersion& space);
  // The other options. `own`: the address of the sample's location. `ip`: the one that it recorded.
  bool accepts_name(const symbolize::SpaceVersion& space, const LocationTable::Address& own,
                    std::uint64_t ip);

 private:
  enum class Verdict : std::uint8_t { Unknown, No, Yes, ByAddress };
  Verdict test(const Location& location);
  const Location& find_in(const ResolvedSample& sample, std::uint64_t address, std::uint8_t cpumode) override;

  const Filter* filter_;
  Resolver* resolver_;
  std::unique_ptr<SampleCondition> condition_;  // null: there is none
  WantedAddresses addresses_;
  FunctionMerging merging_;  // each function is tested once
  LocationTable locations_;
  IdMap<LocationId, Verdict> answers_;
  const symbolize::SpaceVersion* space_ = nullptr;  // of the current sample
};

}  // namespace tacho::report
