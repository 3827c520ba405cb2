// The records of a capture in the order in which they take effect: reader -> time order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/base/diagnostics.h"
#include "format/container/capture_reader.h"
#include "format/container/time_order.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

// The fields of a sound sample that stand first, of those that nearly every view reads.
struct SampleStart {
  std::uint64_t ip = 0, period = 0;
  std::uint32_t pid = 0, tid = 0, cpu = 0;
  std::uint16_t misc = 0;  // of the record

  void copy_to(format::Sample& sample) const {
    sample.ip = ip;
    sample.period = period;
    sample.pid = pid;
    sample.tid = tid;
    sample.cpu = cpu;
    sample.misc = misc;
  }
};

// Valid until the next one is asked for.
struct OrderedRecord {
  format::RecordView view;
  std::uint64_t time = 0;                   // ns; 0: it did not have to wait for its turn
  std::uint32_t event = 0;                  // index, of kernel records
  const format::BlockRef* block = nullptr;  // the record's bytes live as long as this block is kept
  const SampleStart* start = nullptr;       // null: nobody took the record apart yet
};

// Where ordered records come from: of this thread, or of one that reads ahead.
class RecordFeed {
 public:
  enum class Step : std::uint8_t {
    Record,    // here is one
    Progress,  // another quarter of a megabyte was read
    End,
  };
  virtual ~RecordFeed() = default;
  virtual Step next(OrderedRecord& record) = 0;
  virtual std::uint64_t bytes_read() const = 0;  // of the capture
  // The record that next() will give after so many more calls, and the index of its event; valid as long as
  // the record that it gave last. Nothing when it is not at hand yet, or was taken apart.
  virtual std::optional<format::RecordView> upcoming(std::size_t /*ahead*/, std::uint32_t& /*event*/) const {
    return std::nullopt;
  }
};

// Gives every sample that the filter does not refuse by its first fields, all other kernel records, and
// BUILD_ID records.
class OrderedRecords : public RecordFeed {
 public:
  // What is passed must outlive it.
  OrderedRecords(format::CaptureReader& capture, format::Diagnostics& diagnostics)
      : capture_(&capture), diagnostics_(&diagnostics) {}
  // From now on; `filter` must live as long as records are asked for.
  void use(const Filter& filter);

  Step next(OrderedRecord& record) override;
  std::uint64_t bytes_read() const override { return bytes_read_; }

 private:
  bool take(const format::RecordView& view, OrderedRecord& out);
  bool is_refused(const format::RecordView& view, std::size_t event);
  void end();
  // Of a capture that is followed: whether to ask for records again.
  bool waits();

  format::CaptureReader* capture_;
  const Filter* filter_ = nullptr;
  EventFilter events_;  // of the filter
  format::Diagnostics* diagnostics_;
  format::TimeOrder order_;
  format::SampleParser parser_;
  bool looks_at_start_;     // the filter
  bool gives_out_ = false;  // what is in order already
  bool has_ended_ = false;
  bool will_end_ = false;  // of a capture that was followed: no more is waited for
  unsigned waits_ = 0;     // without anything new
  std::uint64_t bytes_read_ = 0, told_bytes_ = 0;
};

}  // namespace tacho::report
