#include "format/records/record.h"

#include <algorithm>

namespace tacho::format {

namespace {

// Body of a kernel record: the bytes between the header and the sample_id trailer.
Cursor kernel_body(const RecordView& record, const EventAttr& attr, FieldLog* log) {
  const std::size_t trailer = sample_id_size(attr);
  const Bytes body = declared_bytes(record, trailer).subspan(kRecordHeaderSize);
  return Cursor(body.first(body.size() - std::min(trailer, body.size())), record.order, log);
}

// Consumes the padding at the end of a record.
void skip_zeros(Cursor& in) {
  const Bytes rest = in.rest();
  if (std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; })) in.skip(rest.size());
}

// A name up to its first NUL, and its padding of zeros, of which some writers add more than needed.
std::string_view name_of(Cursor& in) {
  const std::string_view name = Cursor(in).text(in.left());
  in.skip(std::min(in.left(), name.size() + 1));
  skip_zeros(in);
  in.skip(std::min<std::size_t>(in.left(), 7));
  return name;
}

struct Parsing {
  const RecordView& record;
  const EventAttr& attr;
};

// Whether a recorder synthesized the record: then its trailer is zero.
bool is_synthesized(const Parsing& about) {
  if (sample_id_size(about.attr) == 0) return false;
  const SampleId id = parse_sample_id(about.record, about.attr);
  const bool has_id = about.attr.samples(abi::kSampleIdentifier) || about.attr.samples(abi::kSampleId);
  return has_id ? id.id == 0 : id.time == 0;
}

// Whether an MMAP2 record with kMiscMmapBuildId really has a build id (of 1 to 20 bytes) and not device and
// inode. If two recorders run and one of them requests build ids, the kernel sets the flag in the other's
// records too.
bool carries_build_id(const Cursor& identity, const Parsing& about) {
  const std::uint8_t size = Cursor(identity).u8();
  return (about.record.misc & abi::kMiscMmapBuildId) != 0 && size >= 1 && size <= BuildId{}.bytes.size() &&
         (about.attr.has(abi::kBuildId) || is_synthesized(about));
}

// The fields of a record are read in their order: braces evaluate from left to right.

Record parse_mmap(Cursor& in, const Parsing& about) {
  MmapRecord mmap;
  mmap.pid = in.u32();
  mmap.tid = in.u32();
  mmap.start = in.u64();
  mmap.length = in.u64();
  mmap.page_offset = in.u64();
  mmap.is_data = (about.record.misc & abi::kMiscMmapData) != 0;
  if (about.record.type == abi::kRecordMmap2) {
    mmap.is_mmap2 = true;
    if (carries_build_id(Cursor(in.rest()), about)) {
      const std::uint8_t size = in.u8();
      in.skip(3);
      mmap.build_id = BuildId::from_bytes(in.take_bytes(20).first(in.failed() ? 0 : size));
    } else {
      mmap.major = in.u32();
      mmap.minor = in.u32();
      mmap.inode = in.u64();
      mmap.inode_generation = in.u64();
    }
    mmap.protection = in.u32();
    mmap.flags = in.u32();
  }
  mmap.filename = name_of(in);
  return mmap;
}

Record parse_comm(Cursor& in, const Parsing& about) {
  return CommRecord{.pid = in.u32(),
                    .tid = in.u32(),
                    .name = name_of(in),
                    .is_exec = (about.record.misc & abi::kMiscCommExec) != 0};
}

Record parse_task(Cursor& in, const Parsing& about) {
  return TaskRecord{.pid = in.u32(),
                    .parent_pid = in.u32(),
                    .tid = in.u32(),
                    .parent_tid = in.u32(),
                    .time = in.left() >= sizeof(std::uint64_t) ? in.u64() : 0,  // none in Linux 2.6.31
                    .is_exit = about.record.type == abi::kRecordExit};
}

Record parse_lost(Cursor& in, const Parsing&) { return LostRecord{.id = in.u64(), .lost = in.u64()}; }

Record parse_lost_samples(Cursor& in, const Parsing&) { return LostSamplesRecord{in.u64()}; }

Record parse_throttle(Cursor& in, const Parsing& about) {
  return ThrottleRecord{.time = in.u64(),
                        .id = in.u64(),
                        .stream_id = in.u64(),
                        .is_unthrottle = about.record.type == abi::kRecordUnthrottle};
}

