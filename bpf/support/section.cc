#include "bpf/support/section.h"

#include <algorithm>
#include <cctype>

#include "format/base/parse_text.h"

namespace tacho::bpf {
namespace {

struct SectionRow {
  std::string_view prefix;
  Hook hook;
  std::string_view example;  // for the message about a missing target
};

constexpr SectionRow kSections[] = {
    {"tracepoint", Hook::Tracepoint, "tracepoint/syscalls/sys_enter_openat"},
    {"tp", Hook::Tracepoint, "tp/syscalls/sys_enter_openat"},
    {"raw_tracepoint", Hook::RawTracepoint, "raw_tracepoint/sys_enter"},
    {"raw_tp", Hook::RawTracepoint, "raw_tp/sys_enter"},
    {"raw_tracepoint.w", Hook::RawTracepoint, "raw_tracepoint.w/sys_enter"},
    {"raw_tp.w", Hook::RawTracepoint, "raw_tp.w/sys_enter"},
    {"tp_btf", Hook::BtfTracepoint, "tp_btf/sys_enter"},
    {"kprobe", Hook::Kprobe, "kprobe/vfs_read"},
    {"kretprobe", Hook::Kprobe, "kretprobe/vfs_read"},
    {"kprobe.multi", Hook::KprobeMulti, "kprobe.multi/vfs_*"},
    {"kretprobe.multi", Hook::KprobeMulti, "kretprobe.multi/vfs_*"},
    {"ksyscall", Hook::KernelSyscall, "ksyscall/openat"},
    {"kretsyscall", Hook::KernelSyscall, "kretsyscall/openat"},
    {"uprobe", Hook::Uprobe, "uprobe//bin/bash:readline"},
    {"uprobe.s", Hook::Uprobe, "uprobe.s//bin/bash:readline"},
    {"uretprobe", Hook::Uprobe, "uretprobe//bin/bash:readline"},
    {"uretprobe.s", Hook::Uprobe, "uretprobe.s//bin/bash:readline"},
    {"usdt", Hook::Usdt, "usdt/libc.so.6:libc:setjmp"},
    {"iter", Hook::Iterator, "iter/task"},
    {"iter.s", Hook::Iterator, "iter.s/task"},
    {"fentry", Hook::Function, "fentry/vfs_read"},
    {"fentry.s", Hook::Function, "fentry.s/vfs_read"},
    {"fexit", Hook::Function, "fexit/vfs_read"},
    {"fexit.s", Hook::Function, "fexit.s/vfs_read"},
    {"fmod_ret", Hook::Function, "fmod_ret/bpf_modify_return_test"},
    {"fmod_ret.s", Hook::Function, "fmod_ret.s/bpf_modify_return_test"},
};

std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

// Probe definitions of perf's old BPF support: lines of options ("exec=/lib/libc.so.6"), then
// "EVENT=FUNCTION[+offset][%return] args".
Error old_probe_definition(std::string_view definition) {
  std::string_view file;
  std::string_view function;
  for (std::string_view rest = definition; !rest.empty();) {
    const auto end = std::min(rest.find_first_of(";\n"), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = line.substr(equals + 1);
    if (line.substr(0, equals) == "exec") {
      file = value;
    } else if (line.substr(0, equals) != "module") {
      function = value.substr(0, value.find(' '));
    }
  }
  const std::string kind = function.ends_with("%return") ? "retprobe/" : "probe/";
  const std::string instead = (file.empty() ? "k" + kind : "u" + kind + std::string(file) + ":") +
                              std::string(function.substr(0, function.find_first_of("%:;@")));
  return Error{"section " + quoted(definition) +
               " is a probe definition of perf's old BPF support; write SEC(\"" + instead + "\")"};
}

// "syscalls:sys_enter_openat"; the names of tracepoints and their folders are plain words.
bool is_old_tracepoint(std::string_view name) {
  const auto colon = name.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == name.size()) return false;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return std::ranges::all_of(name.substr(0, colon), [&](char c) { return is_word(c) || c == '-'; }) &&
         std::ranges::all_of(name.substr(colon + 1), is_word);
}

}  // namespace

Result<Section> parse_section(std::string_view name) {
  if (name.starts_with('?')) name.remove_prefix(1);  // libbpf: an optional program
  if (name == "syscall") return Section{Hook::AtEnd, ""};
  if (name == "perf_event") return Section{Hook::PerfEvent, ""};
  for (const std::string_view prefix : {kFunctionEntries, kFunctionReturns}) {
    std::string_view rest = name;
    if (!format::take_prefix(rest, prefix)) continue;
    if (rest.empty() || format::take_prefix(rest, kOfLibrary))
      return Section{Hook::Functions, std::string(rest)};
  }
  const auto slash = name.find('/');
  const std::string target(slash == std::string_view::npos ? "" : name.substr(slash + 1));
  const auto row = std::ranges::find(kSections, name.substr(0, slash), &SectionRow::prefix);
  if (row != std::end(kSections)) {
    const bool whole =
        !target.empty() && (row->hook != Hook::Tracepoint || target.find('/') != std::string::npos);
    if (!whole)
      return Error{"section " + quoted(name) + " has no target; write for example SEC(\"" +
                   std::string(row->example) + "\")"};
    return Section{row->hook, target};
  }
  // With a '/' before the '=' it is another section of libbpf.
  if (const auto equals = name.find('='); equals < slash) return old_probe_definition(name);
  if (is_old_tracepoint(name)) {
    std::string tracepoint(name);
    tracepoint[tracepoint.find(':')] = '/';
    return Section{Hook::Tracepoint, tracepoint, Spelling::Perf};
  }
  return Section{Hook::Other, target};
}

}  // namespace tacho::bpf
