#include "bpf/support/kernel_support.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fstream>

#include "bpf/support/libbpf_owned.h"
#include "format/base/file.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {

namespace {

// Bits of CapEff; older linux/capability.h lack the last two.
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;

// Whether the file can be opened. access(2) would ignore capabilities of users other than root.
bool can_access(const std::string& path, int how) {
  return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0;
}
bool exists(const std::string& path) { return can_access(path, F_OK); }

std::uint64_t effective_capabilities() {
  const auto status = format::read_file("/proc/self/status");
  const std::string_view text = status ? format::as_text(*status) : std::string_view();
  const auto bits = format::whole_number<std::uint64_t>(format::field_of_status(text, "CapEff"), 16);
  return bits.value_or(~std::uint64_t{0});  // unknown: let the kernel decide
}

// Whether kallsyms lists the function; nothing: it cannot be read.
std::optional<bool> kernel_has_function(std::string_view name) {
  std::ifstream symbols("/proc/kallsyms");
  bool any = false;
  for (std::string line; std::getline(symbols, line);) {
    // "ffffffff81000000 T _text", followed by "\t[module]" for a module.
    const auto start = line.find(' ', line.find(' ') + 1);
    if (start == std::string::npos) continue;
    any = true;
    const std::string_view symbol = std::string_view(line).substr(start + 1);
    if (symbol.substr(0, symbol.find('\t')) == name) return true;
  }
  return any ? std::optional(false) : std::nullopt;
}

std::optional<std::string> missing_tracepoint(const std::string& target, const std::string& tracefs) {
  if (tracefs.empty() || exists(tracefs + "/events/" + target + "/id")) return std::nullopt;
  return "this kernel has no tracepoint '" + target + "' (see " + tracefs +
         "/available_events; one of a module appears when the module is loaded)";
}

std::optional<std::string> missing_kprobes(const std::string&, const std::string& tracefs) {
  if (!exists("/sys/bus/event_source/devices/kprobe/type") && !exists(tracefs + "/kprobe_events"))
    return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  return std::nullopt;
}

std::optional<std::string> missing_kprobe(const std::string& target, const std::string& tracefs) {
  if (auto why = missing_kprobes(target, tracefs)) return why;
  const std::string function = target.substr(0, target.find('+'));
  if (kernel_has_function(function) == std::optional(false))
    return "this kernel has no function '" + function + "' (see /proc/kallsyms)";
  return std::nullopt;
}

std::optional<std::string> missing_uprobe(const std::string& target, const std::string& tracefs) {
  if (!exists("/sys/bus/event_source/devices/uprobe/type") && !exists(tracefs + "/uprobe_events"))
    return "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
  const std::string file = target.substr(0, target.find(':'));
  // Names without a folder are looked up by libbpf in the search paths of programs and libraries.
  if (file.find('/') != std::string::npos && !exists(file)) return "'" + file + "': no such file";
  return std::nullopt;
}

struct HookRow {
  Hook hook;
  std::optional<std::string> (*missing)(const std::string& target, const std::string& tracefs);
};
constexpr HookRow kHooks[] = {
    {Hook::Tracepoint, missing_tracepoint}, {Hook::Kprobe, missing_kprobe},
    {Hook::KprobeMulti, missing_kprobes},   {Hook::KernelSyscall, missing_kprobes},
    {Hook::Uprobe, missing_uprobe},         {Hook::Usdt, missing_uprobe},
};

struct RefusalRow {
  Hook hook;
  int code;
  std::string_view text;  // '%': the target
};
constexpr RefusalRow kRefusals[] = {
    {Hook::RawTracepoint, ENOENT, "this kernel has no raw tracepoint '%'"},
    {Hook::BtfTracepoint, ESRCH, "this kernel's BTF has no tracepoint '%'"},
    {Hook::BtfTracepoint, ENOENT, "this kernel's BTF has no tracepoint '%'"},
    {Hook::Function, ESRCH, "this kernel's BTF has no function '%'"},
    {Hook::Function, ENOENT, "this kernel's BTF has no function '%'"},
    {Hook::Function, EPERM,
     "the kernel refuses programs on functions (fentry, fexit): Operation not permitted"},
    {Hook::Function, EBUSY, "another program is attached to function '%'"},
    {Hook::Function, kNotSupportedInKernel, "this kernel cannot attach to function '%'"},
    {Hook::Kprobe, ENOENT, "this kernel has no function '%' that can be probed"},
    {Hook::Kprobe, EINVAL, "the kernel does not allow a probe on '%'"},
    {Hook::KprobeMulti, ESRCH, "no function of this kernel matches '%'"},
    {Hook::KprobeMulti, ENOENT, "no function of this kernel matches '%'"},
    {Hook::KprobeMulti, EOPNOTSUPP, "this kernel cannot attach to many functions at once (CONFIG_FPROBE)"},
    {Hook::KprobeMulti, EINVAL, "this kernel cannot attach to many functions at once (CONFIG_FPROBE)"},
    {Hook::Uprobe, ENOENT, "'%': no such file or no such function in it"},
    {Hook::Uprobe, ESRCH, "'%': no such function in that file"},
    {Hook::Usdt, ENOENT, "'%': no such file or no such probe in it"},
    {Hook::Other, EOPNOTSUPP,
     "not a section that can be attached; use tracepoint/, raw_tp/, tp_btf/, kprobe/, kretprobe/, uprobe/, "
     "uretprobe/, usdt/, fentry/, fexit/ or perf_event"},
};

}  // namespace

