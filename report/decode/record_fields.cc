#include "report/decode/record_fields.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "format/records/perf_abi.h"

namespace tacho::report {

namespace {

using namespace format;

void describe_words(FieldSink& to, std::string_view name, const U64Array& words) {
  to.begin_list(name);
  for (std::size_t i = 0; i < words.size(); ++i) to.hex({}, words[i]);
  to.end_list();
}

void describe_read(FieldSink& to, const ReadValues& values) {
  to.begin_object("read");
  if (values.read_format & abi::kReadTimeEnabled) to.number("time_enabled", values.time_enabled);
  if (values.read_format & abi::kReadTimeRunning) to.number("time_running", values.time_running);
  to.begin_list("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ReadValues::Entry entry = values.entry(i);
    to.begin_object({});
    to.number("value", entry.value);
    if (values.read_format & abi::kReadId) to.number("id", entry.id);
    if (values.read_format & abi::kReadLost) to.number("lost", entry.lost);
    to.end_object();
  }
  to.end_list();
  to.end_object();
}

void describe_registers(FieldSink& to, std::string_view name, const Registers& registers) {
  to.begin_object(name);
  to.number("abi", registers.abi);
  to.hex("mask", registers.mask);
  describe_words(to, "values", registers.values);
  to.end_object();
}

void describe_branches(FieldSink& to, const Sample& sample, const EventAttr& attr) {
  if (attr.branch_sample_type & abi::kBranchHwIndex) to.number("branch_hw_index", sample.branch_hw_index);
  to.begin_list("branches");
  for (std::size_t i = 0; i < sample.branch_count(); ++i) {
    const BranchEntry branch = sample.branch(i);
    to.begin_object({});
    to.hex("from", branch.from);
    to.hex("to", branch.to);
    to.hex("flags", branch.flags);
    to.end_object();
  }
  to.end_list();
  if (attr.branch_sample_type & abi::kBranchCounters)
    describe_words(to, "branch_counters", sample.branch_counters);
}

// The fields of a sample, in the order of the record. A sample has a field when its
// event's sample_type has the field's bit.
struct SampleFieldRow {
  std::uint64_t bit;
  void (*describe)(FieldSink& to, const Sample& sample, const EventAttr& attr);
};

constexpr SampleFieldRow kSampleFields[] = {
    {abi::kSampleIdentifier | abi::kSampleId,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("id", s.identifier); }},
    {abi::kSampleIp, [](FieldSink& to, const Sample& s, const EventAttr&) { to.hex("ip", s.ip); }},
    {abi::kSampleTid,
     [](FieldSink& to, const Sample& s, const EventAttr&) {
       to.signed_number("pid", static_cast<std::int32_t>(s.pid));
       to.signed_number("tid", static_cast<std::int32_t>(s.tid));
     }},
    {abi::kSampleTime, [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("time", s.time); }},
    {abi::kSampleAddr, [](FieldSink& to, const Sample& s, const EventAttr&) { to.hex("addr", s.addr); }},
    {abi::kSampleStreamId,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("stream_id", s.stream_id); }},
    {abi::kSampleCpu, [](FieldSink& to, const Sample& s,
                         const EventAttr&) { to.signed_number("cpu", static_cast<std::int32_t>(s.cpu)); }},
    {abi::kSamplePeriod,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("period", s.period); }},
    {abi::kSampleRead, [](FieldSink& to, const Sample& s, const EventAttr&) { describe_read(to, s.read); }},
    {abi::kSampleCallchain,
     [](FieldSink& to, const Sample& s, const EventAttr&) { describe_words(to, "callchain", s.callchain); }},
    {abi::kSampleRaw, [](FieldSink& to, const Sample& s, const EventAttr&) { to.bytes("raw", s.raw); }},
    {abi::kSampleBranchStack, describe_branches},
    {abi::kSampleRegsUser,
     [](FieldSink& to, const Sample& s, const EventAttr&) {
       describe_registers(to, "user_registers", s.user_registers);
     }},
    {abi::kSampleStackUser,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.bytes("user_stack", s.user_stack); }},
    {abi::kSampleWeight | abi::kSampleWeightStruct,
     [](FieldSink& to, const Sample& s, const EventAttr& attr) {
       to.number("weight", s.weight);
       if (!attr.samples(abi::kSampleWeightStruct)) return;
       to.number("weight2", s.weight2);
       to.number("weight3", s.weight3);
     }},
    {abi::kSampleDataSrc,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.hex("data_source", s.data_source); }},
    {abi::kSampleTransaction,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.hex("transaction", s.transaction); }},
    {abi::kSampleRegsIntr,
     [](FieldSink& to, const Sample& s, const EventAttr&) {
       describe_registers(to, "interrupt_registers", s.interrupt_registers);
     }},
    {abi::kSamplePhysAddr,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.hex("phys_addr", s.phys_addr); }},
    {abi::kSampleCgroup,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("cgroup", s.cgroup); }},
    {abi::kSampleDataPageSize,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("data_page_size", s.data_page_size); }},
    {abi::kSampleCodePageSize,
     [](FieldSink& to, const Sample& s, const EventAttr&) { to.number("code_page_size", s.code_page_size); }},
    {abi::kSampleAux, [](FieldSink& to, const Sample& s, const EventAttr&) { to.bytes("aux", s.aux); }},
};

