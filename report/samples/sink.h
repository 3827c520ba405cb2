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

class SumView;   // sums.h
class TextView;  // text_view.h

class Sink {
 public:
  enum class Flow : std::uint8_t { GoOn, Stop };
  // What makes two samples of one place. Functions: all addresses of a function that has a name may be given
  // as the first of them. Names: so may the frames of call chains be, and what has no name in a file is one
  // place of them.
  enum class Places : std::uint8_t { Addresses, Functions, Names };
  virtual ~Sink() = default;
  virtual Places places() const { return Places::Addresses; }
  // The same view as sums or as text of which several threads make parts, where it carries nothing from
  // sample to sample. Such a view may be fed that way, and gets no sample itself then.
  virtual SumView* sums() { return nullptr; }
  virtual TextView* text() { return nullptr; }
  // Whether it looks up places of samples other than their own (ResolvedSample::locate()) or, with
  // Places::Names, names before the last sample. If not, places are found while the samples before are shown.
  virtual bool looks_up() const { return true; }
  // Whether it wants on_other().
  virtual bool takes_others() const { return true; }
  virtual Flow on_sample(const ResolvedSample& sample) = 0;
  // Kernel records other than samples, in their place. An EXIT comes before it takes effect, all others
  // after.
  virtual Flow on_other(const OtherEvent&) { return Flow::GoOn; }
};

}  // namespace tacho::report
