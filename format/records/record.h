// Parsers and writers of all records but SAMPLE, one small struct for each type. Texts and arrays point into
// the record's bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/result.h"
#include "format/records/build_id.h"
#include "format/records/event_attr.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"

namespace tacho::format {

struct MmapRecord {  // MMAP and MMAP2; pid -1 is the kernel
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t start = 0, length = 0, page_offset = 0;  // bytes
  std::string_view filename;
  bool is_mmap2 = false;
  bool is_data = false;  // not executable (misc kMiscMmapData)
  // MMAP2 with misc kMiscMmapBuildId, if its event requested build ids; then major to generation are 0.
  BuildId build_id;
  std::uint32_t major = 0, minor = 0;
  std::uint64_t inode = 0, inode_generation = 0;
  std::uint32_t protection = 0, flags = 0;  // PROT_*, MAP_*
};
struct CommRecord {
  std::uint32_t pid = 0, tid = 0;
  std::string_view name;
  bool is_exec = false;
};
struct TaskRecord {  // FORK and EXIT
  std::uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  std::uint64_t time = 0;  // ns
  bool is_exit = false;
};
struct LostRecord {
  std::uint64_t id = 0, lost = 0;
};
struct LostSamplesRecord {
  std::uint64_t lost = 0;
};
struct ThrottleRecord {
  std::uint64_t time = 0, id = 0, stream_id = 0;
  bool is_unthrottle = false;
};
struct ReadRecord {
  std::uint32_t pid = 0, tid = 0;
  ReadValues values;
};
struct AuxRecord {
  std::uint64_t offset = 0, size = 0, flags = 0;
};
struct ItraceStartRecord {
  std::uint32_t pid = 0, tid = 0;
};
struct SwitchRecord {  // SWITCH and SWITCH_CPU_WIDE
  bool is_out = false, is_preempt = false, is_cpu_wide = false;
  std::uint32_t next_prev_pid = 0, next_prev_tid = 0;
};
struct NamespacesRecord {
  std::uint32_t pid = 0, tid = 0;
  U64Array links;  // device, inode for each of net, uts, ipc, pid, user, mnt, cgroup
};
struct KsymbolRecord {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint16_t type = 0;   // 1 BPF, 2 out of line
  std::uint16_t flags = 0;  // 1: unregister
  std::string_view name;
};
struct BpfEventRecord {
  std::uint16_t type = 0;  // 1 load, 2 unload
  std::uint16_t flags = 0;
  std::uint32_t id = 0;
  std::array<std::uint8_t, 8> tag{};
};
struct CgroupRecord {
  std::uint64_t id = 0;
  std::string_view path;
};
struct TextPokeRecord {
  std::uint64_t address = 0;
  Bytes old_bytes, new_bytes;
};
struct AuxOutputHwIdRecord {
  std::uint64_t hw_id = 0;
};
struct CallchainDeferredRecord {
  std::uint64_t cookie = 0;
  U64Array addresses;
};
// Records of types from 64 up.
struct HeaderAttrRecord {
  EventAttr attr;
  std::vector<std::uint64_t> ids;
};
struct EventUpdateRecord {
  std::uint64_t kind = 0;  // 0 unit, 1 scale, 2 name, 3 cpus
  std::uint64_t id = 0;
  Bytes data;
};
struct HeaderFeatureRecord {
  std::uint64_t feature = 0;
  Bytes section;
};
struct BuildIdRecord {
  std::int32_t pid = -1;
  BuildId build_id;
  std::string_view filename;
  std::uint16_t misc = 0;
};
// Any other type, known or not: the body as bytes.
struct OtherRecord {
  Bytes body;
};

using Record = std::variant<OtherRecord, MmapRecord, CommRecord, TaskRecord, LostRecord, LostSamplesRecord,
                            ThrottleRecord, ReadRecord, AuxRecord, ItraceStartRecord, SwitchRecord,
                            NamespacesRecord, KsymbolRecord, BpfEventRecord, CgroupRecord, TextPokeRecord,
                            AuxOutputHwIdRecord, CallchainDeferredRecord, HeaderAttrRecord, EventUpdateRecord,
                            HeaderFeatureRecord, BuildIdRecord>;

// `attr`: of the record's event; it determines the trailer and the fields of READ. Fields are logged in
// `log`, if given.
Result<Record> parse_record(const RecordView& record, const EventAttr& attr, FieldLog* log = nullptr);
// Bytes of the record that are neither a field nor padding: 0 in a sound record, for types that are not fully
// parsed, and for a record that is too short.
std::size_t unread_bytes(const RecordView& record, const EventAttr& attr);
// "MMAP2", "FINISHED_ROUND"; empty: unknown type.
std::string_view record_name(std::uint32_t type);

// Writers of synthesized records: header, body, then `trailer` zero bytes for sample_id_all.
void write_mmap2(ByteWriter& out, const MmapRecord& record, std::uint16_t cpumode, std::size_t trailer);
void write_mmap(ByteWriter& out, const MmapRecord& record, std::uint16_t cpumode, std::size_t trailer);
void write_comm(ByteWriter& out, const CommRecord& record, std::size_t trailer);
void write_fork(ByteWriter& out, const TaskRecord& record, std::size_t trailer);
void write_ksymbol(ByteWriter& out, const KsymbolRecord& record, std::size_t trailer);
void write_bpf_event(ByteWriter& out, const BpfEventRecord& record, std::size_t trailer);
// `links`: device and inode of each namespace, in the kernel's order (NamespacesRecord).
void write_namespaces(ByteWriter& out, std::uint32_t pid, std::uint32_t tid,
                      std::span<const std::uint64_t> links, std::size_t trailer);
void write_cgroup(ByteWriter& out, const CgroupRecord& record, std::size_t trailer);
// The losses of one event, whose id is in the trailer.
void write_lost_samples(ByteWriter& out, std::uint64_t lost, const EventAttr& attr, std::uint64_t id);
// A record without a body (FINISHED_ROUND, FINISHED_INIT).
void write_mark(ByteWriter& out, abi::RecordType type);

}  // namespace tacho::format
