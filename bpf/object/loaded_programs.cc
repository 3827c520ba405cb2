#include "bpf/object/loaded_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "bpf/object/kernel_btf.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {

namespace {

using format::Fd;
using format::whole_number;
namespace fs = std::filesystem;

constexpr std::size_t kMostNameBytes = 512;
constexpr const char* kMissingRight = "run as root, or with the capability CAP_SYS_ADMIN";

void add_once(std::vector<std::string>& to, std::string text) {
  if (!text.empty() && std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

std::string hex_text(format::Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += kDigits[std::to_integer<unsigned>(each) >> 4];
    text += kDigits[std::to_integer<unsigned>(each) & 15];
  }
  return text;
}

std::string text_or_number(const char* text, std::uint32_t number) {
  return text != nullptr ? std::string(text) : "#" + std::to_string(number);
}

std::string type_text(const bpf_prog_info& info) {
  return text_or_number(libbpf_bpf_prog_type_str(static_cast<bpf_prog_type>(info.type)), info.type);
}

// The name of a program or map, at most 15 letters.
template <class Kind>
std::string name_in(const Kind& info) {
  return std::string(format::text_of(std::as_bytes(std::span(info.name))));
}

// The kernel truncates names to 15 letters; the program's BTF has the full name.
std::string whole_name(int program_fd, const bpf_prog_info& short_info) {
  std::string name = name_in(short_info);
  if (name.size() + 1 < sizeof short_info.name || short_info.btf_id == 0 || short_info.nr_func_info == 0)
    return name;
  std::array<std::uint32_t, 2> first{};  // struct bpf_func_info: instruction offset, type id
  bpf_prog_info info{};
  info.nr_func_info = 1;
  info.func_info_rec_size = sizeof first;
  info.func_info = reinterpret_cast<std::uintptr_t>(first.data());
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(program_fd, &info, &size) != 0) return name;
  const OwnedBtf types(btf__load_from_kernel_by_id(short_info.btf_id));
  const std::string_view whole = name_of_type(types.get(), first[1]);
  return whole.empty() ? name : std::string(whole);
}

std::optional<bpf_prog_info> info_of(int program_fd) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  return bpf_obj_get_info_by_fd(program_fd, &info, &size) == 0 ? std::optional(info) : std::nullopt;
}

ListedProgram listed_program(int program_fd, const bpf_prog_info& info) {
  return {.id = info.id,
          .type = type_text(info),
          .name = whole_name(program_fd, info),
          .tag = hex_text(std::as_bytes(std::span(info.tag))),
          .loaded_by = info.created_by_uid,
          .translated_bytes = info.xlated_prog_len,
          .machine_bytes = info.jited_prog_len,
          .runs = info.run_cnt,
          .nanoseconds = info.run_time_ns,
          .skipped = info.recursion_misses};
}

// Visits all loaded programs. A program that is unloaded during the walk is skipped.
template <class Visit>
Result<> for_each_program(Visit visit) {
  for (std::uint32_t id = 0;;) {
    if (bpf_prog_get_next_id(id, &id) != 0) {
      if (errno == ENOENT) return Done{};
      if (errno == EPERM)
        return Error{std::string("no permission to list BPF programs; ") + kMissingRight, EPERM};
      return system_error("listing BPF programs", errno);
    }
    const Fd program(bpf_prog_get_fd_by_id(id));
    if (!program && errno == ENOENT) continue;
    if (!program) return system_error("BPF program " + std::to_string(id), errno);
    if (const auto info = info_of(program.get())) visit(program.get(), *info);
  }
}

// Names of the kernel's functions and tracepoints by type id; read when first needed.
class KernelTypes {
 public:
  std::string name(std::uint32_t id) {
    if (!is_read_) types_.reset(btf__load_vmlinux_btf());
    is_read_ = true;
    std::string_view found = name_of_type(types_.get(), id);
    if (found.empty()) return "#" + std::to_string(id);
    format::take_prefix(found, "btf_trace_");
    return std::string(found);
  }

