#include "bpf/kernel_support.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string_view>

#include "format/file.h"

namespace tacho::bpf {
namespace {

// Bits of CapEff; our own copy, since older linux/capability.h lack the last two.
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;
constexpr int kNotSupportedInKernel = 524;  // ENOTSUPP, which leaks out of the kernel and has no text

// With the rights that are in effect: access(2) does not count the capabilities of who is not root.
bool can_access(const std::string& path, int how) {
  return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0;
}
bool exists(const std::string& path) { return can_access(path, F_OK); }

std::uint64_t effective_capabilities() {
  const auto status = format::read_file("/proc/self/status");
  if (!status) return ~std::uint64_t{0};  // cannot tell: let the kernel decide
  constexpr std::string_view kKey = "CapEff:\t";
  const std::string_view text = format::as_text(*status);
  const auto at = text.find(kKey);
  if (at == std::string_view::npos) return ~std::uint64_t{0};
  const std::string_view digits = text.substr(at + kKey.size(), 16);
  std::uint64_t bits = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  return bits;
}

// Whether kallsyms lists the function; nothing when it does not tell.
std::optional<bool> kernel_has_function(std::string_view name) {
  std::ifstream symbols("/proc/kallsyms");
  bool any = false;
  for (std::string line; std::getline(symbols, line);) {
    // "ffffffff81000000 T _text", with "\t[module]" behind for a module's.
    const auto start = line.find(' ', line.find(' ') + 1);
    if (start == std::string::npos) continue;
    any = true;
    const std::string_view symbol = std::string_view(line).substr(start + 1);
    if (symbol.substr(0, symbol.find('\t')) == name) return true;
  }
  return any ? std::optional(false) : std::nullopt;
}

std::string in_quotes(std::string_view text) { return std::string("'").append(text).append("'"); }

std::optional<std::string> missing_tracepoint(const std::string& target, const std::string& tracefs) {
  if (tracefs.empty() || exists(tracefs + "/events/" + target + "/id")) return std::nullopt;
  return "this kernel has no tracepoint " + in_quotes(target) + " (see " + tracefs +
         "/available_events; one of a module appears when the module is loaded)";
}

std::optional<std::string> missing_kprobe(const std::string& target, const std::string& tracefs) {
  if (!exists("/sys/bus/event_source/devices/kprobe/type") && !exists(tracefs + "/kprobe_events"))
    return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  const std::string function = target.substr(0, target.find('+'));
  if (kernel_has_function(function) == std::optional(false))
    return "this kernel has no function " + in_quotes(function) + " (see /proc/kallsyms)";
  return std::nullopt;
}

std::optional<std::string> missing_uprobe(const std::string& target, const std::string& tracefs) {
  if (!exists("/sys/bus/event_source/devices/uprobe/type") && !exists(tracefs + "/uprobe_events"))
    return "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
  const std::string file = target.substr(0, target.find(':'));
  // Names without a folder are looked up by libbpf in the search paths of programs and libraries.
  if (file.find('/') != std::string::npos && !exists(file)) return in_quotes(file) + ": no such file";
  return std::nullopt;
}

std::optional<std::string> missing_multi(const std::string&, const std::string& tracefs) {
  if (!exists("/sys/bus/event_source/devices/kprobe/type") && !exists(tracefs + "/kprobe_events"))
    return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  return std::nullopt;
}

struct HookRow {
  Hook hook;
  std::optional<std::string> (*missing)(const std::string& target, const std::string& tracefs);
};
constexpr HookRow kHooks[] = {
    {Hook::Tracepoint, missing_tracepoint}, {Hook::Kprobe, missing_kprobe},
    {Hook::KprobeMulti, missing_multi},     {Hook::KernelSyscall, missing_multi},
    {Hook::Uprobe, missing_uprobe},         {Hook::Usdt, missing_uprobe},
};

struct RefusalRow {
  Hook hook;
  int code;
  std::string_view text;  // '%' stands for the target
};
constexpr RefusalRow kRefusals[] = {
    {Hook::RawTracepoint, ENOENT, "this kernel has no raw tracepoint '%'"},
    {Hook::BtfTracepoint, ESRCH, "this kernel's BTF has no tracepoint '%'"},
    {Hook::BtfTracepoint, ENOENT, "this kernel's BTF has no tracepoint '%'"},
    {Hook::Function, ESRCH, "this kernel's BTF has no function '%'"},
    {Hook::Function, ENOENT, "this kernel's BTF has no function '%'"},
    {Hook::Function, EPERM,
     "the kernel refuses programs on functions (fentry, fexit): Operation not permitted"},
    {Hook::Function, EBUSY, "something else is attached to function '%'"},
    {Hook::Function, kNotSupportedInKernel, "this kernel cannot attach to function '%'"},
    {Hook::Kprobe, ENOENT, "this kernel has no function '%' that a probe can be put on"},
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

Result<> check_may_load() {
  const std::uint64_t capabilities = effective_capabilities();
  const auto has = [&](unsigned bit) { return (capabilities >> bit & 1U) != 0; };
  if (has(kCapSysAdmin) || (has(kCapBpf) && has(kCapPerfmon))) return Done{};
  return Error{
      "no permission to load BPF programs; run as root, or with the capabilities CAP_BPF and CAP_PERFMON",
      EPERM};
}

Result<std::string> find_tracefs(const Log& log) {
  constexpr std::array<const char*, 2> kPlaces{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  for (const char* place : kPlaces)
    if (exists(std::string(place) + "/events")) return std::string(place);
  if (::mount("tracefs", kPlaces[0], "tracefs", 0, nullptr) == 0) {
    say(log, "mounted tracefs on /sys/kernel/tracing, which tracepoints need");
    return std::string(kPlaces[0]);
  }
  const int code = errno;
  if (exists(kPlaces[0]) && !can_access(kPlaces[0], X_OK))
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

}  // namespace tacho::bpf
