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

// Valid until the next one is asked for.
struct OrderedRecord {
  format::RecordView view;
  std::uint64_t time = 0;                   // ns; 0: it did not have to wait for its turn
  std::uint32_t event = 0;                  // index, of kernel records
  const format::BlockRef* block = nullptr;  // the record's bytes live as long as this block is kept
};

// Gives every sample that the filter does not refuse by its first fields, all other kernel records, and
// BUILD_ID records.
class OrderedRecords {
 public:
  enum class Step : std::uint8_t {
    Record,    // here is one
    Progress,  // another quarter of a megabyte was read
    End,
  };
  // What is passed must outlive it.
  OrderedRecords(format::CaptureReader& capture, format::Diagnostics& diagnostics)
      : capture_(&capture), diagnostics_(&diagnostics) {}
  // From now on; `filter` must live as long as records are asked for.
  void use(const Filter& filter);

  Step next(OrderedRecord& record);
  std::uint64_t bytes_read() const { return bytes_read_; }  // of the capture

 private:
  bool take(const format::RecordView& view, OrderedRecord& out);
  bool take_run(OrderedRecord& out);
  std::uint64_t time_in(const format::RecordView& view, std::size_t event) const;
  bool is_refused(const format::RecordView& view, std::size_t event);
  void end();
  // Of a capture that is followed: whether to ask for records again.
  bool waits();

  format::CaptureReader* capture_;
  const Filter* filter_ = nullptr;
  EventFilter events_;  // of the filter
  format::Diagnostics* diagnostics_;
  format::TimeOrder order_;
  format::SampleRun run_;  // what was read and not taken yet
  std::vector<std::uint16_t>
      times_at_;  // by event: where the time stands in its samples, bytes; 0: there is none
  format::SampleParser parser_;
  bool looks_at_start_;     // the filter
  bool gives_out_ = false;  // what is in order already
  bool has_ended_ = false;
  bool will_end_ = false;  // of a capture that was followed: no more is waited for
  unsigned waits_ = 0;     // without anything new
  std::uint64_t bytes_read_ = 0, told_bytes_ = 0;
};

}  // namespace tacho::report