 private:
  OwnedBtf types_;
  bool is_read_ = false;
};

std::string attach_text(std::uint32_t type) {
  if (type == BPF_TRACE_RAW_TP) return "tp_btf";
  const std::string text =
      text_or_number(libbpf_bpf_attach_type_str(static_cast<bpf_attach_type>(type)), type);
  constexpr std::string_view kTrace = "trace_";  // trace_fentry: programs know it as fentry
  return text.starts_with(kTrace) ? text.substr(kTrace.size()) : text;
}

// "tp_btf sched_switch" of a link.
std::string attachment_of(const bpf_link_info& info, const std::string& program_type, const char* tracepoint,
                          KernelTypes& types) {
  switch (info.type) {
    case BPF_LINK_TYPE_RAW_TRACEPOINT:  // programs of tp_btf/ have the same links
      return (program_type == "tracing" ? "tp_btf " : "raw_tracepoint ") + std::string(tracepoint);
    case BPF_LINK_TYPE_TRACING:
      return attach_text(info.tracing.attach_type) + " " +
             (info.tracing.target_btf_id == 0 ? "?" : types.name(info.tracing.target_btf_id));
    case BPF_LINK_TYPE_CGROUP:
      return attach_text(info.cgroup.attach_type) + " cgroup " + std::to_string(info.cgroup.cgroup_id);
    case BPF_LINK_TYPE_XDP:
      return "xdp interface " + std::to_string(info.xdp.ifindex);
    case BPF_LINK_TYPE_NETNS:
      return attach_text(info.netns.attach_type) + " network namespace " +
             std::to_string(info.netns.netns_ino);
    case BPF_LINK_TYPE_ITER:
      return "iterator";
    case BPF_LINK_TYPE_KPROBE_MULTI:
      return "many functions of the kernel";
    case BPF_LINK_TYPE_PERF_EVENT:
      return "";  // the process that holds the event shows more
    default:
      return "link of type " + std::to_string(info.type);
  }
}

using Programs = std::vector<ListedProgram>;

ListedProgram* find(Programs& programs, std::uint32_t id) {
  const auto found = std::ranges::find(programs, id, &ListedProgram::id);
  return found == programs.end() ? nullptr : &*found;
}

void add_links(Programs& programs) {
  KernelTypes types;
  for (std::uint32_t id = 0; bpf_link_get_next_id(id, &id) == 0;) {
    const Fd link(bpf_link_get_fd_by_id(id));
    bpf_link_info info{};
    std::uint32_t size = sizeof info;
    std::array<char, kMostNameBytes> name{};
    if (!link || bpf_obj_get_info_by_fd(link.get(), &info, &size) != 0) continue;
    if (info.type == BPF_LINK_TYPE_RAW_TRACEPOINT) {
      info.raw_tracepoint.tp_name = reinterpret_cast<std::uintptr_t>(name.data());
      info.raw_tracepoint.tp_name_len = name.size();
      size = sizeof info;
      if (bpf_obj_get_info_by_fd(link.get(), &info, &size) != 0) continue;
      name.back() = '\0';
    }
    if (ListedProgram* program = find(programs, info.prog_id))
      add_once(program->attachments, attachment_of(info, program->type, name.data(), types));
  }
}

// "tracepoint sched_switch" of a perf event that runs a program.
std::string attachment_of_event(std::uint32_t type, const char* name, std::uint64_t offset,
                                std::uint64_t address) {
  constexpr std::string_view kKinds[] = {"raw_tracepoint ", "tracepoint ", "kprobe ",
                                         "kretprobe ",      "uprobe ",     "uretprobe "};
  static_assert(BPF_FD_TYPE_RAW_TRACEPOINT == 0 && BPF_FD_TYPE_URETPROBE == std::size(kKinds) - 1);
  if (type >= std::size(kKinds)) return "perf event";
  const std::string kind(kKinds[type]);
  if (*name == '\0') return kind + "address " + std::to_string(address);
  return kind + name + (offset == 0 ? "" : "+" + std::to_string(offset));
}

