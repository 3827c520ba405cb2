// The reading side of a session: ordered records -> address spaces -> samples with their places and stacks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/capture_reader.h"
#include "report/samples/filter.h"
#include "report/samples/names_of.h"
#include "report/samples/outlet.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/shared_spaces.h"
#include "report/samples/stable_array.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// Which samples are given, and how much of their call chains.
struct SampleOptions {
  Filter filter;
  std::size_t max_stack = 127;  // frames of a call chain
  bool wants_stacks = true;     // false: samples come without their call chains
  // Whether a payload's fields tagged ROLE("stack") are the call chain, in place of what the kernel recorded.
  bool wants_payload_stacks = true;
  bool leaves_out_guests = false;  // samples of guests, whose cpumode is 4 or 5
  bool keeps_callers = false;  // of a recorded chain with more frames, the outermost: perf with caller first
  bool condition_asks_for_names = false;  // the filter's, once it is bound
  bool keeps_addresses = false;  // processes that loaded a module elsewhere have places of their own in it
};

// All of it belongs to the thread that calls read(), until read() returns; but for fixed_header() of the
// capture and locations(), which another thread may look at meanwhile, as at cgroups(). It takes one more
// thread for itself, to read and order records ahead.
class SampleReader {
 public:
  // Where the records come from, and where `capture` tells its findings; `symbols` says where files for
  // unwinding lie. All that is passed by reference must outlive this.
  SampleReader(format::CaptureReader capture, const symbolize::SymbolOptions& symbols, SharedSpaces& spaces,
               format::Diagnostics& found_by_reading, format::Diagnostics& found_by_replaying);
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const format::CaptureReader& capture() const;
  // The places given so far. An item never changes; who was given a location's number, through a lock, may
  // look at it.
  const StableArray<Location>& locations() const;
  // Of the records given so far; from any thread.
  const CgroupNames& cgroups() const;

  // Gives every sample that passes the filter to `outlet`, in time order, to the end of the capture or until
  // it says stop. With `names_of`, which is asked on this thread, places are told apart by their functions
  // alone, where these have names. A pipe may be read on after a stop; a file's records that were read ahead
  // are gone then.
  void read(const SampleOptions& options, Outlet& outlet, NamesOf names_of = {});

  // After read(): gives every thread the name it had last.
  void settle_names();
  // Sum of LOST_SAMPLES records.
  std::uint64_t lost_samples() const;
  // Files in which unwound call chains ended for want of unwind information.
  std::vector<symbolize::ModuleLack> ended_chains() const;
  // Samples whose copied stacks were not unwound: of a machine that is not known here.
  std::uint64_t not_unwound() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::report