bool is_in_user_namespace() {
  constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;  // inode of the initial one
  struct stat own {};
  return ::stat("/proc/self/ns/user", &own) == 0 && own.st_ino != kFirstUserNamespace;
}

Result<> check_may_load() {
  if (is_in_user_namespace())
    return Error{
        "this is a user namespace (a rootless container), in which the kernel loads no BPF programs; record "
        "on the host, or in a container of the host's root",
        EPERM};
  const std::uint64_t capabilities = effective_capabilities();
  const auto has = [&](unsigned bit) { return (capabilities >> bit & 1U) != 0; };
  if (has(kCapSysAdmin) || (has(kCapBpf) && has(kCapPerfmon))) return Done{};
  return Error{
      "no permission to load BPF programs; run as root, or with the capabilities CAP_BPF and CAP_PERFMON",
      EPERM};
}

Result<std::string> find_tracefs(const Log& log) {
  constexpr std::array<const char*, 2> kFolders{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  for (const char* folder : kFolders)
    if (exists(std::string(folder) + "/events")) return std::string(folder);
  if (::mount("tracefs", kFolders[0], "tracefs", 0, nullptr) == 0) {
    say(log, "mounted tracefs on /sys/kernel/tracing, which tracepoints need");
    return std::string(kFolders[0]);
  }
  const int code = errno;
  if (exists(kFolders[0]) && !can_access(kFolders[0], X_OK))
    return Error{"tracepoints need tracefs, and /sys/kernel/tracing may not be read; run as root", EACCES};
  return Error{
      "tracepoints need tracefs, which is not mounted; run: mount -t tracefs tracefs /sys/kernel/tracing",
      code};
}

std::optional<std::string> missing_hook(const Section& section, const std::string& tracefs) {
  const auto row = std::ranges::find(kHooks, section.hook, &HookRow::hook);
  return row == std::end(kHooks) ? std::nullopt : row->missing(section.target, tracefs);
}

std::string refusal_in_words(const Section& section, int code) {
  const auto row = std::ranges::find_if(
      kRefusals, [&](const RefusalRow& each) { return each.hook == section.hook && each.code == code; });
  if (row == std::end(kRefusals)) return "";
  std::string text(row->text);
  if (const auto mark = text.find('%'); mark != std::string::npos) text.replace(mark, 1, section.target);
  return text;
}

KernelName kernel_name() {
  utsname name{};
  if (::uname(&name) != 0) return {};
  return {name.release, name.machine};
}

namespace {

constexpr int kMostNesting = 16;  // of anonymous structs and of typedefs
constexpr std::uint32_t kBitsOfByte = 8;

std::optional<BtfMember> find_nested(const btf* types, const btf_type* owner, std::string_view path,
                                     int nesting) {
  if (owner == nullptr || !btf_is_composite(owner) || nesting > kMostNesting) return std::nullopt;
  const std::string_view first = path.substr(0, path.find('.'));
  const std::string_view rest = path.substr(std::min(path.size(), first.size() + 1));
  const btf_member* const members = btf_members(owner);
  for (std::uint32_t i = 0; i < btf_vlen(owner); ++i) {
    const std::uint32_t bit = btf_member_bit_offset(owner, i);
    const std::string_view name = name_at(types, members[i].name_off);
    if (name == first && rest.empty())
      return BtfMember{members[i].type, bit, btf_member_bitfield_size(owner, i)};
    if (name != first && !name.empty()) continue;
    auto found =
        find_nested(types, plain_type(types, members[i].type), name.empty() ? path : rest, nesting + 1);
    if (!found) continue;
    found->bit += bit;
    return found;
  }
  return std::nullopt;
}

}  // namespace

const btf_type* plain_type(const btf* types, std::uint32_t id) {
  const btf_type* type = btf__type_by_id(types, id);
  for (int i = 0; i < kMostNesting && type != nullptr; ++i) {
    if (!btf_is_typedef(type) && !btf_is_mod(type) && !btf_is_type_tag(type)) return type;
    type = btf__type_by_id(types, type->type);
  }
  return nullptr;
}

std::optional<BtfMember> find_member(const btf* types, const btf_type* owner, std::string_view path) {
  return find_nested(types, owner, path, 0);
}

namespace {

constexpr const char* kVmlinuxBtf = "/sys/kernel/btf/vmlinux";

struct MemberRow {
  const char* type;
  const char* path;  // members of members by dots
  std::uint32_t tacho_kernel_layout::*to;
};
constexpr std::array kMembers{
    MemberRow{"task_struct", "mm", &tacho_kernel_layout::task_mm},
    MemberRow{"task_struct", "perf_event_ctxp", &tacho_kernel_layout::task_perf_contexts},
    MemberRow{"mm_struct", "mm_mt.ma_root", &tacho_kernel_layout::mm_mappings},
    MemberRow{"mm_struct", "context.vdso", &tacho_kernel_layout::mm_vdso},
    MemberRow{"vm_area_struct", "vm_start", &tacho_kernel_layout::vma_start},
    MemberRow{"vm_area_struct", "vm_end", &tacho_kernel_layout::vma_end},
    MemberRow{"vm_area_struct", "vm_mm", &tacho_kernel_layout::vma_mm},
    MemberRow{"vm_area_struct", "vm_flags", &tacho_kernel_layout::vma_flags},
    MemberRow{"vm_area_struct", "vm_pgoff", &tacho_kernel_layout::vma_page_offset},
    MemberRow{"vm_area_struct", "vm_file", &tacho_kernel_layout::vma_file},
    MemberRow{"file", "f_inode", &tacho_kernel_layout::file_inode},
    MemberRow{"inode", "i_ino", &tacho_kernel_layout::inode_number},
    MemberRow{"inode", "i_size", &tacho_kernel_layout::inode_size},
    MemberRow{"inode", "i_generation", &tacho_kernel_layout::inode_generation},
    MemberRow{"inode", "i_sb", &tacho_kernel_layout::inode_super_block},
    MemberRow{"super_block", "s_dev", &tacho_kernel_layout::super_block_device},
};

// Not all kernels have uprobes.
constexpr std::array kUprobeMembers{
    MemberRow{"task_struct", "utask", &tacho_kernel_layout::task_utask},
    MemberRow{"uprobe_task", "return_instances", &tacho_kernel_layout::utask_returns},
    MemberRow{"return_instance", "next", &tacho_kernel_layout::return_next},
    MemberRow{"return_instance", "stack", &tacho_kernel_layout::return_stack},
    MemberRow{"return_instance", "orig_ret_vaddr", &tacho_kernel_layout::return_address},
    MemberRow{"mm_struct", "uprobes_state.xol_area", &tacho_kernel_layout::mm_xol_area},
    MemberRow{"xol_area", "vaddr", &tacho_kernel_layout::xol_area_address},
    MemberRow{"uprobe_task", "vaddr", &tacho_kernel_layout::utask_address},
    MemberRow{"uprobe_task", "xol_vaddr", &tacho_kernel_layout::utask_xol_address},
};

// The members with an inode's ctime, whose name differs between kernels.
struct TimeRow {
  const char* seconds;
  const char* nanoseconds;
};
constexpr std::array kTimes{TimeRow{"i_ctime_sec", "i_ctime_nsec"},
                            TimeRow{"__i_ctime.tv_sec", "__i_ctime.tv_nsec"},
                            TimeRow{"i_ctime.tv_sec", "i_ctime.tv_nsec"}};

// Offsets on which the program relies: a kernel with others is not supported.
struct FixedRow {
  const char* type;
  const char* path;
  std::uint32_t offset;
};
constexpr std::uint32_t kRegisterBytes = 8;
constexpr std::array kFixed{
    FixedRow{"maple_range_64", "pivot", kRegisterBytes},
    FixedRow{"maple_range_64", "slot", (1 + TACHO_MAPLE_PIVOTS) * kRegisterBytes},
    FixedRow{"maple_arange_64", "pivot", kRegisterBytes},
    FixedRow{"maple_arange_64", "slot", (1 + TACHO_MAPLE_PIVOTS_WITH_GAPS) * kRegisterBytes},
};

// The structs in the tables, found in one pass over the kernel's hundred thousand types.
class Structs {
 public:
  explicit Structs(const btf* types) : types_(types) {
    for (std::uint32_t id = 1; id < btf__type_cnt(types); ++id) {
      const btf_type* const type = btf__type_by_id(types, id);
      if (!btf_is_struct(type)) continue;
      const std::string_view name = name_at(types, type->name_off);
      for (std::size_t i = 0; i < kNames.size(); ++i)
        if (found_[i] == nullptr && kNames[i] == name) found_[i] = type;
    }
  }
  std::optional<BtfMember> find(std::string_view type, std::string_view path) const {
    const auto name = std::ranges::find(kNames, type);
    if (name == kNames.end()) return std::nullopt;
    return find_member(types_, found_[static_cast<std::size_t>(name - kNames.begin())], path);
  }

 private:
  static constexpr std::array<std::string_view, 11> kNames{
      "task_struct", "mm_struct",       "vm_area_struct", "file",
      "inode",       "super_block",     "maple_range_64", "maple_arange_64",
      "uprobe_task", "return_instance", "xol_area"};
  const btf* types_;
  std::array<const btf_type*, kNames.size()> found_{};
};

Error missing(const char* type, const char* path) {
  return Error{"this kernel has no " + std::string(type) + "." + path +
                   ", with which Linux 6.1 and later keep mappings",
               ENOENT};
}

}  // namespace

Result<tacho_kernel_layout> kernel_layout_in(format::Bytes bytes) {
  const OwnedBtf types = parse_btf(bytes);
  if (types == nullptr) return Error{"the kernel's BTF cannot be read", EINVAL};
  const Structs structs(types.get());
  tacho_kernel_layout layout{};
  for (const MemberRow& row : kMembers) {
    const auto found = structs.find(row.type, row.path);
    if (!found) return missing(row.type, row.path);
    layout.*row.to = found->bit / kBitsOfByte;
    if (row.to != &tacho_kernel_layout::task_perf_contexts) continue;
    const btf_type* const contexts = plain_type(types.get(), found->type);
    layout.perf_contexts = contexts != nullptr && btf_is_array(contexts) ? btf_array(contexts)->nelems : 1;
  }
  for (const TimeRow& row : kTimes) {
    const auto seconds = structs.find("inode", row.seconds), rest = structs.find("inode", row.nanoseconds);
    if (!seconds || !rest) continue;
    layout.inode_changed = seconds->bit / kBitsOfByte;
    layout.inode_changed_ns = rest->bit / kBitsOfByte;
    break;
  }
  layout.has_uprobes = 1;
  for (const MemberRow& row : kUprobeMembers) {
    const auto found = structs.find(row.type, row.path);
    if (found) layout.*row.to = found->bit / kBitsOfByte;
    if (!found) layout.has_uprobes = 0;
  }
  for (const FixedRow& row : kFixed) {
    const auto found = structs.find(row.type, row.path);
    if (!found || found->bit != row.offset * kBitsOfByte) return missing(row.type, row.path);
  }
  layout.is_known = 1;
  return layout;
}

Result<tacho_kernel_layout> kernel_layout() {
  const auto bytes = format::read_file(kVmlinuxBtf);
  if (!bytes) return Error{"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)", ENOENT};
  auto layout = kernel_layout_in(*bytes);
  if (layout)
    layout->page_bits =
        static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))));
  return layout;
}

}  // namespace tacho::bpf