// "prog_id:\t12" among the lines of a descriptor's fdinfo.
std::optional<std::uint32_t> program_in(const std::string& fdinfo) {
  const auto bytes = format::read_file(fdinfo, 1 << 16);
  if (!bytes) return std::nullopt;
  return whole_number<std::uint32_t>(format::field_of_status(format::as_text(*bytes), "prog_id"));
}

void add_holder(Programs& programs, std::uint32_t process, std::uint32_t id, std::string attachment) {
  ListedProgram* const program = find(programs, id);
  if (program == nullptr) return;
  add_once(program->attachments, std::move(attachment));
  const auto bytes = format::read_file("/proc/" + std::to_string(process) + "/comm", 64);
  std::string_view comm = bytes ? format::as_text(*bytes) : "?";
  add_once(program->holders,
           std::string(format::take_until(comm, '\n')) + " (" + std::to_string(process) + ")");
}

// The kernel gives no detail for sampling events.
void add_event(Programs& programs, std::uint32_t process, std::uint32_t fd) {
  std::array<char, kMostNameBytes> name{};
  std::uint32_t size = name.size(), program = 0, type = 0;
  __u64 offset = 0, address = 0;
  if (bpf_task_fd_query(static_cast<int>(process), static_cast<int>(fd), 0, name.data(), &size, &program,
                        &type, &offset, &address) != 0)
    return;
  name.back() = '\0';
  add_holder(programs, process, program, attachment_of_event(type, name.data(), offset, address));
}

void add_holders(Programs& programs, std::uint32_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::error_code code;
  for (fs::directory_iterator entry(folder + "/fd", code), end; !code && entry != end;
       entry.increment(code)) {
    std::error_code unread;
    const std::string what = fs::read_symlink(entry->path(), unread).string();
    const std::string number = entry->path().filename().string();
    const auto fd = whole_number<std::uint32_t>(number);
    if (unread || !fd || !what.starts_with("anon_inode:")) continue;
    if (what.find("[perf_event]") != std::string::npos) add_event(programs, process, *fd);
    if (what.find("bpf") == std::string::npos) continue;
    if (const auto id = program_in(folder + "/fdinfo/" + number)) add_holder(programs, process, *id, "");
  }
}

}  // namespace

Result<std::vector<ListedProgram>> list_programs() {
  const LibbpfLog quiet;
  Programs programs;
  auto listed = for_each_program(
      [&](int fd, const bpf_prog_info& info) { programs.push_back(listed_program(fd, info)); });
  if (!listed) return std::move(listed.error());
  add_links(programs);
  std::error_code code;
  for (fs::directory_iterator entry("/proc", code), end; !code && entry != end; entry.increment(code))
    if (const auto process = whole_number<std::uint32_t>(entry->path().filename().string()))
      add_holders(programs, *process);
  return programs;
}

std::vector<std::pair<std::uint32_t, std::string>> attachments_by_links() {
  const LibbpfLog quiet;
  Programs programs;
  (void)for_each_program(
      [&](int, const bpf_prog_info& info) { programs.push_back({.id = info.id, .type = type_text(info)}); });
  add_links(programs);
  std::vector<std::pair<std::uint32_t, std::string>> attachments;
  for (const ListedProgram& program : programs)
    for (const std::string& each : program.attachments) attachments.emplace_back(program.id, each);
  return attachments;
}

