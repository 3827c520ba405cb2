#include "bpf/program_list.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "bpf/libbpf_log.h"
#include "format/file.h"

namespace tacho::bpf {
namespace {

using format::Fd;
namespace fs = std::filesystem;

struct FreeBtf {
  void operator()(btf* types) const noexcept { btf__free(types); }
};
using Btf = std::unique_ptr<btf, FreeBtf>;

constexpr std::size_t kMostNameBytes = 512;
constexpr const char* kMissingRight = "run as root, or with the capability CAP_SYS_ADMIN";

void add_once(std::vector<std::string>& to, std::string text) {
  if (!text.empty() && std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

std::string text_or_number(const char* text, std::uint32_t number) {
  return text != nullptr ? std::string(text) : "#" + std::to_string(number);
}

// The kernel keeps 15 letters of a name; the types of the program have all of it.
std::string whole_name(int program_fd, const bpf_prog_info& short_info) {
  std::string name(short_info.name, ::strnlen(short_info.name, sizeof short_info.name));
  if (name.size() + 1 < sizeof short_info.name || short_info.btf_id == 0 || short_info.nr_func_info == 0)
    return name;
  std::array<std::uint32_t, 2> first{};  // offset of its instructions, type
  bpf_prog_info info{};
  info.nr_func_info = 1;
  info.func_info_rec_size = sizeof first;
  info.func_info = reinterpret_cast<std::uintptr_t>(first.data());
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(program_fd, &info, &size) != 0) return name;
  const Btf types(btf__load_from_kernel_by_id(short_info.btf_id));
  const btf_type* function = types == nullptr ? nullptr : btf__type_by_id(types.get(), first[1]);
  const char* whole = function == nullptr ? nullptr : btf__name_by_offset(types.get(), function->name_off);
  return whole == nullptr || *whole == '\0' ? name : whole;
}

std::optional<bpf_prog_info> info_of(int program_fd) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(program_fd, &info, &size) != 0) return std::nullopt;
  return info;
}

ListedProgram described(int program_fd, const bpf_prog_info& info) {
  ListedProgram program;
  program.id = info.id;
  program.type = text_or_number(libbpf_bpf_prog_type_str(static_cast<bpf_prog_type>(info.type)), info.type);
  program.name = whole_name(program_fd, info);
  constexpr char kDigits[] = "0123456789abcdef";
  for (const unsigned char byte : info.tag) {
    program.tag += kDigits[byte >> 4];
    program.tag += kDigits[byte & 15];
  }
  program.loaded_by = info.created_by_uid;
  program.translated_bytes = info.xlated_prog_len;
  program.machine_bytes = info.jited_prog_len;
  program.runs = info.run_cnt;
  program.nanoseconds = info.run_time_ns;
  program.skipped = info.recursion_misses;
  return program;
}

// Visits every loaded program by its descriptor; those that go meanwhile are left out.
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

// Names of the kernel's functions and tracepoints by their types; read once, when there is need.
class KernelTypes {
 public:
  std::string name(std::uint32_t id) {
    if (!is_read_) types_.reset(btf__load_vmlinux_btf());
    is_read_ = true;
    const btf_type* type = types_ == nullptr ? nullptr : btf__type_by_id(types_.get(), id);
    const char* found = type == nullptr ? nullptr : btf__name_by_offset(types_.get(), type->name_off);
    if (found == nullptr || *found == '\0') return "#" + std::to_string(id);
    constexpr std::string_view kTracepoint = "btf_trace_";
    const std::string_view text(found);
    return std::string(text.starts_with(kTracepoint) ? text.substr(kTracepoint.size()) : text);
  }

 private:
  Btf types_;
  bool is_read_ = false;
};

std::string attach_text(std::uint32_t type) {
  if (type == BPF_TRACE_RAW_TP) return "tp_btf";
  const std::string text =
      text_or_number(libbpf_bpf_attach_type_str(static_cast<bpf_attach_type>(type)), type);
  constexpr std::string_view kTrace = "trace_";  // trace_fentry: programs know it as fentry
  return text.starts_with(kTrace) ? text.substr(kTrace.size()) : text;
}

std::string place_of(const bpf_link_info& info, const std::string& program_type, const char* tracepoint,
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
      return "";  // the process that holds the event tells more
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
      add_once(program->places, place_of(info, program->type, name.data(), types));
  }
}