void describe_thread(FieldSink& to, std::uint32_t pid, std::uint32_t tid) {
  to.signed_number("pid", static_cast<std::int32_t>(pid));
  to.signed_number("tid", static_cast<std::int32_t>(tid));
}

// A scale that is infinite or no number is shown by its bits, as JSON has no such numbers.
void describe_scale(FieldSink& to, double scale) {
  if (std::isfinite(scale))
    to.real("value", scale);
  else
    to.hex("value", std::bit_cast<std::uint64_t>(scale));
}

// Describes the body of a parsed record: one overload for each alternative of format::Record.
struct Describer {
  FieldSink& to;
  const RecordView& view;

  void operator()(const MmapRecord& r) const {
    describe_thread(to, r.pid, r.tid);
    to.hex("start", r.start);
    to.hex("length", r.length);
    to.hex("page_offset", r.page_offset);
    if (r.is_mmap2 && r.build_id.empty()) {
      to.number("major", r.major);
      to.number("minor", r.minor);
      to.number("inode", r.inode);
      to.number("inode_generation", r.inode_generation);
    }
    if (!r.build_id.empty()) to.text("build_id", r.build_id.hex());
    if (r.is_mmap2) {
      to.number("protection", r.protection);
      to.number("flags", r.flags);
    }
    to.text("filename", r.filename);
  }
  void operator()(const CommRecord& r) const {
    describe_thread(to, r.pid, r.tid);
    to.text("comm", r.name);
    to.flag("exec", r.is_exec);
  }
  void operator()(const TaskRecord& r) const {
    describe_thread(to, r.pid, r.tid);
    to.signed_number("parent_pid", static_cast<std::int32_t>(r.parent_pid));
    to.signed_number("parent_tid", static_cast<std::int32_t>(r.parent_tid));
    to.number("task_time", r.time);
  }
  void operator()(const LostRecord& r) const {
    to.number("lost_id", r.id);
    to.number("lost", r.lost);
  }
  void operator()(const LostSamplesRecord& r) const { to.number("lost", r.lost); }
  void operator()(const ThrottleRecord& r) const {
    to.number("throttle_time", r.time);
    to.number("throttle_id", r.id);
    to.number("throttle_stream_id", r.stream_id);
  }
  void operator()(const ReadRecord& r) const {
    describe_thread(to, r.pid, r.tid);
    describe_read(to, r.values);
  }
  void operator()(const AuxRecord& r) const {
    to.hex("aux_offset", r.offset);
    to.hex("aux_size", r.size);
    to.hex("aux_flags", r.flags);
  }
  void operator()(const ItraceStartRecord& r) const { describe_thread(to, r.pid, r.tid); }
  void operator()(const SwitchRecord& r) const {
    to.flag("out", r.is_out);
    to.flag("preempt", r.is_preempt);
    if (!r.is_cpu_wide) return;
    to.signed_number("next_prev_pid", static_cast<std::int32_t>(r.next_prev_pid));
    to.signed_number("next_prev_tid", static_cast<std::int32_t>(r.next_prev_tid));
  }
  void operator()(const NamespacesRecord& r) const {
    describe_thread(to, r.pid, r.tid);
    to.begin_list("namespaces");
    for (std::size_t i = 0; i + 1 < r.links.size(); i += 2) {
      to.begin_object({});
      to.number("device", r.links[i]);
      to.number("inode", r.links[i + 1]);
      to.end_object();
    }
    to.end_list();
  }
  void operator()(const KsymbolRecord& r) const {
    to.hex("address", r.address);
    to.number("length", r.length);
    to.number("ksymbol_type", r.type);
    to.number("ksymbol_flags", r.flags);
    to.text("name", r.name);
  }
  void operator()(const BpfEventRecord& r) const {
    to.number("bpf_event_type", r.type);
    to.number("bpf_event_flags", r.flags);
    to.number("program_id", r.id);
    to.bytes("tag", std::as_bytes(std::span(r.tag)));
  }
  void operator()(const CgroupRecord& r) const {
    to.number("cgroup", r.id);
    to.text("path", r.path);
  }
  void operator()(const TextPokeRecord& r) const {
    to.hex("address", r.address);
    to.bytes("old_bytes", r.old_bytes);
    to.bytes("new_bytes", r.new_bytes);
  }
  void operator()(const AuxOutputHwIdRecord& r) const { to.hex("hw_id", r.hw_id); }
  void operator()(const CallchainDeferredRecord& r) const {
    to.number("cookie", r.cookie);
    describe_words(to, "callchain", r.addresses);
  }
  void operator()(const HeaderAttrRecord& r) const {
    describe_attr(to, r.attr);
    to.begin_list("ids");
    for (const std::uint64_t id : r.ids) to.number({}, id);
    to.end_list();
  }
  void operator()(const EventUpdateRecord& r) const {
    to.number("update_kind", r.kind);
    to.number("update_id", r.id);
    constexpr std::uint64_t kUnit = 0, kScale = 1, kName = 2, kCpus = 3;
    Cursor in(r.data, view.order);
    if (r.kind == kUnit || r.kind == kName)
      to.text("value", text_of(r.data));
    else if (r.kind == kScale && r.data.size() >= sizeof(double))
      describe_scale(to, std::bit_cast<double>(in.u64()));
    else if (r.kind == kCpus && r.data.size() >= 2 * sizeof(std::uint16_t))
      describe_cpu_map(to, in);
    else
      to.bytes("value", r.data);
  }
  void operator()(const HeaderFeatureRecord& r) const {
    to.number("feature", r.feature);
    to.bytes("section", r.section);
  }
  void operator()(const BuildIdRecord& r) const {
    to.signed_number("pid", r.pid);
    to.text("build_id", r.build_id.hex());
    to.text("filename", r.filename);
  }
  void operator()(const OtherRecord& r) const { describe_user_record(to, view, r.body); }
};

}  // namespace

