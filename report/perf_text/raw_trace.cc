#include "report/perf_text/raw_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/decode/register_names.h"
#include "report/perf_text/raw_record_text.h"
#include "report/perf_text/raw_sample_text.h"
#include "report/perf_text/stats_text.h"
#include "report/samples/counter_values.h"
#include "symbolize/address_space.h"

namespace tacho::report {
namespace {

using namespace format;

constexpr std::uint64_t kPipeHeader = 16;  // bytes: magic and the header's size

class RawTrace {
 public:
  RawTrace(TextOutput& out, CaptureReader& capture, Diagnostics& diagnostics, std::string_view file,
           Names names)
      : out_(out),
        capture_(capture),
        diagnostics_(diagnostics),
        counts_(capture, diagnostics),
        is_pipe_(capture.layout().is_pipe),
        file_(is_pipe_ ? "pipe" : printable(file, names)),
        names_(names),
        known_events_(capture.events().size()) {}

  void run() {
    while (const auto record = capture_.next()) {
      take_build_ids();
      counts_.add(*record);
      take(*record);
      known_events_ = capture_.events().size();
      if (out_.is_done()) return;
    }
    order_.flush();
    give_out();
    order_.report(diagnostics_);
    counts_.write(out_, names_, RecordCounts::Losses::Hidden);
  }

 private:
  void take(const RecordView& record) {
    if (record.type >= abi::kRecordUserStart) {
      show_user_record(record);
      if (record.type == abi::kRecordFinishedRound) order_.finished_round();
      return give_out();
    }
    const auto event = capture_.events().event_of(record);
    if (!event) {
      if (!is_told_by_counts(record))
        diagnostics_.add(Damage::UnknownEvent, record.offset, "its id is in no event's list");
      write_record_bytes(out_, record, file_);
      return out_.line_end();
    }
    const auto number = static_cast<std::uint32_t>(*event);
    const auto time = record_time(record, capture_.events()[*event].attr);
    if (!time || *time == 0 || *time == ~std::uint64_t{0}) return show(record, number);
    order_.push(record, *time, capture_.block(), number);
    give_out();
  }

  void give_out() {
    while (const auto item = order_.pop()) {
      show(item->record, item->event);
      if (out_.is_done()) return;
    }
  }

  // What RecordCounts says of a record is not said again.
  static bool is_told_by_counts(const RecordView& record) {
    return record.type == abi::kRecordSample || record.type == abi::kRecordLostSamples;
  }

  // A file's stand in its header; a pipe brings more of them while it is read.
  void take_build_ids() {
    const auto& known = capture_.features().environment.build_ids;
    for (; build_ids_seen_ < known.size(); ++build_ids_seen_) spaces_.add_build_id(known[build_ids_seen_]);
  }

  void show_user_record(const RecordView& record) {
    static const EventAttr kNone;  // perf's own records need none
    begin_line(record, 0, 0);
    write_raw_record(out_, record, kNone, {}, names_);
    out_.line_end();
    if (record.type != abi::kRecordBuildId) return;
    const auto parsed = parse_record(record, kNone);
    if (!parsed) return;
    if (const auto* entry = std::get_if<BuildIdRecord>(&*parsed))
      spaces_.add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
  }

  // The kernel's records, when it is their turn.
  void show(const RecordView& record, std::uint32_t event) {
    const Event& of = capture_.events()[event];
    if (record.type == abi::kRecordSample) return show_sample(record, of.attr);
    const SampleId id = parse_sample_id(record, of.attr);
    begin_line(record, id.cpu, id.time);
    const auto parsed = parse_record(record, of.attr);
    if (!parsed) {
      if (!is_told_by_counts(record)) diagnostics_.add(Damage::BadRecord, record.offset, parsed.error().what);
      out_.character('\n');
      return out_.line_end();
    }
    write_raw_record(out_, record, of.attr, of.name, names_);
    spaces_.apply(*parsed, record.misc);
    out_.line_end();
  }

  void show_sample(const RecordView& record, const EventAttr& attr) {
    const auto sample = parse_sample(record, attr);
    if (!sample) {  // the counts show it
      write_record_bytes(out_, record, file_);
      return out_.line_end();
    }
    begin_line(record, sample->cpu, sample->time);
    if (arch_.empty()) arch_ = register_machine(capture_.features().environment.arch);
    write_raw_sample(out_, record, *sample, attr, arch_);
    std::size_t times = 1;  // perf takes a sample with counter values once for each that moved
    if (attr.samples(abi::kSampleRead)) {
      counters_.take(*sample, attr, capture_.events(), moved_);
      times = moved_.size();
    }
    for (; times > 0; --times) show_thread(*sample);
    out_.line_end();
  }

  void show_thread(const Sample& sample) {
    const auto cpumode = static_cast<std::uint8_t>(sample.misc & abi::kCpumodeMask);
    const symbolize::Mapping* const mapping = spaces_.find(sample.pid, {sample.ip}, cpumode);
    out_.text(" ... thread: ");
    out_.text(printable(spaces_.comm(sample.pid, sample.tid), names_));
    out_.text(fmt::format(":{}\n ...... dso: ", static_cast<std::int32_t>(sample.tid)));
    out_.text(mapping == nullptr ? "<not found>" : printable(mapping->module->path, names_));
    out_.character('\n');
  }

  // The record's bytes, and its line up to the name of its type. Before the processor and the time stand only
  // where events have them; a capture whose records other than samples have neither says so with -1.
  void begin_line(const RecordView& record, std::uint32_t cpu, std::uint64_t time) {
    RecordView shown = record;
    shown.offset -= is_pipe_ ? kPipeHeader : 0;  // perf counts from a pipe's first record
    write_record_bytes(out_, shown, file_);
    const auto events = std::span(capture_.events().begin(), known_events_);
    if (record.type != abi::kRecordSample && (events.empty() || !events[0].attr.has(abi::kSampleIdAll))) {
      out_.text("-1 -1 ");
    } else {
      const auto any = [&](abi::SampleType bit) {
        return std::ranges::any_of(events, [&](const Event& event) { return event.attr.samples(bit); });
      };
      if (any(abi::kSampleCpu)) out_.text(fmt::format("{} ", cpu));
      if (any(abi::kSampleTime)) out_.text(fmt::format("{} ", time));
    }
    const std::string_view name = record_name(record.type);
    out_.text(shown.offset == 0 ? "0" : fmt::format("{:#x}", shown.offset));
    out_.text(fmt::format(" [{:#x}]: PERF_RECORD_{}", record.bytes.size(), name.empty() ? "UNKNOWN" : name));
  }

  TextOutput& out_;
  CaptureReader& capture_;
  Diagnostics& diagnostics_;
  RecordCounts counts_;
  bool is_pipe_;
  std::string file_, arch_;
  Names names_;
  TimeOrder order_;
  symbolize::AddressSpaces spaces_;
  CounterValues counters_;
  std::vector<CounterValues::Moved> moved_;  // scratch
  std::size_t build_ids_seen_ = 0;
  std::size_t known_events_;  // before the record at hand: a pipe brings them one by one
};

}  // namespace

void write_raw_trace(TextOutput& out, CaptureReader& capture, Diagnostics& diagnostics, std::string_view file,
                     Names names) {
  RawTrace(out, capture, diagnostics, file, names).run();
}

}  // namespace tacho::report