Record parse_read(Cursor& in, const Parsing& about) {
  return ReadRecord{
      .pid = in.u32(), .tid = in.u32(), .values = parse_read_values(in, about.attr.read_format)};
}

Record parse_aux(Cursor& in, const Parsing&) {
  return AuxRecord{.offset = in.u64(), .size = in.u64(), .flags = in.u64()};
}

Record parse_itrace_start(Cursor& in, const Parsing&) {
  return ItraceStartRecord{.pid = in.u32(), .tid = in.u32()};
}

Record parse_switch(Cursor& in, const Parsing& about) {
  SwitchRecord change;
  change.is_out = (about.record.misc & abi::kMiscSwitchOut) != 0;
  change.is_preempt = (about.record.misc & abi::kMiscSwitchOutPreempt) != 0;
  change.is_cpu_wide = about.record.type == abi::kRecordSwitchCpuWide;
  if (change.is_cpu_wide) {
    change.next_prev_pid = in.u32();
    change.next_prev_tid = in.u32();
  }
  return change;
}

Record parse_namespaces(Cursor& in, const Parsing&) {
  return NamespacesRecord{.pid = in.u32(), .tid = in.u32(), .links = in.words(in.u64(), 2)};
}

Record parse_ksymbol(Cursor& in, const Parsing&) {
  return KsymbolRecord{
      .address = in.u64(), .length = in.u32(), .type = in.u16(), .flags = in.u16(), .name = name_of(in)};
}

Record parse_bpf_event(Cursor& in, const Parsing&) {
  BpfEventRecord event;
  event.type = in.u16();
  event.flags = in.u16();
  event.id = in.u32();
  std::ranges::transform(in.take_bytes(event.tag.size()), event.tag.begin(),
                         [](std::byte byte) { return static_cast<std::uint8_t>(byte); });
  return event;
}

Record parse_cgroup(Cursor& in, const Parsing&) { return CgroupRecord{.id = in.u64(), .path = name_of(in)}; }

Record parse_text_poke(Cursor& in, const Parsing&) {
  TextPokeRecord poke;
  poke.address = in.u64();
  const std::uint16_t old_size = in.u16();
  const std::uint16_t new_size = in.u16();
  poke.old_bytes = in.take_bytes(old_size);
  poke.new_bytes = in.take_bytes(new_size);
  in.skip(std::min<std::size_t>(in.left(), 7));  // padding
  return poke;
}

Record parse_aux_output_hw_id(Cursor& in, const Parsing&) { return AuxOutputHwIdRecord{in.u64()}; }

Record parse_callchain_deferred(Cursor& in, const Parsing&) {
  return CallchainDeferredRecord{.cookie = in.u64(), .addresses = in.words(in.u64())};
}

Record parse_header_attr(Cursor& in, const Parsing&) {
  auto attr = parse_event_attr(in);
  if (!attr) {
    in.fail();
    return OtherRecord{};
  }
  HeaderAttrRecord header;
  header.attr = std::move(*attr);
  in.skip(header.attr.size == 0 ? 64 : header.attr.size);
  const U64Array ids = in.words(in.left() / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < ids.size(); ++i) header.ids.push_back(ids[i]);
  return header;
}

Record parse_event_update(Cursor& in, const Parsing&) {
  EventUpdateRecord update;
  update.kind = in.u64();
  update.id = in.u64();
  update.data = in.rest();
  constexpr std::uint64_t kUnit = 0, kScale = 1, kName = 2;
  if (update.kind == kScale) {
    in.u64();
    skip_zeros(in);
  } else if (update.kind == kUnit || update.kind == kName) {
    (void)name_of(in);
  } else {
    in.skip(in.left());
  }
  return update;
}

Record parse_header_feature(Cursor& in, const Parsing&) {
  return HeaderFeatureRecord{.feature = in.u64(), .section = in.take_bytes(in.left())};
}

// Linux 2.6.32 and 2.6.33 wrote no pid: then the name, which begins with / or [, is 4 bytes earlier, where
// the others have zeros or the size of the id.
bool has_process(const Cursor& in) {
  constexpr std::size_t kName = 24;
  if (in.left() <= kName) return true;
  const char letter = static_cast<char>(in.rest()[kName]);
  return letter != '/' && letter != '[';
}

