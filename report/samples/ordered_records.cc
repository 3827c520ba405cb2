#include "report/samples/ordered_records.h"

#include <bit>
#include <cstring>

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Damage;
using format::RecordView;

// After this many waits of 0.1 s without new records, none older than those at hand can come: the recorder
// holds records back no longer than that.
constexpr unsigned kMaxIdleWaits = 6;
constexpr std::uint64_t kProgressStep = std::uint64_t{256} << 10;  // bytes of the capture

// Offset of the time in samples of an event, bytes; 0: not recorded.
std::uint16_t time_offset(const format::EventAttr& attr) {
  constexpr std::uint64_t kBefore = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid;
  if (!attr.samples(abi::kSampleTime)) return 0;
  return static_cast<std::uint16_t>(format::kRecordHeaderSize +
                                    static_cast<std::size_t>(std::popcount(attr.sample_type & kBefore)) *
                                        sizeof(std::uint64_t));
}

}  // namespace

void OrderedRecords::use(const Filter& filter) {
  filter_ = &filter;
  events_ = EventFilter(filter.events);
  looks_at_start_ = filter.looks_at_start();
}

OrderedRecords::Step OrderedRecords::next(OrderedRecord& record) {
  for (;;) {
    if (may_pop_) {
      if (const auto item = order_.pop()) {
        record = {item->record, item->time, item->event, item->block};
        return Step::Record;
      }
      may_pop_ = false;
    }
    if (has_ended_) {
      order_.report(*diagnostics_);
      order_ = format::TimeOrder();  // frees its memory: a view may work long after the last record
      return Step::End;
    }
    if (run_.bytes.empty()) run_ = capture_->next_samples();
    const auto view = run_.bytes.empty() ? capture_->next_record() : std::nullopt;
    if (!run_.bytes.empty()) {
      if (add_run(record)) return Step::Record;
    } else if (!view) {
      if (waits()) return Step::Progress;
      end();
      continue;
    } else {
      waits_ = 0;
      bytes_read_ = view->offset;
      if (add_record(*view, record)) return Step::Record;
    }
    // At the next file of a directory offsets restart: the unsigned difference is then large, and progress is
    // reported.
    if (bytes_read_ - reported_bytes_ < kProgressStep) continue;
    reported_bytes_ = bytes_read_;
    return Step::Progress;
  }
}

// Gives samples to order_. It stops at a sample without a time, which `out` gets (true), and when order_ has
// sorted records (false).
bool OrderedRecords::add_run(OrderedRecord& out) {
  const format::EventSet& events = capture_->events();
  while (time_offsets_.size() < events.size())
    time_offsets_.push_back(time_offset(events[time_offsets_.size()].attr));
  const std::endian order = capture_->layout().order;
  const format::BlockRef& block = capture_->block();
  while (!run_.bytes.empty() && !may_pop_) {
    const format::RecordHeader header = format::record_header(run_.bytes, order);
    format::RecordView view;
    view.type = header.type;
    view.misc = header.misc;
    view.bytes = run_.bytes.first(header.size);
    view.offset = bytes_read_ = run_.offset;
    view.order = order;
    run_.bytes = run_.bytes.subspan(header.size);
    if (run_.is_plain) run_.offset += header.size;
    const auto event = looks_at_start_ ? std::nullopt : events.event_of(view);
    const std::uint64_t time = event ? time_in(view, *event) : 0;
    if (time == 0 || time == ~std::uint64_t{0}) {
      if (add_record(view, out)) return true;
      continue;
    }
    order_.push(view, time, block, static_cast<std::uint32_t>(*event));
    may_pop_ = order_.has_ready();
  }
  return false;
}

// 0: not recorded.
std::uint64_t OrderedRecords::time_in(const RecordView& view, std::size_t event) const {
  std::uint64_t time = 0;
  const std::size_t at = time_offsets_[event];
  if (at == 0 || at + sizeof time > view.bytes.size()) return 0;
  std::memcpy(&time, view.bytes.data() + at, sizeof time);
  return view.order == std::endian::native ? time : __builtin_bswap64(time);
}

// Gives a kernel record to order_. Returns true if `out` gets the record at once: of kernel records without a
// time, and of BUILD_ID.
bool OrderedRecords::add_record(const RecordView& view, OrderedRecord& out) {
  if (view.type == abi::kRecordFinishedRound) {
    order_.finished_round();
    may_pop_ = true;
    return false;
  }
  const format::EventSet& events = capture_->events();
  if (view.type >= abi::kRecordUserStart) {
    if (view.type != abi::kRecordBuildId || events.empty()) return false;
    out = {view, 0, 0, &capture_->block()};
    return true;
  }
  const auto event = events.event_of(view);
  if (!event) {
    diagnostics_->add_finding(Damage::UnknownEvent, view.offset, "its id is in no event's list");
    return false;
  }
  const auto number = static_cast<std::uint32_t>(*event);
  const format::Event& of = events[number];
  const auto time = format::record_time(view, of.attr);
  if (looks_at_start_ && is_refused(view, number)) {
    if (time) order_.leave_out(*time);
    return false;
  }
  if (!time || *time == 0 || *time == ~std::uint64_t{0}) {
    out = {view, 0, number, &capture_->block()};
    return true;
  }
  order_.push(view, *time, capture_->block(), number);
  may_pop_ = order_.has_ready();
  return false;
}

// Whether the filter refuses the sample by its event or fixed fields. Samples with counter values always
// pass: the next sample's increase is computed from them.
bool OrderedRecords::is_refused(const RecordView& view, std::size_t event) {
  const format::EventAttr& attr = capture_->events()[event].attr;
  if (view.type != abi::kRecordSample || attr.samples(abi::kSampleRead)) return false;
  if (!events_.takes(capture_->events(), event)) return true;
  const format::Sample* const start = parser_.parse_start(view, attr);
  return start != nullptr && !filter_->accepts_start(*start);
}

bool OrderedRecords::waits() {
  if (!capture_->follows() || has_stopped_growing_) return false;
  has_stopped_growing_ = !capture_->wait_for_more();
  if (++waits_ == kMaxIdleWaits && capture_->shows_at_once()) {
    order_.flush();
    may_pop_ = true;
  }
  return true;
}

void OrderedRecords::end() {
  has_ended_ = true;
  order_.flush();
  may_pop_ = true;
}

}  // namespace tacho::report