void describe_attr(FieldSink& to, const EventAttr& attr) {
  const std::pair<std::string_view, std::uint64_t> fields[] = {
      {"type", attr.type},
      {"attr_size", attr.size},
      {"config", attr.config},
      {"sample_period", attr.sample_period},
      {"sample_type", attr.sample_type},
      {"read_format", attr.read_format},
      {"flags", attr.flags},
      {"wakeup", attr.wakeup},
      {"bp_type", attr.bp_type},
      {"config1", attr.config1},
      {"config2", attr.config2},
      {"branch_sample_type", attr.branch_sample_type},
      {"sample_regs_user", attr.sample_regs_user},
      {"sample_stack_user", attr.sample_stack_user},
      {"sample_regs_intr", attr.sample_regs_intr},
      {"aux_watermark", attr.aux_watermark},
      {"sample_max_stack", attr.sample_max_stack},
      {"aux_sample_size", attr.aux_sample_size},
      {"aux_action", attr.aux_action},
      {"sig_data", attr.sig_data},
      {"config3", attr.config3},
      {"config4", attr.config4},
  };
  // Attributes that are zero are left out, as in perf's lists of attributes.
  for (const auto& [name, value] : fields) {
    if (value == 0) continue;
    const bool is_mask = name == "sample_type" || name == "read_format" || name == "flags" ||
                         name.starts_with("config") || name.starts_with("sample_regs") ||
                         name == "branch_sample_type";
    if (is_mask)
      to.hex(name, value);
    else
      to.number(name, value);
  }
  if (attr.clockid != 0) to.signed_number("clockid", attr.clockid);
  if (!attr.tail.empty()) to.bytes("attr_tail", attr.tail);
}

void describe_sample(FieldSink& to, const Sample& sample, const EventAttr& attr) {
  for (const SampleFieldRow& row : kSampleFields)
    if ((attr.sample_type & row.bit) != 0) row.describe(to, sample, attr);
}

