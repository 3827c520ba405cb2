#include "report/views/script/script_records.h"

#include <fmt/format.h>

namespace tacho::report {
namespace {

using format::Record;

constexpr std::uint32_t kRead = 1, kWrite = 2, kExecute = 4;  // PROT_*
constexpr std::uint32_t kShared = 1;                          // MAP_SHARED

std::string alternate_hex(std::uint64_t value) {  // %#x: zero has no 0x
  return value == 0 ? "0" : fmt::format("{:#x}", value);
}

struct BodyOf {
  Names names;

  std::string operator()(const format::MmapRecord& r) const {
    const auto pid = static_cast<std::int32_t>(r.pid), tid = static_cast<std::int32_t>(r.tid);
    const std::string range = fmt::format(" {}/{}: [{}({}) @ {}", pid, tid, alternate_hex(r.start),
                                          alternate_hex(r.length), alternate_hex(r.page_offset));
    const std::string name = printable(r.filename, names);
    if (!r.is_mmap2) return fmt::format("{}]: {} {}", range, r.is_data ? 'r' : 'x', name);
    const std::string rights = {
        (r.protection & kRead) != 0 ? 'r' : '-', (r.protection & kWrite) != 0 ? 'w' : '-',
        (r.protection & kExecute) != 0 ? 'x' : '-', (r.flags & kShared) != 0 ? 's' : 'p'};
    const std::string file =
        r.build_id.empty() ? fmt::format("{:02x}:{:02x} {} {}", r.major, r.minor, r.inode, r.inode_generation)
                           : fmt::format("<{}>", r.build_id.hex());
    return fmt::format("{} {}]: {} {}", range, file, rights, name);
  }
  std::string operator()(const format::CommRecord& r) const {
    return fmt::format("{}: {}:{}/{}", r.is_exec ? " exec" : "", printable(r.name, names),
                       static_cast<std::int32_t>(r.pid), static_cast<std::int32_t>(r.tid));
  }
  std::string operator()(const format::TaskRecord& r) const {
    return fmt::format("({}:{}):({}:{})", static_cast<std::int32_t>(r.pid), static_cast<std::int32_t>(r.tid),
                       static_cast<std::int32_t>(r.parent_pid), static_cast<std::int32_t>(r.parent_tid));
  }
  std::string operator()(const format::SwitchRecord& r) const {
    const std::string_view direction = !r.is_out      ? " IN         "
                                       : r.is_preempt ? " OUT preempt"
                                                      : " OUT        ";
    if (!r.is_cpu_wide) return std::string(direction);
    return fmt::format("{}  {} pid/tid: {:5}/{:<5}", direction, r.is_out ? "next" : "prev",
                       static_cast<std::int32_t>(r.next_prev_pid),
                       static_cast<std::int32_t>(r.next_prev_tid));
  }
  std::string operator()(const format::NamespacesRecord& r) const {
    static constexpr std::string_view kNames[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
    const std::size_t count = r.links.size() / 2;
    std::string text = fmt::format(" {}/{} - nr_namespaces: {}\n\t\t[", static_cast<std::int32_t>(r.pid),
                                   static_cast<std::int32_t>(r.tid), count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0 && i % 4 == 0) text += "\n\t\t ";
      text += fmt::format("{}/{}: {}/{}{}", i, i < std::size(kNames) ? kNames[i] : "unknown", r.links[2 * i],
                          alternate_hex(r.links[2 * i + 1]), i + 1 == count ? "" : ", ");
    }
    return text + "]";
  }
  std::string operator()(const format::LostRecord& r) const { return fmt::format(" lost {}", r.lost); }
  std::string operator()(const format::LostSamplesRecord& r) const { return fmt::format(" lost {}", r.lost); }
  std::string operator()(const format::KsymbolRecord& r) const {
    return fmt::format(" addr {:x} len {} type {} flags 0x{:x} name {}", r.address, r.length, r.type, r.flags,
                       printable(r.name, names));
  }
  std::string operator()(const format::BpfEventRecord& r) const {
    return fmt::format(" type {}, flags {}, id {}", r.type, r.flags, r.id);
  }
  std::string operator()(const format::CgroupRecord& r) const {
    return fmt::format(" cgroup: {} {}", r.id, printable(r.path, names));
  }
  std::string operator()(const auto&) const { return {}; }
};

struct GroupOf {
  RecordGroup operator()(const format::MmapRecord&) const { return RecordGroup::Mmap; }
  RecordGroup operator()(const format::CommRecord&) const { return RecordGroup::Task; }
  RecordGroup operator()(const format::TaskRecord&) const { return RecordGroup::Task; }
  RecordGroup operator()(const format::SwitchRecord&) const { return RecordGroup::Switch; }
  RecordGroup operator()(const format::NamespacesRecord&) const { return RecordGroup::Namespaces; }
  RecordGroup operator()(const format::LostRecord&) const { return RecordGroup::Lost; }
  RecordGroup operator()(const format::KsymbolRecord&) const { return RecordGroup::Bpf; }
  RecordGroup operator()(const format::BpfEventRecord&) const { return RecordGroup::Bpf; }
  RecordGroup operator()(const format::CgroupRecord&) const { return RecordGroup::Cgroup; }
  RecordGroup operator()(const format::TextPokeRecord&) const { return RecordGroup::TextPoke; }
  RecordGroup operator()(const auto&) const { return RecordGroup::None; }
};

// "            Old bytes: 0f 1f", sixteen a line.
void write_bytes(TextBuffer& out, std::string_view label, format::Bytes bytes) {
  constexpr std::size_t kPerLine = 16;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at % kPerLine == 0) {
      if (at != 0) out.character('\n');
      out.text("            ");
      out.text(label);
    }
    out.character(' ');
    out.hex_byte(std::to_integer<std::uint8_t>(bytes[at]));
  }
  if (!bytes.empty()) out.character('\n');
}

}  // namespace

RecordGroup group_of(const Record& record) { return std::visit(GroupOf{}, record); }

void write_record(TextBuffer& out, std::uint32_t type, const Record& record, Names names) {
  out.text("PERF_RECORD_");
  out.text(format::record_name(type));
  out.text(std::visit(BodyOf{names}, record));
  out.character('\n');
}

void write_text_poke(TextBuffer& out, const format::TextPokeRecord& record, const symbolize::Frame& place,
                     Names names) {
  std::string function;
  if (!place.function.empty())
    function = fmt::format("{}+0x{:x}", printable(place.function, names),
                           place.shown_address - place.function_start);
  out.text(fmt::format("PERF_RECORD_TEXT_POKE {:x} {} old len {} new len {}\n", record.address, function,
                       record.old_bytes.size(), record.new_bytes.size()));
  write_bytes(out, "Old bytes:", record.old_bytes);
  write_bytes(out, "New bytes:", record.new_bytes);
}

}  // namespace tacho::report
