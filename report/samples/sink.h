// Sink: a view that takes a capture's samples one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/records/record.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// A record other than a sample, with its sample_id. Valid until on_other() returns.
struct OtherEvent {
  const format::RecordView* view = nullptr;
  const format::Record* record = nullptr;
  format::SampleId id;
  std::size_t event_index = 0;
  const Thread* thread = nullptr;  // the thread that the record is about; null: it names none
  std::string_view comm;           // that thread's name at the time of the record
};

class SumView;   // sums.h
class TextView;  // text_view.h

class Sink {
 public:
  enum class Flow : std::uint8_t { GoOn, Stop };
  // Which code addresses are one location. Addresses: equal ones. Functions: a sample's ip counts as the
  // first ip seen in the same function. Names: the same for frames of call chains; and all addresses of a
  // module without a symbol are one location.
  enum class Places : std::uint8_t { Addresses, Functions, Names };
  virtual ~Sink() = default;
  virtual Places places() const { return Places::Addresses; }
  // The view's parallel form; null: none. A session that uses it never calls on_sample().
  virtual SumView* sums() { return nullptr; }
  virtual TextView* text() { return nullptr; }
  // Whether on_sample() calls ResolvedSample::locate() or, with Places::Names, the Resolver.
  // If not, another thread resolves the next batch meanwhile.
  virtual bool looks_up() const { return true; }
  // Whether it wants on_other().
  virtual bool takes_others() const { return true; }
  virtual Flow on_sample(const ResolvedSample& sample) = 0;
  // Kernel records other than samples, in time order. An EXIT comes before it takes effect, all others after.
  virtual Flow on_other(const OtherEvent&) { return Flow::GoOn; }
};

}  // namespace tacho::report