void describe_record(FieldSink& to, const Record& record, const RecordView& view) {
  std::visit(Describer{to, view}, record);
}

void describe_sample_id(FieldSink& to, const SampleId& id, const EventAttr& attr) {
  if (sample_id_size(attr) == 0) return;
  to.begin_object("sample_id");
  if (attr.samples(abi::kSampleTid)) describe_thread(to, id.pid, id.tid);
  if (attr.samples(abi::kSampleTime)) to.number("time", id.time);
  if (attr.samples(abi::kSampleIdentifier) || attr.samples(abi::kSampleId)) to.number("id", id.id);
  if (attr.samples(abi::kSampleStreamId)) to.number("stream_id", id.stream_id);
  if (attr.samples(abi::kSampleCpu)) to.signed_number("cpu", static_cast<std::int32_t>(id.cpu));
  to.end_object();
}

namespace {

using namespace format;

void number32(FieldSink& to, std::string_view name, Cursor& in) { to.number(name, in.u32()); }
void number64(FieldSink& to, std::string_view name, Cursor& in) { to.number(name, in.u64()); }
void signed32(FieldSink& to, std::string_view name, Cursor& in) {
  to.signed_number(name, static_cast<std::int32_t>(in.u32()));
}

// u64 ids, indexes, CPUs and threads of every event descriptor.
void id_index(FieldSink& to, Cursor in) {
  const std::uint64_t count = in.u64();
  Cursor entries(in.take_items(count, 32), in.order());
  to.begin_list("entries");
  while (entries.left() >= 32) {
    to.begin_object({});
    number64(to, "id", entries);
    number64(to, "index", entries);
    to.signed_number("cpu", static_cast<std::int64_t>(entries.u64()));
    to.signed_number("tid", static_cast<std::int64_t>(entries.u64()));
    to.end_object();
  }
  to.end_list();
  if (in.left() > 0) to.bytes("guests", in.rest());
}

void auxtrace_info(FieldSink& to, Cursor in) {
  number32(to, "auxtrace_type", in);
  in.u32();
  to.begin_list("private");
  while (in.left() >= 8) to.hex({}, in.u64());
  to.end_list();
}

void auxtrace(FieldSink& to, Cursor in) {
  number64(to, "aux_size", in);
  number64(to, "aux_offset", in);
  to.hex("reference", in.u64());
  number32(to, "index", in);
  signed32(to, "tid", in);
  signed32(to, "cpu", in);
}

void auxtrace_error(FieldSink& to, Cursor in) {
  number32(to, "error_type", in);
  number32(to, "code", in);
  signed32(to, "cpu", in);
  signed32(to, "pid", in);
  signed32(to, "tid", in);
  const std::uint32_t form = in.u32();
  to.hex("ip", in.u64());
  if (form != 0) number64(to, "error_time", in);
  to.text("message", in.text(std::min<std::size_t>(64, in.left())));
}

void thread_map(FieldSink& to, Cursor in) {
  const std::uint64_t count = in.u64();
  Cursor entries(in.take_items(count, 24), in.order());
  to.begin_list("threads");
  while (entries.left() >= 24) {
    to.begin_object({});
    to.signed_number("tid", static_cast<std::int64_t>(entries.u64()));
    to.text("comm", entries.text(16));
    to.end_object();
  }
  to.end_list();
}

// The words of a bitmap of CPUs: as many as it says, behind 4 bytes of padding when they are 8 bytes wide.
void cpu_mask(FieldSink& to, Cursor in) {
  const std::uint16_t count = in.u16();
  const std::uint16_t word_size = in.u16();
  to.number("word_size", word_size);
  if (word_size != 4 && word_size != 8) return to.bytes("mask", in.rest());
  if (word_size == 8) in.skip(4);
  Cursor words = in.over(in.take_items(count, word_size));
  to.begin_list("mask");
  while (words.left() >= word_size) to.hex({}, word_size == 8 ? words.u64() : words.u32());
  to.end_list();
}

}  // namespace

