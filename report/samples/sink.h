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

// A record other than a sample, with its sample_id. Valid until on_non_sample() returns.
struct NonSampleRecord {
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
  enum class Flow : std::uint8_t { Continue, Stop };
  // Which addresses share a location. Address: equal ones. Function: also ips of samples in one function; the
  // location has the first ip seen there. FrameFunction: also frames of call chains. FrameName: also all
  // frames without a symbol in one module. Name: also ips of samples without a symbol in one module.
  enum class MergeBy : std::uint8_t { Address, Function, FrameFunction, FrameName, Name };
  virtual ~Sink() = default;
  virtual MergeBy merge_by() const { return MergeBy::Address; }
  // The view's parallel form; null: none. A session that uses it never calls on_sample().
  virtual SumView* sum_view() { return nullptr; }
  virtual TextView* text_view() { return nullptr; }
  // Whether on_non_sample() is called.
  virtual bool takes_non_samples() const { return true; }
  virtual Flow on_sample(const ResolvedSample& sample) = 0;
  // Called for kernel records other than samples, in time order. An EXIT comes before it takes effect, all
  // others after.
  virtual Flow on_non_sample(const NonSampleRecord&) { return Flow::Continue; }
};

inline bool merges_frames(Sink::MergeBy merge_by) { return merge_by >= Sink::MergeBy::FrameFunction; }
inline bool merges_unnamed_frames(Sink::MergeBy merge_by) { return merge_by >= Sink::MergeBy::FrameName; }
// Whether ips of samples are merged by function, and not like frames.
inline bool merges_ips_by_function(Sink::MergeBy merge_by) {
  return merge_by != Sink::MergeBy::Address && merge_by != Sink::MergeBy::Name;
}

// Whether a sample's ip and the same address as a frame have one location.
inline bool shares_ips_with_frames(Sink::MergeBy merge_by) { return merge_by != Sink::MergeBy::FrameName; }

}  // namespace tacho::report
