// Root frames of flame graphs and folded stacks (--by): the frames below the functions of a stack, outermost
// first, which group stacks by command, thread, CPU, cgroup, event or a field of events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

enum class RootKind : std::uint8_t { Comm, Pid, Tid, Cpu, Cgroup, Event, Field };
struct RootFrame {
  RootKind kind = RootKind::Comm;
  std::string field{};  // the name of a field of tracepoints or payloads (RootKind::Field)
  bool operator==(const RootFrame&) const = default;
};

// Help of an option that takes such a list.
inline constexpr std::string_view kRootFrameNames =
    "a list of comm, pid, tid, cpu, cgroup, event and fields of events, or none";
// Parses "comm,cpu"; "none": no root frame. Other words are fields, which may be unknown. A usage error names
// `option`.
Result<std::vector<RootFrame>> parse_root_frames(std::string_view option, std::string_view text);
bool contains_root(std::span<const RootFrame> roots, RootKind kind);
// Whether all of them are facts of a thread: comm, pid and tid.
bool are_of_threads(std::span<const RootFrame> roots);

// The name of a root frame: unchecked bytes, not safe to print. The first one takes a root that
// are_of_threads() allows, the other one all but fields.
std::string root_text(RootKind root, std::uint32_t pid, std::uint32_t tid, std::string_view comm);
std::string root_text(RootKind root, const ResolvedSample& sample, std::string_view event);

}  // namespace tacho::report