void describe_cpu_map(FieldSink& to, Cursor in) {
  constexpr std::uint16_t kList = 0, kMask = 1;
  const std::uint16_t kind = in.u16();
  to.number("map_kind", kind);
  if (kind == kList) {
    Cursor cpus(in.take_items(in.u16(), 2), in.order());
    to.begin_list("cpus");
    while (cpus.left() >= 2) to.signed_number({}, static_cast<std::int16_t>(cpus.u16()));
    to.end_list();
  } else if (kind == kMask) {
    cpu_mask(to, in);
  } else {
    to.flag("any", in.u8() != 0);
    in.u8();
    to.number("first", in.u16());
    to.number("last", in.u16());
  }
}

namespace {

void stat_config(FieldSink& to, Cursor in) {
  Cursor entries(in.take_items(in.u64(), 16), in.order());
  to.begin_list("settings");
  while (entries.left() >= 16) {
    to.begin_object({});
    number64(to, "tag", entries);
    number64(to, "value", entries);
    to.end_object();
  }
  to.end_list();
}

void stat(FieldSink& to, Cursor in) {
  number64(to, "stat_id", in);
  signed32(to, "cpu", in);
  signed32(to, "thread", in);
  number64(to, "value", in);
  number64(to, "time_enabled", in);
  number64(to, "time_running", in);
}

void stat_round(FieldSink& to, Cursor in) {
  number64(to, "round_type", in);
  number64(to, "round_time", in);
}

void time_conversion(FieldSink& to, Cursor in) {
  number64(to, "shift", in);
  number64(to, "multiplier", in);
  number64(to, "zero", in);
  if (in.left() < 18) return;
  number64(to, "cycles", in);
  to.hex("mask", in.u64());
  to.flag("cap_user_time_zero", in.u8() != 0);
  to.flag("cap_user_time_short", in.u8() != 0);
}

void event_type(FieldSink& to, Cursor in) {
  to.hex("config", in.u64());
  to.text("name", in.text(in.left()));
}

void bpf_metadata(FieldSink& to, Cursor in) {
  to.text("program", in.text(512));
  Cursor entries(in.take_items(in.u64(), 64 + 256), in.order());
  to.begin_list("metadata");
  while (entries.left() >= 64 + 256) {
    to.begin_object({});
    to.text("key", entries.text(64));
    to.text("value", entries.text(256));
    to.end_object();
  }
  to.end_list();
}

// The numbers behind these differ between versions of the kernel's schedstat: printed as they are.
void schedstat(FieldSink& to, Cursor in) {
  number64(to, "schedstat_time", in);
  number32(to, "cpu", in);
  to.number("schedstat_version", in.u16());
  to.bytes("counters", in.rest());
}

void tracing_data(FieldSink& to, Cursor in) { number32(to, "payload_size", in); }

void nothing(FieldSink&, Cursor) {}

struct UserRecordRow {
  std::uint32_t type;
  std::size_t least;  // bytes of body that the fields above need at least
  void (*describe)(FieldSink& to, Cursor in);
};

constexpr UserRecordRow kUserRecords[] = {
    {abi::kRecordEventType, 8, event_type},
    {abi::kRecordTracingData, 4, tracing_data},
    {abi::kRecordFinishedRound, 0, nothing},
    {abi::kRecordIdIndex, 8, id_index},
    {abi::kRecordAuxtraceInfo, 8, auxtrace_info},
    {abi::kRecordAuxtrace, 36, auxtrace},
    {abi::kRecordAuxtraceError, 32, auxtrace_error},
    {abi::kRecordThreadMap, 8, thread_map},
    {abi::kRecordCpuMap, 4, describe_cpu_map},
    {abi::kRecordStatConfig, 8, stat_config},
    {abi::kRecordStat, 40, stat},
    {abi::kRecordStatRound, 16, stat_round},
    {abi::kRecordTimeConv, 24, time_conversion},
    {abi::kRecordFinishedInit, 0, nothing},
    {abi::kRecordBpfMetadata, 520, bpf_metadata},
    {abi::kRecordSchedstatCpu, 14, schedstat},
    {abi::kRecordSchedstatDomain, 14, schedstat},
};

}  // namespace

void describe_user_record(FieldSink& to, const RecordView& view, Bytes body) {
  const auto row = std::ranges::find(kUserRecords, view.type, &UserRecordRow::type);
  if (row == std::end(kUserRecords) || body.size() < row->least) return to.bytes("body", body);
  row->describe(to, Cursor(body, view.order));
  if (view.payload_size != 0) to.number("payload_bytes", view.payload_size);
}

}  // namespace tacho::report