// The same layout as the entries of feature 2.
Record parse_build_id(Cursor& in, const Parsing& about) {
  BuildIdRecord entry;
  entry.misc = about.record.misc;
  entry.pid = has_process(in) ? static_cast<std::int32_t>(in.u32()) : -1;
  const Bytes id = in.take_bytes(20);
  const std::uint8_t size = in.u8();
  in.skip(3);
  entry.filename = in.text(in.left());
  const bool has_size = (about.record.misc & abi::kMiscBuildIdSize) != 0;
  entry.build_id = has_size ? BuildId::from_bytes(id.first(std::min<std::size_t>(size, id.size())))
                            : BuildId::from_padded(id);
  return entry;
}

Record parse_other(Cursor& in, const Parsing&) { return OtherRecord{in.take_bytes(in.left())}; }

// Records without a body.
Record parse_mark(Cursor&, const Parsing&) { return OtherRecord{}; }

// The entries, whose number is in front; in newer versions a second list for guests follows.
Record parse_id_index(Cursor& in, const Parsing&) {
  const Bytes body = in.rest();
  const std::uint64_t count = in.u64();
  in.words(count, 4);
  if (in.left() == count * 16) in.words(count, 2);
  return OtherRecord{body};
}

Record parse_thread_map(Cursor& in, const Parsing&) {
  const Bytes body = in.rest();
  in.take_items(in.u64(), 24);
  return OtherRecord{body};
}

struct RecordRow {
  std::uint32_t type;
  std::string_view name;
  Record (*parse)(Cursor&, const Parsing&);
};

constexpr RecordRow kRecords[] = {
    {abi::kRecordMmap, "MMAP", parse_mmap},
    {abi::kRecordLost, "LOST", parse_lost},
    {abi::kRecordComm, "COMM", parse_comm},
    {abi::kRecordExit, "EXIT", parse_task},
    {abi::kRecordThrottle, "THROTTLE", parse_throttle},
    {abi::kRecordUnthrottle, "UNTHROTTLE", parse_throttle},
    {abi::kRecordFork, "FORK", parse_task},
    {abi::kRecordRead, "READ", parse_read},
    {abi::kRecordSample, "SAMPLE", parse_other},
    {abi::kRecordMmap2, "MMAP2", parse_mmap},
    {abi::kRecordAux, "AUX", parse_aux},
    {abi::kRecordItraceStart, "ITRACE_START", parse_itrace_start},
    {abi::kRecordLostSamples, "LOST_SAMPLES", parse_lost_samples},
    {abi::kRecordSwitch, "SWITCH", parse_switch},
    {abi::kRecordSwitchCpuWide, "SWITCH_CPU_WIDE", parse_switch},
    {abi::kRecordNamespaces, "NAMESPACES", parse_namespaces},
    {abi::kRecordKsymbol, "KSYMBOL", parse_ksymbol},
    {abi::kRecordBpfEvent, "BPF_EVENT", parse_bpf_event},
    {abi::kRecordCgroup, "CGROUP", parse_cgroup},
    {abi::kRecordTextPoke, "TEXT_POKE", parse_text_poke},
    {abi::kRecordAuxOutputHwId, "AUX_OUTPUT_HW_ID", parse_aux_output_hw_id},
    {abi::kRecordCallchainDeferred, "CALLCHAIN_DEFERRED", parse_callchain_deferred},
    {abi::kRecordHeaderAttr, "ATTR", parse_header_attr},
    {abi::kRecordEventType, "EVENT_TYPE", parse_other},
    {abi::kRecordTracingData, "TRACING_DATA", parse_other},
    {abi::kRecordBuildId, "BUILD_ID", parse_build_id},
    {abi::kRecordFinishedRound, "FINISHED_ROUND", parse_mark},
    {abi::kRecordIdIndex, "ID_INDEX", parse_id_index},
    {abi::kRecordAuxtraceInfo, "AUXTRACE_INFO", parse_other},
    {abi::kRecordAuxtrace, "AUXTRACE", parse_other},
    {abi::kRecordAuxtraceError, "AUXTRACE_ERROR", parse_other},
    {abi::kRecordThreadMap, "THREAD_MAP", parse_thread_map},
    {abi::kRecordCpuMap, "CPU_MAP", parse_other},
    {abi::kRecordStatConfig, "STAT_CONFIG", parse_other},
    {abi::kRecordStat, "STAT", parse_other},
    {abi::kRecordStatRound, "STAT_ROUND", parse_other},
    {abi::kRecordEventUpdate, "EVENT_UPDATE", parse_event_update},
    {abi::kRecordTimeConv, "TIME_CONV", parse_other},
    {abi::kRecordHeaderFeature, "FEATURE", parse_header_feature},
    {abi::kRecordCompressed, "COMPRESSED", parse_other},
    {abi::kRecordFinishedInit, "FINISHED_INIT", parse_mark},
    {abi::kRecordCompressed2, "COMPRESSED2", parse_other},
    {abi::kRecordBpfMetadata, "BPF_METADATA", parse_other},
    {abi::kRecordSchedstatCpu, "SCHEDSTAT_CPU", parse_other},
    {abi::kRecordSchedstatDomain, "SCHEDSTAT_DOMAIN", parse_other},
};

