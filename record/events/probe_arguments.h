// Arguments of probes: the list in parentheses, and the location of each argument (register, memory,
// constant).
//
//   uprobe:FILE:FUNCTION(arg1, name=arg2:string, flags=%edx:x32)   by position and register
//   uprobe:FILE:FUNCTION(size, request->head.length)               by the names of its debugging information
//   kprobe:FUNCTION(count, file)                                    by the names of the kernel's BTF, too
//   usdt:FILE:PROVIDER:NAME(arg1, size=arg2)                        as the marker's note has them
//   uretprobe:FILE:FUNCTION(ret)                                    the return value
//
// A TYPE after a colon: u8 to u64, s8 to s64, x8 to x64 (hexadecimal), string, ustring (in user space, of a
// probe in the kernel).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/kernel_btf.h"
#include "bpf/object/probe_program.h"
#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "record/events/event_request.h"

namespace tacho::record {

// The words that probes begin with.
struct ProbeRow {
  std::string_view word;
  ProbeKind kind = ProbeKind::User;
  bool at_return = false;
  std::string_view example;
};
inline constexpr ProbeRow kProbes[] = {
    {"uprobe", ProbeKind::User, false, "uprobe:/lib/libc.so.6:malloc"},
    {"uretprobe", ProbeKind::User, true, "uretprobe:/lib/libc.so.6:malloc"},
    {"kprobe", ProbeKind::Kernel, false, "kprobe:vfs_read"},
    {"kretprobe", ProbeKind::Kernel, true, "kretprobe:vfs_read"},
    {"usdt", ProbeKind::Marker, false, "usdt:/usr/bin/python3:python:function__entry"},
};

// The text between the parentheses. An error has its column in `text`, from 0.
struct ArgumentError {
  std::size_t at = 0;
  std::string what;
};
std::vector<ArgumentRequest> parse_arguments(std::string_view text, std::optional<ArgumentError>& wrong);

// The locations of arguments in a marker's note: "8@%rdi -4@-12(%rbp) 4@$7". Arguments with unsupported
// locations have no name.
std::vector<bpf::ProbeArgument> marker_arguments(std::string_view note);

// The bpf-output event for the samples of a probe with arguments.
EventRequest output_of(const EventRequest& request);
format::EventAttr probe_attr(const EventRequest& request);

// An argument by debug information.
struct NamedArgument {
  std::string source;  // as in the request
  bpf::ProbeArgument value;
};
// Whether the location of this argument is only known by debug information.
bool needs_debug_information(const ArgumentRequest& request);

// The location of each argument. For a kernel function, `known` has the arguments in order; for a marker,
// `marker`.
struct KnownArguments {
  ProbeKind kind = ProbeKind::User;
  bool at_return = false;
  std::span<const bpf::FunctionArgument> function = {};
  std::span<const bpf::ProbeArgument> marker = {};
  std::span<const NamedArgument> named = {};
  std::string_view missing_reason = {};  // why the names of a user function's arguments are unknown
};
Result<std::vector<bpf::ProbeArgument>> place_arguments(std::span<const ArgumentRequest> requests,
                                                        const KnownArguments& known);

}  // namespace tacho::record
