#include "format/records/byte_swap.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "format/records/cpu_map.h"
#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::format {

namespace {

void swap_number(std::byte* at, std::size_t width) { std::reverse(at, at + width); }

void swap_bits(std::byte* at, std::size_t width) {
  std::transform(at, at + width, at, [](std::byte byte) { return std::byte{mirrored(byte)}; });
}

// Words of bit fields: byte swapping reverses the order of the fields.
void swap_branch_flags(std::byte* at, std::endian from) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  word = from == std::endian::native ? Cursor::swapped(branch_flags_to_foreign(word))
                                     : branch_flags_from_foreign(Cursor::swapped(word));
  std::memcpy(at, &word, sizeof word);
}

// perf records without a parser in tacho: their fields are read only for the log.

constexpr std::size_t kWord = sizeof(std::uint64_t);

void walk_nothing(Cursor&) {}
void walk_words(Cursor& in) { in.words(in.left() / kWord); }
void walk_u32(Cursor& in) { in.u32(); }
void walk_u64(Cursor& in) { in.u64(); }

void walk_auxtrace_info(Cursor& in) {
  in.fields(2, sizeof(std::uint32_t));
  walk_words(in);
}

void walk_auxtrace(Cursor& in) {
  in.words(3);
  in.fields(4, sizeof(std::uint32_t));
}

// u32 type, code, cpu, pid, tid, format; u64 ip; with a format also u64 time; char[64]; from format 2 on u32
// machine pid, vcpu.
void walk_auxtrace_error(Cursor& in) {
  in.fields(5, sizeof(std::uint32_t));
  const std::uint32_t format = in.u32();
  in.words(format == 0 ? 1 : 2);
  in.skip(std::min<std::size_t>(in.left(), 64));
  in.fields(std::min<std::size_t>(in.left() / sizeof(std::uint32_t), 2), sizeof(std::uint32_t));
}

void walk_thread_map(Cursor& in) {
  constexpr std::size_t kName = 16;
  const std::uint64_t count = in.u64();
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    in.u64();
    in.skip(kName);
  }
}

void walk_stat(Cursor& in) {
  in.u64();
  in.fields(2, sizeof(std::uint32_t));
  in.words(3);
}

void walk_time_conversion(Cursor& in) {
  in.words(3);
  if (in.left() >= 2 * kWord) in.words(2);
}

void walk_bpf_metadata(Cursor& in) {
  constexpr std::size_t kName = 512;
  in.skip(kName);
  in.u64();
}

// u64 kind, u64 id, then by kind: a unit, a scale (a double), a name, or CPUs. Sections in pieces
// (feature_sections.h) are read before they could come here.
void walk_event_update(Cursor& in) {
  const std::uint64_t kind = in.u64();
  in.u64();
  if (kind == 1) in.u64();
  if (kind == 3) parse_cpu_map(in);
}

struct WalkRow {
  std::uint32_t type;
  void (*walk)(Cursor& in);
};

constexpr WalkRow kWalks[] = {
    {abi::kRecordEventType, walk_u64},
    {abi::kRecordTracingData, walk_u32},
    {abi::kRecordFinishedRound, walk_nothing},
    {abi::kRecordIdIndex, walk_words},
    {abi::kRecordAuxtraceInfo, walk_auxtrace_info},
    {abi::kRecordAuxtrace, walk_auxtrace},
    {abi::kRecordAuxtraceError, walk_auxtrace_error},
    {abi::kRecordThreadMap, walk_thread_map},
    {abi::kRecordCpuMap, [](Cursor& in) { parse_cpu_map(in); }},
    {abi::kRecordStatConfig, walk_words},
    {abi::kRecordStat, walk_stat},
    {abi::kRecordStatRound, walk_words},
    {abi::kRecordEventUpdate, walk_event_update},
    {abi::kRecordTimeConv, walk_time_conversion},
    {abi::kRecordFinishedInit, walk_nothing},
    {abi::kRecordBpfMetadata, walk_bpf_metadata},
};

// Types whose fields parse_record() reads.
constexpr std::uint32_t kParsedUserTypes[] = {abi::kRecordHeaderAttr, abi::kRecordBuildId};

// Logs the fields after the record's header. False: unknown type, or too short.
bool log_fields(const RecordView& record, const EventAttr& attr, FieldLog& log) {
  if (record.type == abi::kRecordSample) return parse_sample(record, attr, &log).has_value();
  const bool is_kernel = record.type < abi::kRecordUserStart;
  if (is_kernel || std::ranges::find(kParsedUserTypes, record.type) != std::end(kParsedUserTypes)) {
    if (record_name(record.type).empty() || !parse_record(record, attr, &log)) return false;
    if (is_kernel) parse_sample_id(record, attr, &log);
    return true;
  }
  const auto row = std::ranges::find(kWalks, record.type, &WalkRow::type);
  if (row == std::end(kWalks)) return false;
  Cursor in = record.body(&log);
  row->walk(in);
  return !in.failed();
}

}  // namespace

void swap_fields(std::span<std::byte> copy, Bytes original, const FieldLog& log, std::endian from) {
  for (const FieldLog::Fields& fields : log.fields()) {
    std::byte* at = copy.data() + (fields.at - original.data());
    for (std::size_t i = 0; i < fields.count; ++i, at += fields.width) {
      if (fields.shape == FieldShape::BitBytes)
        swap_bits(at, fields.width);
      else if (fields.shape == FieldShape::Branches && i % 3 == 2)
        swap_branch_flags(at, from);
      else
        swap_number(at, fields.width);
    }
  }
}

bool swap_record(const RecordView& record, const EventAttr& attr, ByteWriter& out) {
  FieldLog log;
  Cursor header(record.bytes, record.order, &log);
  header.u32();
  header.u16();
  header.u16();
  if (!log_fields(record, attr, log)) return false;
  std::vector<std::byte> swapped(record.bytes.begin(), record.bytes.end());
  swap_fields(swapped, record.bytes, log, record.order);
  out.bytes(swapped);
  return true;
}

}  // namespace tacho::format
