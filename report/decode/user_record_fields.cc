#include "report/decode/user_record_fields.h"

#include <algorithm>
#include <string_view>

#include "format/records/perf_abi.h"

namespace tacho::report {

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