// Row number plus 1 by type; 0: none. A table, since every record is looked up.
constexpr std::uint32_t kTypes = 128;
constexpr auto kRowOfType = [] {
  std::array<std::uint8_t, kTypes> rows{};
  for (std::size_t i = 0; i < std::size(kRecords); ++i)
    rows[kRecords[i].type] = static_cast<std::uint8_t>(i + 1);
  return rows;
}();

const RecordRow* row_of(std::uint32_t type) {
  if (type >= kTypes || kRowOfType[type] == 0) return nullptr;
  return &kRecords[kRowOfType[type] - 1];
}

// Whether the bytes after a record are further records, by their headers and times: old contents of the ring
// have older times.
bool are_records(Bytes bytes, const RecordView& record, const EventAttr& attr) {
  for (const auto since = record_time(record, attr); !bytes.empty();) {
    if (bytes.size() < kRecordHeaderSize) return false;
    const std::size_t size = Cursor(bytes.subspan(6), record.order).u16();
    if (size < kRecordHeaderSize || size > bytes.size()) return false;
    const RecordView next = whole_record(bytes.first(size), record.order);
    if (row_of(next.type) == nullptr || record_time(next, attr) < since) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

// Writes the header, lets `body` write, adds the trailer and sets the size.
template <class Body>
void write_record(ByteWriter& out, std::uint32_t type, std::uint16_t misc, std::size_t trailer, Body&& body) {
  const std::size_t start = out.size();
  out.u32(type).u16(misc).u16(0);
  body();
  out.zeros((8 - (out.size() - start) % 8) % 8);
  out.zeros(trailer);
  out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
}

void write_name(ByteWriter& out, std::string_view name) { out.padded_text(name.substr(0, 4095), 8); }

void write_mapping(ByteWriter& out, const MmapRecord& mmap) {
  out.u32(mmap.pid).u32(mmap.tid).u64(mmap.start).u64(mmap.length).u64(mmap.page_offset);
}

}  // namespace

std::size_t unread_bytes(const RecordView& record, const EventAttr& attr) {
  const RecordRow* const row = row_of(record.type);
  const bool is_kernel = record.type < abi::kRecordUserStart;
  if (row == nullptr || record.type == abi::kRecordSample) return 0;
  if (is_kernel && (attr.sample_type & ~abi::kKnownSampleTypes) != 0) return 0;  // the trailer may be longer
  Cursor in = is_kernel ? kernel_body(record, attr, nullptr) : record.body();
  (void)row->parse(in, {record, attr});
  if (in.failed()) return 0;
  const std::size_t own =
      is_kernel ? declared_bytes(record, sample_id_size(attr)).size() : record.bytes.size();
  const Bytes rest = record.bytes.subspan(own);
  return in.left() + (are_records(rest, record, attr) ? rest.size() : 0);
}

Result<Record> parse_record(const RecordView& record, const EventAttr& attr, FieldLog* log) {
  const RecordRow* row = row_of(record.type);
  const bool is_kernel = record.type < abi::kRecordUserStart && record.type != abi::kRecordSample;
  Cursor in = is_kernel ? kernel_body(record, attr, log) : record.body(log);
  Record parsed = (row == nullptr ? parse_other : row->parse)(in, {record, attr});
  if (in.failed()) return Error{std::string(record_name(record.type)) + " record is shorter than its fields"};
  return parsed;
}

std::string_view record_name(std::uint32_t type) {
  const RecordRow* row = row_of(type);
  return row == nullptr ? std::string_view{} : row->name;
}

void write_mmap(ByteWriter& out, const MmapRecord& record, std::uint16_t cpumode, std::size_t trailer) {
  const auto misc = static_cast<std::uint16_t>(cpumode | (record.is_data ? abi::kMiscMmapData : 0));
  write_record(out, abi::kRecordMmap, misc, trailer, [&] {
    write_mapping(out, record);
    write_name(out, record.filename);
  });
}

void write_mmap2(ByteWriter& out, const MmapRecord& record, std::uint16_t cpumode, std::size_t trailer) {
  auto misc = static_cast<std::uint16_t>(cpumode | (record.is_data ? abi::kMiscMmapData : 0));
  if (!record.build_id.empty()) misc = static_cast<std::uint16_t>(misc | abi::kMiscMmapBuildId);
  write_record(out, abi::kRecordMmap2, misc, trailer, [&] {
    write_mapping(out, record);
    if (record.build_id.empty()) {
      out.u32(record.major).u32(record.minor).u64(record.inode).u64(record.inode_generation);
    } else {
      out.u8(record.build_id.size).u8(0).u16(0).bytes(std::as_bytes(std::span(record.build_id.bytes)));
    }
    out.u32(record.protection).u32(record.flags);
    write_name(out, record.filename);
  });
}

void write_comm(ByteWriter& out, const CommRecord& record, std::size_t trailer) {
  const std::uint16_t misc = record.is_exec ? abi::kMiscCommExec : 0;
  write_record(out, abi::kRecordComm, misc, trailer, [&] {
    out.u32(record.pid).u32(record.tid);
    write_name(out, record.name);
  });
}

void write_fork(ByteWriter& out, const TaskRecord& record, std::size_t trailer) {
  write_record(out, record.is_exit ? abi::kRecordExit : abi::kRecordFork, 0, trailer, [&] {
    out.u32(record.pid).u32(record.parent_pid).u32(record.tid).u32(record.parent_tid).u64(record.time);
  });
}

void write_ksymbol(ByteWriter& out, const KsymbolRecord& record, std::size_t trailer) {
  write_record(out, abi::kRecordKsymbol, 0, trailer, [&] {
    out.u64(record.address).u32(record.length).u16(record.type).u16(record.flags);
    write_name(out, record.name);
  });
}

void write_bpf_event(ByteWriter& out, const BpfEventRecord& record, std::size_t trailer) {
  write_record(out, abi::kRecordBpfEvent, 0, trailer, [&] {
    out.u16(record.type).u16(record.flags).u32(record.id).bytes(std::as_bytes(std::span(record.tag)));
  });
}

void write_namespaces(ByteWriter& out, std::uint32_t pid, std::uint32_t tid,
                      std::span<const std::uint64_t> links, std::size_t trailer) {
  write_record(out, abi::kRecordNamespaces, 0, trailer, [&] {
    out.u32(pid).u32(tid).u64(links.size() / 2);
    for (const std::uint64_t word : links) out.u64(word);
  });
}

void write_cgroup(ByteWriter& out, const CgroupRecord& record, std::size_t trailer) {
  write_record(out, abi::kRecordCgroup, 0, trailer, [&] {
    out.u64(record.id);
    write_name(out, record.path);
  });
}

void write_lost_samples(ByteWriter& out, std::uint64_t lost, const EventAttr& attr, std::uint64_t id) {
  // The trailer is zero except for its ids.
  const SampleId ids{.pid = 0, .tid = 0, .time = 0, .id = id, .stream_id = 0, .cpu = 0};
  write_record(out, abi::kRecordLostSamples, 0, 0, [&] {
    out.u64(lost);
    write_sample_id(out, ids, attr);
  });
}

void write_mark(ByteWriter& out, abi::RecordType type) {
  write_record(out, type, 0, 0, [] {});
}

}  // namespace tacho::format