Result<format::Fd> count_runs() {
  format::Fd statistics(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (statistics) return statistics;
  return system_error(std::string("the kernel's statistics of BPF programs; ") + kMissingRight, errno);
}

Result<std::map<std::uint32_t, Cost>> measure_programs(std::chrono::milliseconds interval) {
  const LibbpfLog quiet;
  const auto statistics = count_runs();
  if (!statistics) return statistics.error();
  std::map<std::uint32_t, Cost> before, costs;
  auto first = for_each_program([&](int, const bpf_prog_info& info) {
    before[info.id] = {info.run_cnt, info.run_time_ns};
  });
  if (!first) return std::move(first.error());
  std::this_thread::sleep_for(interval);
  auto second = for_each_program([&](int, const bpf_prog_info& info) {
    const Cost& was = before[info.id];
    costs[info.id] = {info.run_cnt - was.runs, info.run_time_ns - was.nanoseconds};
  });
  if (!second) return std::move(second.error());
  return costs;
}

namespace {

constexpr std::size_t kMostPrograms = 64;                      // the kernel takes no more on a tracepoint
constexpr std::uint32_t kMostInstructionBytes = 8U * 1000000;  // what its verifier takes

// struct perf_event_query_bpf, whose array of unknown length C++ cannot declare.
struct Query {
  std::uint32_t capacity = kMostPrograms, count = 0;
  std::array<std::uint32_t, kMostPrograms> ids{};
};

TracepointProgram describe(std::uint32_t id) {
  TracepointProgram program{id, {}, true};
  const format::Fd fd(bpf_prog_get_fd_by_id(id));
  const auto known = fd ? info_of(fd.get()) : std::nullopt;
  if (!known) return program;
  program.name = name_in(*known);
  const std::uint32_t length = known->xlated_prog_len;
  if (length == 0 || length > kMostInstructionBytes) return program;
  std::vector<std::byte> instructions(length);
  bpf_prog_info info{};
  info.xlated_prog_insns = reinterpret_cast<std::uint64_t>(instructions.data());
  info.xlated_prog_len = length;
  std::uint32_t size = sizeof info;
  const bool has_info = bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0 && info.xlated_prog_insns != 0 &&
                        info.xlated_prog_len == length;
  program.may_drop = !has_info || may_drop_events(instructions);
  return program;
}

}  // namespace

std::vector<TracepointProgram> programs_on_tracepoint(int event_fd) {
  Query query;
  std::vector<TracepointProgram> programs;
  if (::ioctl(event_fd, PERF_EVENT_IOC_QUERY_BPF, &query) != 0) return programs;
  const std::size_t count = std::min<std::size_t>(query.count, query.ids.size());
  for (const std::uint32_t id : std::span(query.ids).first(count)) programs.push_back(describe(id));
  return programs;
}

namespace {

constexpr std::uint64_t kMaxArray = std::uint64_t{64} << 20;  // bytes; the kernel's programs are far smaller

using Info = bpf_prog_info;
// An array of struct bpf_prog_info that a capture stores.
struct ArrayRow {
  unsigned bit;  // in BpfProgramInfo::arrays, perf's numbering
  __u64 Info::*pointer;
  __u32 Info::*count;
  std::uint32_t fixed_size = 0;       // bytes of an element
  __u32 Info::*size_field = nullptr;  // has that size; null: it is fixed

  std::uint32_t size(const Info& info) const { return size_field == nullptr ? fixed_size : info.*size_field; }
};
constexpr unsigned kMaps = 2, kKsyms = 3, kLengths = 4, kFuncInfo = 5, kTags = 8;  // bits
// The arrays that perf record stores, the translated instructions, and the ids of maps.
constexpr ArrayRow kArrays[] = {
    {0, &Info::jited_prog_insns, &Info::jited_prog_len, 1},
    {1, &Info::xlated_prog_insns, &Info::xlated_prog_len, 1},
    {kMaps, &Info::map_ids, &Info::nr_map_ids, 4},
    {kKsyms, &Info::jited_ksyms, &Info::nr_jited_ksyms, 8},
    {kLengths, &Info::jited_func_lens, &Info::nr_jited_func_lens, 4},
    {kFuncInfo, &Info::func_info, &Info::nr_func_info, 0, &Info::func_info_rec_size},
    {6, &Info::line_info, &Info::nr_line_info, 0, &Info::line_info_rec_size},
    {7, &Info::jited_line_info, &Info::nr_jited_line_info, 0, &Info::jited_line_info_rec_size},
    {kTags, &Info::prog_tags, &Info::nr_prog_tags, BPF_TAG_SIZE},
};

// The kernel's bpf_prog_info of one program, with the arrays' pointers replaced by offsets into `data`.
struct KernelInfo {
  bpf_prog_info info{};
  std::uint64_t arrays = 0;
  std::vector<std::byte> data;

  // The bytes of an array; empty: the kernel did not return it.
  format::Bytes array(unsigned bit) const {
    const auto row = std::ranges::find(kArrays, bit, &ArrayRow::bit);
    if ((arrays >> bit & 1U) == 0) return {};
    return format::Bytes(data).subspan(info.*row->pointer, std::size_t{info.*row->count} * row->size(info));
  }
};

Result<KernelInfo> read_info(int program_fd) {
  const auto known = info_of(program_fd);
  if (!known) return system_error("BPF program info", errno);
  const bpf_prog_info& sizes = *known;

  KernelInfo raw;
  std::array<std::uint64_t, std::size(kArrays)> offsets{};
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < std::size(kArrays); ++i) {
    const ArrayRow& row = kArrays[i];
    const std::uint64_t bytes = std::uint64_t{sizes.*row.count} * row.size(sizes);
    if (bytes == 0 || total + bytes > kMaxArray) continue;
    offsets[i] = total;
    total += (bytes + 7) / 8 * 8;
    raw.arrays |= std::uint64_t{1} << row.bit;
    raw.info.*row.count = sizes.*row.count;
    if (row.size_field != nullptr) raw.info.*row.size_field = sizes.*row.size_field;
  }
  raw.data.resize(total);
  for (std::size_t i = 0; i < std::size(kArrays); ++i)
    if ((raw.arrays >> kArrays[i].bit & 1U) != 0)
      raw.info.*kArrays[i].pointer = reinterpret_cast<std::uint64_t>(raw.data.data() + offsets[i]);
  std::uint32_t length = sizeof raw.info;
  if (bpf_obj_get_info_by_fd(program_fd, &raw.info, &length) != 0)
    return system_error("BPF program info", errno);

  for (std::size_t i = 0; i < std::size(kArrays); ++i) {
    const ArrayRow& row = kArrays[i];
    // The kernel clears pointers that it hides (kptr_restrict); a program's sizes never change.
    const bool is_there = (raw.arrays >> row.bit & 1U) != 0 && raw.info.*row.pointer != 0 &&
                          raw.info.*row.count == sizes.*row.count && row.size(raw.info) == row.size(sizes);
    if (!is_there) raw.arrays &= ~(std::uint64_t{1} << row.bit);
    raw.info.*row.pointer = is_there ? offsets[i] : 0;
  }
  return raw;
}

// The names of the program's functions, from BTF: func_info has a type id for each.
std::vector<std::string> function_names(const KernelInfo& raw, const btf* types) {
  std::vector<std::string> names;
  const std::uint32_t record = raw.info.func_info_rec_size;
  const auto records = raw.array(kFuncInfo);
  if (types == nullptr || record < 8) return names;
  for (format::Cursor in(records); in.left() >= record;) {
    format::Cursor one(in.take_bytes(record));
    one.u32();  // offset of the first instruction
    names.emplace_back(name_of_type(types, one.u32()));
  }
  return names;
}

// The kernel's and perf's name, "bpf_prog_TAG_NAME". Without BTF only a program of one function has a name.
std::string symbol_name(const KernelInfo& raw, std::size_t function, const std::vector<std::string>& names,
                        format::Bytes tag) {
  std::string name = "bpf_prog_" + hex_text(tag);
  if (function < names.size() && !names[function].empty()) return name + "_" + names[function];
  const std::string own = name_in(raw.info);
  return name + "_" + (names.empty() && raw.info.nr_prog_tags <= 1 && !own.empty() ? own : "F");
}

std::vector<LoadedSymbol> symbols_of(const KernelInfo& raw, const btf* types) {
  const auto names = function_names(raw, types);
  const auto tags = raw.array(kTags);
  format::Cursor addresses(raw.array(kKsyms));
  format::Cursor lengths(raw.array(kLengths));
  std::vector<LoadedSymbol> symbols;
  while (addresses.left() >= 8 && lengths.left() >= 4) {
    const std::size_t function = symbols.size();
    const bool own_tag = (function + 1) * BPF_TAG_SIZE <= tags.size();
    const format::Bytes tag = own_tag ? tags.subspan(function * BPF_TAG_SIZE, BPF_TAG_SIZE)
                                      : std::as_bytes(std::span(raw.info.tag));
    symbols.push_back({addresses.u64(), lengths.u32(), symbol_name(raw, function, names, tag)});
  }
  // They are zero if addresses are hidden.
  std::erase_if(symbols,
                [](const LoadedSymbol& symbol) { return symbol.address == 0 || symbol.length == 0; });
  return symbols;
}

LoadedProgram describe(std::uint32_t id, KernelInfo raw) {
  LoadedProgram program;
  program.id = id;
  std::memcpy(program.tag.data(), raw.info.tag, program.tag.size());
  const OwnedBtf types(raw.info.btf_id == 0 ? nullptr : btf__load_from_kernel_by_id(raw.info.btf_id));
  if (types != nullptr) {
    std::uint32_t size = 0;
    const auto* bytes = static_cast<const std::byte*>(btf__raw_data(types.get(), &size));
    program.btf.id = raw.info.btf_id;
    if (bytes != nullptr) program.btf.bytes.assign(bytes, bytes + size);
  }
  program.symbols = symbols_of(raw, types.get());
  for (format::Cursor ids(raw.array(kMaps)); ids.left() >= 4;) program.maps.push_back(ids.u32());
  const auto info = std::as_bytes(std::span(&raw.info, 1));
  program.info.info.assign(info.begin(), info.end());
  program.info.arrays = raw.arrays;
  program.info.data = std::move(raw.data);
  return program;
}

}  // namespace

