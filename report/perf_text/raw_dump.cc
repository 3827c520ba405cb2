#include "report/perf_text/raw_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format/container/file_head.h"
#include "format/records/cpu_map.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/decode/coded_values.h"
#include "report/perf_text/header_text.h"
#include "report/samples/counter_values.h"
#include "symbolize/address_space.h"

namespace tacho::report {
namespace {

using namespace format;

// The fields of a sample: the text after "PERF_RECORD_SAMPLE" and the lines below it. `record` is the record
// of `sample`, `arch` the architecture of its registers (register_machine()).
void write_raw_sample(TextBuffer& out, const RecordView& record, const Sample& sample, const EventAttr& attr,
                      std::string_view arch);

// "0x158@perf.data [0x50]: event: 1" and the record's bytes, 16 a line, between blank lines.
void write_record_bytes(TextBuffer& out, const RecordView& record, std::string_view file);

// The fields of other records: the text after "PERF_RECORD_MMAP" and so on with the newline, and lines below
// it. For types without fields in perf 6.1, nothing, not even the newline. `event` is the name of the
// record's event.
void write_raw_record(TextBuffer& out, const RecordView& record, const EventAttr& attr,
                      std::string_view event, Names names);

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
        known_events_(capture.events().size()) {
    spaces_.keep_pid_zero();  // as perf's dump
  }

