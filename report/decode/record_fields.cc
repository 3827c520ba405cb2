#include "report/decode/record_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "format/base/digest.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/cpu_map.h"
#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::EventAttr;

struct BitName {
  std::uint64_t bit;
  std::string_view name;
};

// In perf's order, which is not the order of bits.
constexpr BitName kSampleTypes[] = {
    {abi::kSampleIp, "IP"},
    {abi::kSampleTid, "TID"},
    {abi::kSampleTime, "TIME"},
    {abi::kSampleAddr, "ADDR"},
    {abi::kSampleRead, "READ"},
    {abi::kSampleCallchain, "CALLCHAIN"},
    {abi::kSampleId, "ID"},
    {abi::kSampleCpu, "CPU"},
    {abi::kSamplePeriod, "PERIOD"},
    {abi::kSampleStreamId, "STREAM_ID"},
    {abi::kSampleRaw, "RAW"},
    {abi::kSampleBranchStack, "BRANCH_STACK"},
    {abi::kSampleRegsUser, "REGS_USER"},
    {abi::kSampleStackUser, "STACK_USER"},
    {abi::kSampleIdentifier, "IDENTIFIER"},
    {abi::kSampleRegsIntr, "REGS_INTR"},
    {abi::kSampleDataSrc, "DATA_SRC"},
    {abi::kSampleWeight, "WEIGHT"},
    {abi::kSamplePhysAddr, "PHYS_ADDR"},
    {abi::kSampleAux, "AUX"},
    {abi::kSampleCgroup, "CGROUP"},
    {abi::kSampleDataPageSize, "DATA_PAGE_SIZE"},
    {abi::kSampleCodePageSize, "CODE_PAGE_SIZE"},
    {abi::kSampleWeightStruct, "WEIGHT_STRUCT"},
};
constexpr BitName kReadFormats[] = {
    {abi::kReadTimeEnabled, "TOTAL_TIME_ENABLED"},
    {abi::kReadTimeRunning, "TOTAL_TIME_RUNNING"},
    {abi::kReadId, "ID"},
    {abi::kReadGroup, "GROUP"},
    {abi::kReadLost, "LOST"},
};
constexpr BitName kBranchTypes[] = {
    {1 << 0, "USER"},       {1 << 1, "KERNEL"},     {1 << 2, "HV"},         {1 << 3, "ANY"},
    {1 << 4, "ANY_CALL"},   {1 << 5, "ANY_RETURN"}, {1 << 6, "IND_CALL"},   {1 << 7, "ABORT_TX"},
    {1 << 8, "IN_TX"},      {1 << 9, "NO_TX"},      {1 << 10, "COND"},      {1 << 11, "CALL_STACK"},
    {1 << 12, "IND_JUMP"},  {1 << 13, "CALL"},      {1 << 14, "NO_FLAGS"},  {1 << 15, "NO_CYCLES"},
    {1 << 16, "TYPE_SAVE"}, {1 << 17, "HW_INDEX"},  {1 << 18, "PRIV_SAVE"},
};
constexpr BitName kFlags[] = {
    {abi::kDisabled, "disabled"},
    {abi::kInherit, "inherit"},
    {abi::kPinned, "pinned"},
    {abi::kExclusive, "exclusive"},
    {abi::kExcludeUser, "exclude_user"},
    {abi::kExcludeKernel, "exclude_kernel"},
    {abi::kExcludeHv, "exclude_hv"},
    {abi::kExcludeIdle, "exclude_idle"},
    {abi::kMmap, "mmap"},
    {abi::kComm, "comm"},
    {abi::kFreq, "freq"},
    {abi::kInheritStat, "inherit_stat"},
    {abi::kEnableOnExec, "enable_on_exec"},
    {abi::kTask, "task"},
    {abi::kWatermark, "watermark"},
    {3ULL << abi::kPreciseIpShift, "precise_ip"},
    {abi::kMmapData, "mmap_data"},
    {abi::kSampleIdAll, "sample_id_all"},
    {abi::kExcludeHost, "exclude_host"},
    {abi::kExcludeGuest, "exclude_guest"},
    {abi::kExcludeCallchainKernel, "exclude_callchain_kernel"},
    {abi::kExcludeCallchainUser, "exclude_callchain_user"},
    {abi::kMmap2, "mmap2"},
    {abi::kCommExec, "comm_exec"},
    {abi::kUseClockid, "use_clockid"},
    {abi::kContextSwitch, "context_switch"},
    {abi::kWriteBackward, "write_backward"},
    {abi::kNamespaces, "namespaces"},
    {abi::kKsymbol, "ksymbol"},
    {abi::kBpfEvent, "bpf_event"},
    {abi::kAuxOutput, "aux_output"},
    {abi::kCgroup, "cgroup"},
    {abi::kTextPoke, "text_poke"},
    {abi::kBuildId, "build_id"},
    {abi::kInheritThread, "inherit_thread"},
    {abi::kRemoveOnExec, "remove_on_exec"},
    {abi::kSigtrap, "sigtrap"},
};