// "tracepoint sched_switch" of a perf event that runs a program.
std::string place_in_words(std::uint32_t type, const char* name, std::uint64_t offset,
                           std::uint64_t address) {
  const std::string place = *name != '\0' ? name : "address " + std::to_string(address);
  const std::string plus = *name != '\0' && offset != 0 ? "+" + std::to_string(offset) : "";
  switch (type) {
    case BPF_FD_TYPE_RAW_TRACEPOINT:
      return "raw_tracepoint " + place;
    case BPF_FD_TYPE_TRACEPOINT:
      return "tracepoint " + place;
    case BPF_FD_TYPE_KPROBE:
      return "kprobe " + place + plus;
    case BPF_FD_TYPE_KRETPROBE:
      return "kretprobe " + place + plus;
    case BPF_FD_TYPE_UPROBE:
      return "uprobe " + place + plus;
    case BPF_FD_TYPE_URETPROBE:
      return "uretprobe " + place + plus;
    default:
      return "perf event";
  }
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "prog_id:\t12" among the lines of a descriptor's fdinfo.
std::optional<std::uint32_t> program_in(const std::string& fdinfo) {
  const auto bytes = format::read_file(fdinfo, 1 << 16);
  if (!bytes) return std::nullopt;
  constexpr std::string_view kField = "prog_id:\t";
  const std::string_view text = format::as_text(*bytes);
  const auto at = text.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + kField.size());
  return number_in(rest.substr(0, rest.find('\n')));
}

class Holders {
 public:
  explicit Holders(Programs& programs) : programs_(programs) {}

  void look_into(std::uint32_t process) {
    const std::string folder = "/proc/" + std::to_string(process);
    std::error_code code;
    for (fs::directory_iterator entry(folder + "/fd", code), end; !code && entry != end;
         entry.increment(code)) {
      std::error_code unread;
      const std::string what = fs::read_symlink(entry->path(), unread).string();
      const std::string number = entry->path().filename().string();
      if (unread || !what.starts_with("anon_inode:")) continue;
      if (what.find("[perf_event]") != std::string::npos) look_at_event(process, number);
      if (what.find("bpf") == std::string::npos) continue;
      if (const auto id = program_in(folder + "/fdinfo/" + number)) add(process, *id, "");
    }
  }

 private:
  void look_at_event(std::uint32_t process, const std::string& number) {
    const auto fd = number_in(number);
    std::array<char, kMostNameBytes> name{};
    std::uint32_t size = name.size(), program = 0, type = 0;
    std::uint64_t offset = 0, address = 0;
    using Word = __u64;
    if (!fd ||
        bpf_task_fd_query(static_cast<int>(process), static_cast<int>(*fd), 0, name.data(), &size, &program,
                          &type, reinterpret_cast<Word*>(&offset), reinterpret_cast<Word*>(&address)) != 0) {
      // Sampling events say no more than that they run a program.
      return;
    }
    name.back() = '\0';
    add(process, program, place_in_words(type, name.data(), offset, address));
  }

  void add(std::uint32_t process, std::uint32_t id, std::string place) {
    ListedProgram* const program = find(programs_, id);
    if (program == nullptr) return;
    add_once(program->places, std::move(place));
    const auto bytes = format::read_file("/proc/" + std::to_string(process) + "/comm", 64);
    std::string comm = bytes ? std::string(format::as_text(*bytes)) : "?";
    comm.erase(std::ranges::find(comm, '\n'), comm.end());
    add_once(program->holders, comm + " (" + std::to_string(process) + ")");
  }

  Programs& programs_;
};

}  // namespace

Result<std::vector<ListedProgram>> list_programs() {
  const LibbpfLog quiet;
  Programs programs;
  auto listed =
      for_each_program([&](int fd, const bpf_prog_info& info) { programs.push_back(described(fd, info)); });
  if (!listed) return std::move(listed.error());
  add_links(programs);
  Holders holders(programs);
  std::error_code code;
  for (fs::directory_iterator entry("/proc", code), end; !code && entry != end; entry.increment(code))
    if (const auto process = number_in(entry->path().filename().string())) holders.look_into(*process);
  return programs;
}

Result<format::Fd> count_runs() {
  format::Fd statistics(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (statistics) return statistics;
  return system_error(std::string("the kernel's statistics of BPF programs; ") + kMissingRight, errno);
}

Result<std::map<std::uint32_t, Cost>> measure_programs(std::chrono::milliseconds stretch) {
  const LibbpfLog quiet;
  const auto statistics = count_runs();
  if (!statistics) return statistics.error();
  std::map<std::uint32_t, Cost> before, costs;
  auto first = for_each_program([&](int, const bpf_prog_info& info) {
    before[info.id] = {info.run_cnt, info.run_time_ns};
  });
  if (!first) return std::move(first.error());
  std::this_thread::sleep_for(stretch);
  auto second = for_each_program([&](int, const bpf_prog_info& info) {
    const Cost& was = before[info.id];
    costs[info.id] = {info.run_cnt - was.runs, info.run_time_ns - was.nanoseconds};
  });
  if (!second) return std::move(second.error());
  return costs;
}

}  // namespace tacho::bpf
