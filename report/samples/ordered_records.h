// Reads the records of a capture in time order (CaptureReader and TimeOrder).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/capture_reader.h"
#include "format/container/time_order.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

// Valid until the next call of next().
struct OrderedRecord {
  format::RecordView view;
  std::uint64_t time = 0;                   // ns; 0: no timestamp, so it comes at once
  std::uint32_t event = 0;                  // index of its event; 0 for user records
  const format::BlockRef* block = nullptr;  // holds the record's bytes
};

// Gives the samples whose fixed fields the filter accepts, all other kernel records, and BUILD_ID records.
class OrderedRecords {
 public:
  enum class Step : std::uint8_t {
    Record,    // `record` is set
    Progress,  // no record, but kProgressStep more bytes were read, or a followed capture has nothing new yet
    End,
  };
  // Both must outlive this.
  OrderedRecords(format::CaptureReader& capture, format::Diagnostics& diagnostics)
      : capture_(&capture), diagnostics_(&diagnostics) {}
  // Before next(); `filter` must outlive it.
  void use(const Filter& filter);

  Step next(OrderedRecord& record);
  std::uint64_t bytes_read() const { return bytes_read_; }  // of the capture

 private:
  bool add_record(const format::RecordView& view, OrderedRecord& out);
  bool add_run(OrderedRecord& out);
  std::uint64_t time_in(const format::RecordView& view, std::size_t event) const;
  bool is_refused(const format::RecordView& view, std::size_t event);
  void end();
  // Whether to try again: more of a followed capture may come.
  bool waits();

  format::CaptureReader* capture_;
  const Filter* filter_ = nullptr;
  EventFilter events_;  // of the filter
  format::Diagnostics* diagnostics_;
  format::TimeOrder order_;
  format::SampleRun run_;  // what was read and is not sorted yet
  std::vector<std::uint16_t>
      time_offsets_;  // by event: offset of the time in its samples, bytes; 0: not recorded
  format::SampleParser parser_;
  bool looks_at_start_;   // filter_->looks_at_start()
  bool may_pop_ = false;  // order_ may have sorted records
  bool has_ended_ = false;
  bool has_stopped_growing_ = false;  // of a followed capture: do not wait for more
  unsigned waits_ = 0;                // calls of wait_for_more() without a new record
  std::uint64_t bytes_read_ = 0, reported_bytes_ = 0;
};

}  // namespace tacho::report