std::string bit_names(std::uint64_t bits, std::span<const BitName> names) {
  std::string text;
  for (const BitName& row : names) {
    if ((bits & row.bit) == 0) continue;
    if (!text.empty()) text += '|';
    text += row.name;
  }
  return text;
}

std::string decimal(std::uint64_t value) { return std::to_string(value); }
std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

struct FieldRow {
  std::string_view name;
  std::uint64_t (*value)(const EventAttr&);
  std::string (*show)(std::uint64_t);
};

template <auto Member>
std::uint64_t value_of(const EventAttr& attr) {
  return static_cast<std::uint64_t>(attr.*Member);
}

constexpr FieldRow kBeforeFlags[] = {
    {"type", value_of<&EventAttr::type>, decimal},
    {"size", value_of<&EventAttr::size>, decimal},
    {"config", value_of<&EventAttr::config>, hex},
    {"{ sample_period, sample_freq }", value_of<&EventAttr::sample_period>, decimal},
    {"sample_type", value_of<&EventAttr::sample_type>,
     [](std::uint64_t bits) { return bit_names(bits, kSampleTypes); }},
    {"read_format", value_of<&EventAttr::read_format>,
     [](std::uint64_t bits) { return bit_names(bits, kReadFormats); }},
};
constexpr FieldRow kAfterFlags[] = {
    {"{ wakeup_events, wakeup_watermark }", value_of<&EventAttr::wakeup>, decimal},
    {"bp_type", value_of<&EventAttr::bp_type>, decimal},
    {"{ bp_addr, config1 }", value_of<&EventAttr::config1>, hex},
    {"{ bp_len, config2 }", value_of<&EventAttr::config2>, hex},
    {"branch_sample_type", value_of<&EventAttr::branch_sample_type>,
     [](std::uint64_t bits) { return bit_names(bits, kBranchTypes); }},
    {"sample_regs_user", value_of<&EventAttr::sample_regs_user>, hex},
    {"sample_stack_user", value_of<&EventAttr::sample_stack_user>, decimal},
    {"clockid", value_of<&EventAttr::clockid>,
     [](std::uint64_t value) { return std::to_string(static_cast<std::int64_t>(value)); }},
    {"sample_regs_intr", value_of<&EventAttr::sample_regs_intr>, hex},
    {"aux_watermark", value_of<&EventAttr::aux_watermark>, decimal},
    {"sample_max_stack", value_of<&EventAttr::sample_max_stack>, decimal},
    {"aux_sample_size", value_of<&EventAttr::aux_sample_size>, decimal},
    {"sig_data", value_of<&EventAttr::sig_data>, decimal},
};

}  // namespace

std::string attr_text(const EventAttr& attr, AttrList form) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (form == AttrList::Header || !text.empty()) text += ", ";
    text += name;
    text += form == AttrList::Header ? " = " : ": ";
    text += value;
  };
  const auto add_rows = [&](std::span<const FieldRow> rows) {
    for (const FieldRow& row : rows) {
      if (const auto value = row.value(attr); value != 0) add(row.name, row.show(value));
    }
  };
  add_rows(kBeforeFlags);
  for (const BitName& flag : kFlags) {
    // One bit, or the two bits of precise_ip, whose value is shifted to the lowest bit.
    if (const auto bits = attr.flags & flag.bit; bits != 0)
      add(flag.name, decimal(bits / (flag.bit & (~flag.bit + 1))));
  }
  add_rows(kAfterFlags);
  return text;
}