std::vector<format::BpfMap> maps_of(std::span<const LoadedProgram> programs) {
  std::set<std::uint32_t> ids;
  for (const LoadedProgram& program : programs) ids.insert(program.maps.begin(), program.maps.end());
  std::vector<format::BpfMap> maps;
  for (const std::uint32_t id : ids) {
    const Fd map(bpf_map_get_fd_by_id(id));
    bpf_map_info info{};
    std::uint32_t size = sizeof info;
    if (!map || bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0) continue;
    maps.push_back({.id = id,
                    .type = info.type,
                    .key_bytes = info.key_size,
                    .value_bytes = info.value_size,
                    .most_entries = info.max_entries,
                    .name = name_in(info)});
  }
  return maps;
}

Result<std::vector<LoadedProgram>> loaded_programs() {
  const LibbpfLog quiet;
  std::vector<LoadedProgram> programs;
  Result<> read = Done{};
  auto listed = for_each_program([&](int fd, const bpf_prog_info& info) {
    if (!read) return;
    auto raw = read_info(fd);
    if (raw)
      programs.push_back(describe(info.id, std::move(*raw)));
    else
      read = std::move(raw.error()).in("BPF program " + std::to_string(info.id));
  });
  if (!listed) return std::move(listed.error());
  if (!read) return std::move(read.error());
  return programs;
}

}  // namespace tacho::bpf
