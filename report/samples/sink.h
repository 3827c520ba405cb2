// Where the samples of a capture go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/records/record.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// A record that is no sample, with what its trailer says. Valid until on_other() returns.
struct OtherEvent {
  const format::RecordView* view = nullptr;
  const format::Record* record = nullptr;
  format::SampleId id;
  std::size_t event_index = 0;
  const Thread* thread = nullptr;  // whom the record is about; null when it names nobody
  std::string_view comm;           // that thread's name at the time of the record
};

class Sink {
 public:
  enum class Flow : std::uint8_t { GoOn, Stop };
  // What it needs beside the samples. A sink that asks for no more than names of the samples' own places and
  // of kernel functions is fed by a thread that reads ahead, and gets no on_other().
  enum class Needs : std::uint8_t { Names, Everything };
  // What makes two samples of one place. Functions: all addresses of a function that has a name may be given
  // as the first of them. Names: so may the frames of call chains be, and what has no name in a file is one
  // place of them; names are lent to the thread that reads ahead (Resolver::Loan), so the sink asks for none
  // before the end.
  enum class Places : std::uint8_t { Addresses, Functions, Names };
  // What it reads of a sample's record. Start: of `raw`, no more than ip, pid, tid, time, cpu, period and
  // misc; neither `record` nor `block`. Nothing: not `raw` either.
  enum class Reads : std::uint8_t { Nothing, Start, All };
  // Whether it looks at a sample's stack after on_sample(). Passing: it does not.
  enum class Stacks : std::uint8_t { Kept, Passing };
  virtual ~Sink() = default;
  virtual Reads reads() const { return Reads::All; }
  virtual Places places() const { return Places::Addresses; }
  virtual Stacks stacks() const { return Stacks::Kept; }
  virtual Needs needs() const { return Needs::Everything; }
  virtual Flow on_sample(const ResolvedSample& sample) = 0;
  // Kernel records other than samples, in their place. An EXIT comes before it takes effect, all others
  // after.
  virtual Flow on_other(const OtherEvent&) { return Flow::GoOn; }
};

}  // namespace tacho::report