namespace {

using namespace format;

// A list with an object for each item.
template <class List, class Each>
void objects(FieldSink& to, std::string_view name, const List& list, Each&& each) {
  to.begin_list(name);
  for (const auto& item : list) {
    to.begin_object({});
    each(item);
    to.end_object();
  }
  to.end_list();
}

// The same for the next `count` entries of `size` bytes; each(entry) reads one.
template <class Each>
void entries(FieldSink& to, std::string_view name, Cursor& in, std::uint64_t count, std::size_t size,
             Each&& each) {
  Cursor rest(in.take_items(count, size), in.order());
  to.begin_list(name);
  while (rest.left() >= size) {
    to.begin_object({});
    each(rest);
    to.end_object();
  }
  to.end_list();
}

void describe_ids(FieldSink& to, const std::vector<std::uint64_t>& ids) {
  to.begin_list("ids");
  for (const std::uint64_t id : ids) to.number({}, id);
  to.end_list();
}

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

void describe_branches(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr& attr) {
  if (attr.branch_sample_type & abi::kBranchHwIndex) to.number("branch_hw_index", sample.branch_hw_index);
  to.begin_list(name);
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

void describe_thread(FieldSink& to, std::uint32_t pid, std::uint32_t tid) {
  to.signed_number("pid", static_cast<std::int32_t>(pid));
  to.signed_number("tid", static_cast<std::int32_t>(tid));
}

// The fields of a sample in the order of the record. A sample has a field if sample_type of its event has the
// field's bit.
struct SampleFieldRow {
  std::string_view name;
  std::uint64_t bit;
  void (*describe)(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr& attr);
};

template <auto Member>
void as_number(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr&) {
  to.number(name, sample.*Member);
}
template <auto Member>
void as_hex(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr&) {
  to.hex(name, sample.*Member);
}
template <auto Member>
void as_bytes(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr&) {
  to.bytes(name, sample.*Member);
}
template <auto Member>
void as_registers(FieldSink& to, std::string_view name, const Sample& sample, const EventAttr&) {
  describe_registers(to, name, sample.*Member);
}

constexpr SampleFieldRow kSampleFields[] = {
    {"id", abi::kSampleIdentifier | abi::kSampleId, as_number<&Sample::identifier>},
    {"ip", abi::kSampleIp, as_hex<&Sample::ip>},
    {"", abi::kSampleTid,
     [](FieldSink& to, std::string_view, const Sample& s, const EventAttr&) {
       describe_thread(to, s.pid, s.tid);
     }},
    {"time", abi::kSampleTime, as_number<&Sample::time>},
    {"addr", abi::kSampleAddr, as_hex<&Sample::addr>},
    {"stream_id", abi::kSampleStreamId, as_number<&Sample::stream_id>},
    {"cpu", abi::kSampleCpu,
     [](FieldSink& to, std::string_view name, const Sample& s, const EventAttr&) {
       to.signed_number(name, static_cast<std::int32_t>(s.cpu));
     }},
    {"period", abi::kSamplePeriod, as_number<&Sample::period>},
    {"read", abi::kSampleRead,
     [](FieldSink& to, std::string_view, const Sample& s, const EventAttr&) { describe_read(to, s.read); }},
    {"callchain", abi::kSampleCallchain,
     [](FieldSink& to, std::string_view name, const Sample& s, const EventAttr&) {
       describe_words(to, name, s.callchain);
     }},
    {"raw", abi::kSampleRaw, as_bytes<&Sample::raw>},
    {"branches", abi::kSampleBranchStack, describe_branches},
    {"user_registers", abi::kSampleRegsUser, as_registers<&Sample::user_registers>},
    {"user_stack", abi::kSampleStackUser, as_bytes<&Sample::user_stack>},
    {"weight", abi::kSampleWeight | abi::kSampleWeightStruct,
     [](FieldSink& to, std::string_view name, const Sample& s, const EventAttr& attr) {
       to.number(name, s.weight);
       if (!attr.samples(abi::kSampleWeightStruct)) return;
       to.number("weight2", s.weight2);
       to.number("weight3", s.weight3);
     }},
    {"data_source", abi::kSampleDataSrc, as_hex<&Sample::data_source>},
    {"transaction", abi::kSampleTransaction, as_hex<&Sample::transaction>},
    {"interrupt_registers", abi::kSampleRegsIntr, as_registers<&Sample::interrupt_registers>},
    {"phys_addr", abi::kSamplePhysAddr, as_hex<&Sample::phys_addr>},
    {"cgroup", abi::kSampleCgroup, as_number<&Sample::cgroup>},
    {"data_page_size", abi::kSampleDataPageSize, as_number<&Sample::data_page_size>},
    {"code_page_size", abi::kSampleCodePageSize, as_number<&Sample::code_page_size>},
    {"aux", abi::kSampleAux, as_bytes<&Sample::aux>},
};

// JSON has no infinity and no NaN: such a scale is shown by its bits.
void describe_scale(FieldSink& to, double scale) {
  if (std::isfinite(scale))
    to.real("value", scale);
  else
    to.hex("value", std::bit_cast<std::uint64_t>(scale));
}

// Records that perf writes itself (types from 64 up) and that tacho does not use: their fields, from a table
// with a row for each type. A type without a row, or a `body` that is too short, is given as bytes.
void describe_user_record(FieldSink& to, const RecordView& view, Bytes body);
void describe_cpu_map(FieldSink& to, Cursor in);

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
    describe_ids(to, r.ids);
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
  // As perf, attributes that are zero are left out.
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
    if ((attr.sample_type & row.bit) != 0) row.describe(to, row.name, sample, attr);
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

void number32(FieldSink& to, std::string_view name, Cursor& in) { to.number(name, in.u32()); }
void number64(FieldSink& to, std::string_view name, Cursor& in) { to.number(name, in.u64()); }
void signed32(FieldSink& to, std::string_view name, Cursor& in) {
  to.signed_number(name, static_cast<std::int32_t>(in.u32()));
}

// u64 ids, indexes, CPUs and threads of every event descriptor.
void id_index(FieldSink& to, Cursor in) {
  entries(to, "entries", in, in.u64(), 32, [&](Cursor& entry) {
    number64(to, "id", entry);
    number64(to, "index", entry);
    to.signed_number("cpu", static_cast<std::int64_t>(entry.u64()));
    to.signed_number("tid", static_cast<std::int64_t>(entry.u64()));
  });
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
  entries(to, "threads", in, in.u64(), 24, [&](Cursor& entry) {
    to.signed_number("tid", static_cast<std::int64_t>(entry.u64()));
    to.text("comm", entry.text(16));
  });
}

void describe_cpu_map(FieldSink& to, Cursor in) {
  const format::CpuMap map = parse_cpu_map(in);
  to.number("map_kind", map.kind);
  if (const auto* const list = std::get_if<format::CpuList>(&map.cpus)) {
    to.begin_list("cpus");
    for (const std::int16_t cpu : list->cpus) to.signed_number({}, cpu);
    to.end_list();
  } else if (const auto* const mask = std::get_if<format::CpuMask>(&map.cpus)) {
    to.number("word_size", mask->word_size);
    if (mask->word_size != 4 && mask->word_size != 8) return to.bytes("mask", mask->unknown);
    to.begin_list("mask");
    for (const std::uint64_t word : mask->words) to.hex({}, word);
    to.end_list();
  } else {
    const format::CpuRange& range = std::get<format::CpuRange>(map.cpus);
    to.flag("any", range.has_any);
    to.number("first", range.first);
    to.number("last", range.last);
  }
}

void stat_config(FieldSink& to, Cursor in) {
  entries(to, "settings", in, in.u64(), 16, [&](Cursor& entry) {
    number64(to, "tag", entry);
    number64(to, "value", entry);
  });
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
  entries(to, "metadata", in, in.u64(), 64 + 256, [&](Cursor& entry) {
    to.text("key", entry.text(64));
    to.text("value", entry.text(256));
  });
}

// The numbers that follow depend on the kernel's version of schedstat: they are printed as they are.
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
  std::size_t least;  // bytes of the body that the fields above need
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

void describe_user_record(FieldSink& to, const RecordView& view, Bytes body) {
  const auto row = std::ranges::find(kUserRecords, view.type, &UserRecordRow::type);
  if (row == std::end(kUserRecords) || body.size() < row->least) return to.bytes("body", body);
  row->describe(to, Cursor(body, view.order));
  if (view.payload_size != 0) to.number("payload_bytes", view.payload_size);
}

void content(FieldSink& to, Bytes bytes) {
  to.number("bytes", bytes.size());
  to.hex("hash", format::digest(bytes));
}

void content(FieldSink& to, std::string_view text) { content(to, std::as_bytes(std::span(text))); }

void strings(FieldSink& to, std::string_view name, const std::vector<std::string>& list) {
  to.begin_list(name);
  for (const std::string& text : list) to.text({}, text);
  to.end_list();
}

void pairs(FieldSink& to, std::string_view name, const StringPairs& list) {
  objects(to, name, list, [&](const auto& pair) {
    to.text("name", pair.first);
    to.text("value", pair.second);
  });
}

template <std::optional<std::string> Environment::*Member>
void one_text(FieldSink& to, const Features& from) {
  to.text("value", (from.environment.*Member).value_or(""));
}
template <auto Member>
void one_number(FieldSink& to, const Features& from) {
  to.number("value", (from.environment.*Member).value_or(0));
}

void tracing(FieldSink& to, const Features& from) {
  to.flag("big_endian", from.tracing.is_big_endian);
  to.number("page_size", from.tracing.page_size);
  objects(to, "formats", from.tracing.formats, [&](const TracepointFormat& format) {
    to.text("system", format.system);
    content(to, format.text);
  });
}

void build_ids(FieldSink& to, const Features& from) {
  objects(to, "build_ids", from.environment.build_ids, [&](const BuildIdEntry& entry) {
    to.signed_number("pid", entry.pid);
    to.number("cpumode", entry.misc & abi::kCpumodeMask);
    to.text("build_id", entry.build_id.hex());
    to.text("filename", entry.filename);
  });
}

void cpus(FieldSink& to, const Features& from) {
  to.number("available", from.environment.cpus_available.value_or(0));
  to.number("online", from.environment.cpus_online.value_or(0));
}

void command_line(FieldSink& to, const Features& from) {
  strings(to, "arguments", from.environment.command_line);
}

void event_descriptions(FieldSink& to, const Features& from) {
  objects(to, "events", from.event_descriptions, [&](const Event& event) {
    to.text("name", event.name);
    describe_attr(to, event.attr);
    describe_ids(to, event.ids);
  });
}

void cpu_topology(FieldSink& to, const Features& from) {
  const CpuTopology& topology = *from.environment.cpu_topology;
  strings(to, "packages", topology.packages);
  strings(to, "cores", topology.cores);
  strings(to, "dies", topology.dies);
  objects(to, "cpus", topology.cpus, [&](const CpuTopologyEntry& cpu) {
    to.number("core", cpu.core);
    to.number("socket", cpu.socket);
    if (cpu.die) to.number("die", *cpu.die);
  });
}

void numa(FieldSink& to, const Features& from) {
  objects(to, "nodes", from.environment.numa_nodes, [&](const NumaNode& node) {
    to.number("node", node.node);
    to.number("total_kib", node.total_kib);
    to.number("free_kib", node.free_kib);
    to.text("cpus", node.cpus);
  });
}

void no_fields(FieldSink&, const Features&) {}

void pmus(FieldSink& to, const Features& from) {
  objects(to, "pmus", from.environment.pmu_mappings, [&](const auto& pmu) {
    to.number("type", pmu.first);
    to.text("name", pmu.second);
  });
}

void groups(FieldSink& to, const Features& from) {
  objects(to, "groups", from.environment.groups, [&](const EventGroup& group) {
    to.text("name", group.name);
    to.number("leader", group.leader);
    to.number("members", group.members);
  });
}

void caches(FieldSink& to, const Features& from) {
  objects(to, "caches", from.environment.caches, [&](const CacheLevel& cache) {
    to.number("level", cache.level);
    to.number("line_size", cache.line_size);
    to.number("sets", cache.sets);
    to.number("ways", cache.ways);
    to.text("type", cache.type);
    to.text("size", cache.size);
    to.text("cpus", cache.cpus);
  });
}

void sample_time(FieldSink& to, const Features& from) {
  to.number("first", from.environment.sample_time->first);
  to.number("last", from.environment.sample_time->second);
}

void memory(FieldSink& to, const Features& from) {
  to.number("block_size", from.environment.memory_block_size.value_or(0));
  objects(to, "nodes", from.environment.memory_nodes, [&](const MemoryNode& node) {
    to.number("node", node.node);
    to.number("bits", node.bits);
    to.begin_list("bitmap");
    for (const std::uint64_t word : node.bitmap) to.hex({}, word);
    to.end_list();
  });
}

void bpf_programs(FieldSink& to, const Features& from) {
  objects(to, "programs", from.environment.bpf_programs, [&](const BpfProgramInfo& program) {
    to.hex("arrays", program.arrays);
    content(to, program.info);
    to.number("data_bytes", program.data.size());
    to.hex("data_hash", format::digest(program.data));
  });
}

void btf(FieldSink& to, const Features& from) {
  objects(to, "btf", from.environment.btf, [&](const BtfBlob& blob) {
    to.number("id", blob.id);
    content(to, blob.bytes);
  });
}

void compressed(FieldSink& to, const Features& from) {
  const CompressionInfo& info = *from.environment.compression;
  to.number("type", info.type);
  to.number("level", info.level);
  to.number("ratio", info.ratio);
  to.number("record_limit", info.record_limit);
}

void cpu_pmu_caps(FieldSink& to, const Features& from) {
  pairs(to, "capabilities", from.environment.cpu_pmu_caps);
}

void clock_data(FieldSink& to, const Features& from) {
  to.number("clockid", from.environment.clock_data->clockid);
  to.number("wall_ns", from.environment.clock_data->wall_ns);
  to.number("clock_ns", from.environment.clock_data->clock_ns);
}

void hybrid(FieldSink& to, const Features& from) { pairs(to, "pmus", from.environment.hybrid_pmus); }

void pmu_caps(FieldSink& to, const Features& from) {
  objects(to, "pmus", from.environment.pmu_caps, [&](const PmuCaps& pmu) {
    to.text("name", pmu.pmu);
    pairs(to, "capabilities", pmu.caps);
  });
}

void machine(FieldSink& to, const Features& from) {
  to.number("machine", from.environment.elf_machine->first);
  to.number("flags", from.environment.elf_machine->second);
}

void schemas(FieldSink& to, const Features& from) {
  objects(to, "payloads", from.schemas, [&](const PayloadSchema& schema) {
    to.text("event", schema.event);
    to.text("struct", schema.type_name);
    to.number("size", schema.size);
    objects(to, "fields", schema.fields, [&](const PayloadField& field) {
      to.text("name", field.name);
      to.number("kind", static_cast<std::uint64_t>(field.kind));
      to.number("bit_offset", field.bit_offset);
      to.number("bit_size", field.bit_size);
      to.number("count", field.count);
      to.text("unit", field.unit);
      to.text("role", field.role);
      to.text("format", field.format);
    });
  });
}

void attachments(FieldSink& to, const Features& from) {
  objects(to, "attachments", from.attachments, [&](const Attachment& attachment) {
    to.text("name", attachment.name);
    to.text("origin", attachment.origin);
    to.number("raw_size", attachment.raw_size);
    content(to, attachment.packed);
  });
}

// The modules with names; the names themselves are in every other view.
void symbol_pack(FieldSink& to, const Features& from) {
  const auto pack = format::parse_symbol_pack(from.symbol_pack);
  if (!pack) return;
  to.number("level", static_cast<std::uint64_t>(pack->level));
  objects(to, "modules", pack->modules, [&](const format::PackedModule& module) {
    to.number("kind", module.kind);
    to.text("path", pack->texts[module.path]);
    if (!module.build_id.empty()) to.text("build_id", module.build_id.hex());
    to.number("addresses", module.addresses.size());
    to.number("symbols", module.symbols.size());
    if (!module.code.empty()) to.number("code_bytes", module.code_bytes.size());
  });
}

void cpu_changes(FieldSink& to, const Features& from) { pairs(to, "changes", from.environment.cpu_changes); }
void user_stacks(FieldSink& to, const Features& from) { pairs(to, "facts", from.environment.user_stacks); }

void losses(FieldSink& to, const Features& from) {
  const format::RecordingLosses& losses = from.environment.losses;
  if (losses.interval) {
    to.number("first_ns", losses.interval->first);
    to.number("last_ns", losses.interval->second);
  }
  if (losses.counted_before != 0) to.number("counted_before", losses.counted_before);
  objects(to, "losses", losses.events, [&](const format::EventLoss& loss) {
    to.text("event", loss.event);
    if (!loss.cgroup.empty()) to.text("cgroup", loss.cgroup);
    if (loss.cpu >= 0) to.number("cpu", static_cast<std::uint64_t>(loss.cpu));
    to.number("lost", loss.lost);
  });
}

void programs(FieldSink& to, const Features& from) {
  objects(to, "programs", from.environment.attached_programs, [&](const AttachedProgram& program) {
    to.number("id", program.id);
    to.text("name", program.name);
    to.text("section", program.section);
    to.text("object", program.object);
    to.text("state", program.state);
  });
}

void bpf_maps(FieldSink& to, const Features& from) {
  objects(to, "maps", from.environment.bpf_maps, [&](const format::BpfMap& map) {
    to.number("id", map.id);
    to.number("type", map.type);
    to.text("name", map.name);
    to.number("key_bytes", map.key_bytes);
    to.number("value_bytes", map.value_bytes);
    to.number("most_entries", map.most_entries);
  });
}

void bpf_places(FieldSink& to, const Features& from) { pairs(to, "places", from.environment.bpf_places); }

void content_classes(FieldSink& to, const Features& from) {
  objects(to, "classes", from.environment.content, [&](const format::ContentClass& one) {
    to.text("name", one.name);
    to.text("state", one.state);
  });
}

struct FeatureFieldsRow {
  std::uint32_t feature;
  void (*describe)(FieldSink& to, const Features& from);
};

using Env = Environment;
constexpr FeatureFieldsRow kFeatureFields[] = {
    {abi::kFeatureTracingData, tracing},
    {abi::kFeatureBuildId, build_ids},
    {abi::kFeatureHostname, one_text<&Env::hostname>},
    {abi::kFeatureOsRelease, one_text<&Env::os_release>},
    {abi::kFeatureVersion, one_text<&Env::version>},
    {abi::kFeatureArch, one_text<&Env::arch>},
    {abi::kFeatureNrCpus, cpus},
    {abi::kFeatureCpuDesc, one_text<&Env::cpu_description>},
    {abi::kFeatureCpuId, one_text<&Env::cpu_id>},
    {abi::kFeatureTotalMem, one_number<&Env::total_memory_kib>},
    {abi::kFeatureCmdline, command_line},
    {abi::kFeatureEventDesc, event_descriptions},
    {abi::kFeatureCpuTopology, cpu_topology},
    {abi::kFeatureNumaTopology, numa},
    {abi::kFeatureBranchStack, no_fields},
    {abi::kFeaturePmuMappings, pmus},
    {abi::kFeatureGroupDesc, groups},
    {abi::kFeatureStat, no_fields},
    {abi::kFeatureCache, caches},
    {abi::kFeatureSampleTime, sample_time},
    {abi::kFeatureMemTopology, memory},
    {abi::kFeatureClockid, one_number<&Env::clock_resolution_ns>},
    {abi::kFeatureDirFormat, one_number<&Env::directory_format>},
    {abi::kFeatureBpfProgInfo, bpf_programs},
    {abi::kFeatureBpfBtf, btf},
    {abi::kFeatureCompressed, compressed},
    {abi::kFeatureCpuPmuCaps, cpu_pmu_caps},
    {abi::kFeatureClockData, clock_data},
    {abi::kFeatureHybridTopology, hybrid},
    {abi::kFeaturePmuCaps, pmu_caps},
    {abi::kFeatureEMachine, machine},
    {abi::kFeatureClnSize, one_number<&Env::cache_line_size>},
    {abi::kFeaturePayloadSchemas, schemas},
    {abi::kFeatureAttachments, attachments},
    {abi::kFeatureAttachedPrograms, programs},
    {abi::kFeatureSymbolPack, symbol_pack},
    {abi::kFeatureContent, content_classes},
    {abi::kFeatureUserStacks, user_stacks},
    {abi::kFeatureLosses, losses},
    {abi::kFeatureCpuChanges, cpu_changes},
    {abi::kFeatureBpfMaps, bpf_maps},
    {abi::kFeatureBpfPlaces, bpf_places},
};

}  // namespace

void describe_layout(FieldSink& to, const CaptureLayout& layout) {
  to.flag("pipe", layout.is_pipe);
  to.flag("closed", layout.is_closed);
  to.text("byte_order", layout.order == std::endian::little ? "little" : "big");
  to.number("data_offset", layout.data_offset);
  to.number("data_size", layout.data_size);
}

void describe_event(FieldSink& to, std::size_t index, const EventSet& events) {
  const Event& event = events[index];
  to.number("index", index);
  to.text("name", event.name);
  describe_attr(to, event.attr);
  describe_ids(to, event.ids);
}

void describe_feature(FieldSink& to, std::uint32_t feature, const Features& features) {
  if (!features.present[feature]) return;
  const auto raw = std::ranges::find(features.raw, feature, &RawSection::feature);
  if (raw != features.raw.end()) return to.bytes("section", raw->bytes);
  const auto row = std::ranges::find(kFeatureFields, feature, &FeatureFieldsRow::feature);
  if (row != std::end(kFeatureFields)) row->describe(to, features);
}

}  // namespace tacho::report