  void run() {
    while (const auto record = capture_.next_record()) {
      take_build_ids();
      counts_.add_record(*record);
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
      if (!is_counted(record))
        diagnostics_.add_finding(Damage::UnknownEvent, record.offset, "its id is in no event's list");
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

  // Whether RecordCounts parses such records: it reports their damage, which must not be reported twice.
  static bool is_counted(const RecordView& record) {
    return record.type == abi::kRecordSample || record.type == abi::kRecordLostSamples;
  }

  // The header of a file has all events; a pipe may bring more while it is read.
  void take_build_ids() {
    const auto& known = capture_.features().environment.build_ids;
    for (; build_ids_seen_ < known.size(); ++build_ids_seen_) spaces_.add_build_id(known[build_ids_seen_]);
  }

  void show_user_record(const RecordView& record) {
    static const EventAttr kNone;  // perf's own records have no event
    begin_line(record, 0, 0);
    write_raw_record(out_, record, kNone, {}, names_);
    out_.line_end();
    if (record.type != abi::kRecordBuildId) return;
    const auto parsed = parse_record(record, kNone);
    if (!parsed) return;
    if (const auto* entry = std::get_if<BuildIdRecord>(&*parsed))
      spaces_.add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
  }

  // Shows the kernel's records, in the order of time.
  void show(const RecordView& record, std::uint32_t event) {
    const Event& of = capture_.events()[event];
    if (record.type == abi::kRecordSample) return show_sample(record, of.attr);
    const SampleId id = parse_sample_id(record, of.attr);
    begin_line(record, id.cpu, id.time);
    const auto parsed = parse_record(record, of.attr);
    if (!parsed) {
      if (!is_counted(record))
        diagnostics_.add_finding(Damage::BadRecord, record.offset, parsed.error().what);
      out_.character('\n');
      return out_.line_end();
    }
    write_raw_record(out_, record, of.attr, of.name, names_);
    spaces_.apply(*parsed, record.misc);
    out_.line_end();
  }

  void show_sample(const RecordView& record, const EventAttr& attr) {
    const auto sample = parse_sample(record, attr);
    if (!sample) {  // it is in the counts
      write_record_bytes(out_, record, file_);
      return out_.line_end();
    }
    begin_line(record, sample->cpu, sample->time);
    if (arch_.empty()) arch_ = register_machine(capture_.features().environment.arch);
    write_raw_sample(out_, record, *sample, attr, arch_);
    std::size_t times = 1;  // perf counts a sample with counter values once for each counter that changed
    if (attr.samples(abi::kSampleRead)) {
      counters_.update(*sample, attr, capture_.events(), deltas_);
      times = deltas_.size();
    }
    for (; times > 0; --times) show_thread(*sample);
    out_.line_end();
  }

  void show_thread(const Sample& sample) {
    const auto cpumode = static_cast<std::uint8_t>(sample.misc & abi::kCpumodeMask);
    const symbolize::Mapping* const mapping = spaces_.find_mapping(sample.pid, {sample.ip}, cpumode);
    out_.text(" ... thread: ");
    out_.text(printable(spaces_.comm(sample.pid, sample.tid), names_));
    out_.text(fmt::format(":{}\n ...... dso: ", static_cast<std::int32_t>(sample.tid)));
    out_.text(mapping == nullptr ? "<not found>" : printable(mapping->module->path, names_));
    out_.character('\n');
  }

  // Writes the record's bytes, and its line up to the name of the type. CPU and time are printed if events
  // have them, and are -1 if the records of the capture have neither.
  void begin_line(const RecordView& record, std::uint32_t cpu, std::uint64_t time) {
    RecordView shown = record;
    shown.offset -= is_pipe_ ? FileHead::kPipeSize : 0;  // perf counts from a pipe's first record
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
    out_.text(fmt::format("{} [{:#x}]: PERF_RECORD_{}", alternate_hex(shown.offset), record.bytes.size(),
                          name.empty() ? "UNKNOWN" : name));
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
  CounterDeltas counters_;
  std::vector<CounterDeltas::Delta> deltas_;  // scratch
  std::size_t build_ids_seen_ = 0;
  std::size_t known_events_;  // before the current record: a pipe brings events one by one
};

void write_chain(TextBuffer& out, const Sample& sample) {
  out.text(fmt::format("... FP chain: nr:{}\n", sample.callchain.size()));
  for (std::size_t i = 0; i < sample.callchain.size(); ++i)
    out.text(fmt::format("..... {:2}: {:016x}\n", i, sample.callchain[i]));
}

void write_branches(TextBuffer& out, const format::Sample& sample, const format::EventAttr& attr) {
  const bool is_call_stack = (attr.branch_sample_type & abi::kBranchCallStack) != 0;
  constexpr unsigned kReservedAt = 33;  // perf 6.1 has names for the bits below
  out.text(
      fmt::format("... branch {}: nr:{}\n", is_call_stack ? "callstack" : "stack", sample.branch_count()));
  for (std::size_t i = 0; i < sample.branch_count(); ++i) {
    const format::BranchEntry branch = sample.branch(i);
    if (is_call_stack) {  // perf prints only the targets of calls, and the caller of the last one
      if (i == 0) out.text(fmt::format("..... {:2}: {:016x}\n", i, branch.to));
      out.text(fmt::format("..... {:2}: {:016x}\n", i + 1, branch.from));
      continue;
    }
    const auto mark = [&](std::uint64_t bit, char letter) {
      return (branch.flags & bit) != 0 ? letter : ' ';
    };
    out.text(fmt::format("..... {:2}: {:016x} -> {:016x} {} cycles {}{}{}{} {:x} {}\n", i, branch.from,
                         branch.to, branch_cycles(branch.flags), mark(kBranchMispredicted, 'M'),
                         mark(kBranchPredicted, 'P'), mark(kBranchAborted, 'A'),
                         mark(kBranchInTransaction, 'T'), branch.flags >> kReservedAt,
                         branch_type_name(branch_type(branch.flags))));
  }
}

void write_registers(TextBuffer& out, std::string_view whose, const format::Registers& registers,
                     std::string_view arch) {
  if (registers.abi == 0) return;
  out.text(fmt::format("... {} regs: mask {:#x} ABI {}\n", whose, registers.mask,
                       registers.abi == 1   ? "32-bit"
                       : registers.abi == 2 ? "64-bit"
                                            : "unknown"));
  std::size_t at = 0;
  for (unsigned number = 0; number < 64 && at < registers.values.size(); ++number) {
    if ((registers.mask >> number & 1) == 0) continue;
    out.text(fmt::format(".... {:<5} 0x{:016x}\n", register_name(arch, number), registers.values[at++]));
  }
}

void write_values(TextBuffer& out, const format::ReadValues& values) {
  const auto has = [&](std::uint64_t bit) { return (values.read_format & bit) != 0; };
  out.text("... sample_read:\n");
  if (has(abi::kReadTimeEnabled)) out.text(fmt::format("...... time enabled {:016x}\n", values.time_enabled));
  if (has(abi::kReadTimeRunning)) out.text(fmt::format("...... time running {:016x}\n", values.time_running));
  if (has(abi::kReadGroup)) out.text(fmt::format(".... group nr {}\n", values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto entry = values.entry(i);
    out.text(fmt::format("..... id {:016x}, value {:016x}", entry.id, entry.value));
    if (has(abi::kReadLost)) out.text(fmt::format(", lost {}", entry.lost));
    out.character('\n');
  }
}

// The position of the copied stack's size, as perf counts it: bytes from the start of the record.
std::size_t stack_offset(const format::RecordView& record, const format::Sample& sample) {
  return static_cast<std::size_t>(sample.user_stack.data() - record.bytes.data()) - sizeof(std::uint64_t);
}

void write_raw_sample(TextBuffer& out, const format::RecordView& record, const format::Sample& sample,
                      const format::EventAttr& attr, std::string_view arch) {
  out.text(fmt::format("(IP, {:#x}): {}/{}: {:#x} period: {} addr: {}\n", record.misc,
                       static_cast<std::int32_t>(sample.pid), static_cast<std::int32_t>(sample.tid),
                       sample.ip, sample.period, alternate_hex(sample.addr)));
  const auto has = [&](abi::SampleType bit) { return attr.samples(bit); };
  if (has(abi::kSampleCallchain)) write_chain(out, sample);
  if (has(abi::kSampleBranchStack)) write_branches(out, sample, attr);
  if (has(abi::kSampleRegsUser)) write_registers(out, "user", sample.user_registers, arch);
  if (has(abi::kSampleRegsIntr)) write_registers(out, "intr", sample.interrupt_registers, arch);
  if (has(abi::kSampleStackUser)) {
    out.text(fmt::format("... ustack: size {}, offset {:#x}\n", sample.user_stack.size(),
                         sample.user_stack.empty() ? 0 : stack_offset(record, sample)));
  }
  if (has(abi::kSampleWeight)) out.text(fmt::format("... weight: {}\n", sample.weight));
  if (has(abi::kSampleWeightStruct)) {  // perf uses the last part on POWER only
    out.text(fmt::format("... weight: {},{:#x},{:#x}\n", sample.weight, sample.weight2,
                         arch.starts_with("ppc") ? sample.weight3 : 0));
  }
  if (has(abi::kSampleDataSrc)) out.text(fmt::format(" . data_src: 0x{:x}\n", sample.data_source));
  if (has(abi::kSamplePhysAddr)) out.text(fmt::format(" .. phys_addr: 0x{:x}\n", sample.phys_addr));
  if (has(abi::kSampleDataPageSize))
    out.text(fmt::format(" .. data page size: {}\n", page_size_text(sample.data_page_size)));
  if (has(abi::kSampleCodePageSize))
    out.text(fmt::format(" .. code page size: {}\n", page_size_text(sample.code_page_size)));
  if (has(abi::kSampleTransaction)) out.text(fmt::format("... transaction: {:x}\n", sample.transaction));
  if (has(abi::kSampleRead)) write_values(out, sample.read);
}

constexpr std::size_t kBytesInLine = 16;

std::int32_t as_signed(std::uint32_t value) { return static_cast<std::int32_t>(value); }

// "0-3,6": ascending numbers, with consecutive ones as a range.
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (end - i > 1) text += '-' + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

class Text {
 public:
  Text(TextBuffer& out, const RecordView& record, const EventAttr& attr, std::string_view event, Names names)
      : out_(out), record_(record), attr_(attr), event_(event), names_(names) {}

  void operator()(const MmapRecord& r) {
    out_.text(fmt::format(" {}/{}: [{}({}) @ {}", as_signed(r.pid), as_signed(r.tid), alternate_hex(r.start),
                          alternate_hex(r.length), alternate_hex(r.page_offset)));
    if (!r.is_mmap2) {
      out_.text(fmt::format("]: {} ", r.is_data ? 'r' : 'x'));
    } else {
      constexpr std::uint32_t kRead = 1, kWrite = 2, kExecute = 4, kShared = 1;  // PROT_ and MAP_ of Linux
      const auto letter = [](bool is_set, char c) { return is_set ? c : '-'; };
      if ((record_.misc & abi::kMiscMmapBuildId) != 0) {
        out_.text(fmt::format(" <{}>", r.build_id.hex()));
      } else {
        out_.text(fmt::format(" {:02x}:{:02x} {} {}", r.major, r.minor, r.inode, r.inode_generation));
      }
      out_.text(fmt::format(
          "]: {}{}{}{} ", letter((r.protection & kRead) != 0, 'r'), letter((r.protection & kWrite) != 0, 'w'),
          letter((r.protection & kExecute) != 0, 'x'), (r.flags & kShared) != 0 ? 's' : 'p'));
    }
    name_line(r.filename);
  }
  void operator()(const CommRecord& r) {
    out_.text(r.is_exec ? " exec: " : ": ");
    out_.text(printable(r.name, names_));
    out_.text(fmt::format(":{}/{}\n", as_signed(r.pid), as_signed(r.tid)));
  }
  void operator()(const TaskRecord& r) {
    out_.text(fmt::format("({}:{}):({}:{})\n", as_signed(r.pid), as_signed(r.tid), as_signed(r.parent_pid),
                          as_signed(r.parent_tid)));
  }
  void operator()(const LostRecord& r) { out_.text(fmt::format(": id:{}: lost:{}\n", r.id, r.lost)); }
  void operator()(const LostSamplesRecord& r) {
    out_.text(fmt::format(": id:{}: lost samples :{}\n", parse_sample_id(record_, attr_).id, r.lost));
  }
  void operator()(const SwitchRecord& r) {
    const std::string_view way = !r.is_out ? "IN         " : r.is_preempt ? "OUT preempt" : "OUT        ";
    out_.text(fmt::format(" {}", way));
    if (r.is_cpu_wide) {
      out_.text(fmt::format("  {} pid/tid: {:5}/{:<5}", r.is_out ? "next" : "prev",
                            as_signed(r.next_prev_pid), as_signed(r.next_prev_tid)));
    }
    out_.character('\n');
  }
  void operator()(const NamespacesRecord& r) {
    static constexpr std::array<std::string_view, 7> kNames = {"net",  "uts", "ipc",   "pid",
                                                               "user", "mnt", "cgroup"};
    constexpr std::size_t kInLine = 4;
    const std::size_t count = r.links.size() / 2;
    out_.text(fmt::format(" {}/{} - nr_namespaces: {}\n\t\t[", as_signed(r.pid), as_signed(r.tid), count));
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0 && i % kInLine == 0) out_.text("\n\t\t ");
      out_.text(fmt::format("{}/{}: {}/{}{}", i, i < kNames.size() ? kNames[i] : "unknown", r.links[2 * i],
                            alternate_hex(r.links[2 * i + 1]), i + 1 < count ? ", " : ""));
    }
    out_.text("]\n");
  }
  void operator()(const KsymbolRecord& r) {
    out_.text(
        fmt::format(" addr {:x} len {} type {} flags 0x{:x} name ", r.address, r.length, r.type, r.flags));
    name_line(r.name);
  }
  void operator()(const BpfEventRecord& r) {
    out_.text(fmt::format(" type {}, flags {}, id {}\n", r.type, r.flags, r.id));
  }
  void operator()(const CgroupRecord& r) {
    out_.text(fmt::format(" cgroup: {} ", r.id));
    name_line(r.path);
  }
  void operator()(const TextPokeRecord& r) {
    out_.text(
        fmt::format(" {:x}  old len {} new len {}\n", r.address, r.old_bytes.size(), r.new_bytes.size()));
    code(r.old_bytes, "            Old bytes:");
    code(r.new_bytes, "            New bytes:");
  }
  void operator()(const ItraceStartRecord& r) {
    out_.text(fmt::format(" pid: {} tid: {}\n", as_signed(r.pid), as_signed(r.tid)));
  }
  void operator()(const AuxRecord& r) {
    constexpr std::uint64_t kTruncated = 1, kOverwrite = 2, kPartial = 4;
    out_.text(fmt::format(" offset: {} size: {} flags: {} [{}{}{}]\n", alternate_hex(r.offset),
                          alternate_hex(r.size), alternate_hex(r.flags),
                          (r.flags & kTruncated) != 0 ? "T" : "", (r.flags & kOverwrite) != 0 ? "O" : "",
                          (r.flags & kPartial) != 0 ? "P" : ""));
  }
  void operator()(const ReadRecord& r) {
    const auto entry = r.values.size() == 0 ? ReadValues::Entry{} : r.values.entry(0);
    const auto has = [&](std::uint64_t bit) { return (attr_.read_format & bit) != 0; };
    out_.text(fmt::format(": {} {} ", as_signed(r.pid), as_signed(r.tid)));
    out_.text(printable(event_, names_));
    out_.text(fmt::format(" {}\n", r.values.single.value_or(entry.value)));
    if (has(abi::kReadTimeEnabled)) out_.text(fmt::format("... time enabled : {}\n", r.values.time_enabled));
    if (has(abi::kReadTimeRunning)) out_.text(fmt::format("... time running : {}\n", r.values.time_running));
    if (has(abi::kReadId)) out_.text(fmt::format("... id           : {}\n", entry.id));
    if (has(abi::kReadLost)) out_.text(fmt::format("... lost         : {}\n", entry.lost));
  }
  void operator()(const EventUpdateRecord& r) {
    enum Kind : std::uint64_t { Unit = 0, Scale = 1, Name = 2, Cpus = 3 };
    out_.text(fmt::format("\n... id:    {}\n", r.id));
    Cursor in(r.data, record_.order);
    if (r.kind == Unit || r.kind == Name) {
      out_.text(r.kind == Unit ? "... unit:  " : "... name:  ");
      name_line(in.text(in.left()));
    } else if (r.kind == Scale) {
      out_.text(fmt::format("... scale: {:f}\n", std::bit_cast<double>(in.u64())));
    } else if (r.kind == Cpus) {
      out_.text("... cpus:  " + ranges_text(cpus_in(parse_cpu_map(in))) + "\n");
    } else {
      out_.text("... unknown type\n");
    }
  }
  void operator()(const OtherRecord&) { other(record_.body()); }
  void operator()(const auto&) {}  // perf prints only the name of these types

 private:
  void name_line(std::string_view name) {
    out_.text(printable(name, names_));
    out_.character('\n');
  }
  void code(Bytes bytes, std::string_view head) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i % kBytesInLine == 0) out_.text(head);
      out_.text(fmt::format(" {:02x}", static_cast<unsigned>(bytes[i])));
      if (i % kBytesInLine == kBytesInLine - 1 || i + 1 == bytes.size()) out_.character('\n');
    }
  }
  void other(Cursor in) {
    switch (record_.type) {
      case abi::kRecordFinishedRound:
        return out_.character('\n');
      case abi::kRecordFinishedInit:
        return out_.text(": unhandled!\n");
      case abi::kRecordCpuMap:
        return out_.text(": " + ranges_text(cpus_in(parse_cpu_map(in))) + "\n: unhandled!\n");
      case abi::kRecordThreadMap:
        return threads(in);
      case abi::kRecordIdIndex:
        return id_index(in);
      case abi::kRecordTimeConv:
        return time_conversion(in);
      default:
        return;
    }
  }
  void threads(Cursor in) {
    constexpr std::size_t kEntry = 24;  // u64 tid, 16 bytes of its name
    const std::uint64_t count = in.u64();
    out_.text(fmt::format(" nr: {} {}: ", count, count > 1 ? "threads" : "thread"));
    bool is_first = true;
    for (; in.left() >= kEntry; is_first = false) {
      out_.text(fmt::format("{}{}", is_first ? "" : ", ", static_cast<std::int32_t>(in.u64())));
      in.take_bytes(kEntry - 8);
    }
    out_.text("\n: unhandled!\n");
  }
  void id_index(Cursor in) {
    constexpr std::size_t kEntry = 32;
    out_.text(fmt::format(" nr: {}\n", in.u64()));
    for (; in.left() >= kEntry;) {
      const std::uint64_t id = in.u64(), index = in.u64(), cpu = in.u64(), tid = in.u64();
      out_.text(fmt::format(" ... id: {}  idx: {}  cpu: {}  tid: {}\n", id, index,
                            static_cast<std::int64_t>(cpu), static_cast<std::int64_t>(tid)));
    }
  }

  // In perf's spelling.
  void time_conversion(Cursor in) {
    constexpr std::size_t kShort = 24, kWhole = 42;  // bytes; Linux 5.12 added the rest
    if (in.left() < kShort) return;
    const bool is_whole = in.left() >= kWhole;
    const std::uint64_t shift = in.u64(), multiplier = in.u64(), zero = in.u64();
    out_.text(fmt::format("\n... Time Shift      {}\n... Time Muliplier  {}\n... Time Zero       {}\n", shift,
                          multiplier, zero));
    if (is_whole) {
      const std::uint64_t cycles = in.u64(), mask = in.u64();
      out_.text(fmt::format("... Time Cycles     {}\n... Time Mask       {}\n", cycles, alternate_hex(mask)));
      out_.text(fmt::format("... Cap Time Zero   {}\n", in.u8()));
      out_.text(fmt::format("... Cap Time Short  {}\n", in.u8()));
    }
    out_.text(": unhandled!\n");
  }

  TextBuffer& out_;
  const RecordView& record_;
  const EventAttr& attr_;
  std::string_view event_;
  Names names_;
};

void write_record_bytes(TextBuffer& out, const RecordView& record, std::string_view file) {
  out.text(fmt::format("\n{}@{} [{:#x}]: event: {}\n.\n. ... raw event: size {} bytes\n",
                       alternate_hex(record.offset), file, record.bytes.size(), record.type,
                       record.bytes.size()));
  for (std::size_t at = 0; at < record.bytes.size(); at += kBytesInLine) {
    const Bytes line = record.bytes.subspan(at, std::min(kBytesInLine, record.bytes.size() - at));
    out.text(fmt::format(".  {:04x}: ", at));
    for (const std::byte byte : line) {
      out.character(' ');
      out.hex_byte(static_cast<std::uint8_t>(byte));
    }
    out.blanks(3 * (kBytesInLine - line.size()) + 2);
    for (const std::byte byte : line) {
      const char c = static_cast<char>(byte);
      out.character(c >= ' ' && c <= '~' ? c : '.');
    }
    out.blanks(kBytesInLine - line.size());
    out.character('\n');
  }
  out.character('\n');
}

void write_raw_record(TextBuffer& out, const RecordView& record, const EventAttr& attr,
                      std::string_view event, Names names) {
  const auto parsed = parse_record(record, attr);
  if (!parsed) return;
  std::visit(Text(out, record, attr, event, names), *parsed);
}

}  // namespace

void write_raw_trace(TextOutput& out, CaptureReader& capture, Diagnostics& diagnostics, std::string_view file,
                     Names names) {
  RawTrace(out, capture, diagnostics, file, names).run();
}

}  // namespace tacho::report
