// Parsers for options about the fields of samples: --call-graph, -j, -k, --intr-regs and --user-regs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::record {

enum class CallGraph : std::uint8_t {
  None,
  FramePointers,  // the kernel walks them
  Dwarf,          // a copy of registers and stack, unwound when the capture is read
  LastBranches,   // the processor records the calls (LBR)
  Unwound,        // user stacks unwound in the kernel, by the binaries' unwind information
  Best,           // -g: Unwound if possible, else FramePointers
};

inline constexpr std::uint32_t kDefaultStackBytes = 8192;
// Limits of a sample: records have sizes of 16 bits.
inline constexpr std::uint64_t kMostStackBytes = 65528;
inline constexpr std::uint16_t kMostUnwoundFrames = 1024, kDefaultUnwoundFrames = 127;
// Default of kernel.perf_event_max_stack.
inline constexpr std::uint16_t kKernelFrames = 127;
inline constexpr std::uint64_t kMostStackFrames =
    65535;  // of the 16-bit field; the kernel's own limit may be lower

struct StackOptions {
  CallGraph method = CallGraph::None;
  std::uint32_t bytes = kDefaultStackBytes;  // of the stack, with Dwarf; a multiple of 8
  std::uint16_t max_frames = 0;              // 0: kernel.perf_event_max_stack
};

// "fp", "fp,FRAMES", "dwarf", "dwarf,BYTES", "lbr", "ehframe", "ehframe,FRAMES".
Result<StackOptions> parse_call_graph(std::string_view text);
// The size of a stack copy, rounded to a multiple of 8.
Result<std::uint32_t> parse_stack_bytes(std::string_view text);

// The branches that the processor records (-j, the term branch_type): "any_call,u" as bits of
// perf_event_attr.branch_sample_type. Privilege levels alone (u, k, hv) mean any branch.
Result<std::uint64_t> parse_branch_filter(std::string_view text);

// The branch filter of call stacks (LBR): user calls, without costly details.
std::uint64_t call_stack_branches();

// The clock of samples (-k): "monotonic", "CLOCK_MONOTONIC_RAW", "mono", "4" as the number for
// clock_gettime(). A clock that this host does not have is an error.
Result<int> parse_clock(std::string_view text);

// Registers as bits of sample_regs_user and sample_regs_intr, as perf numbers them: all that this machine's
// kernel can record; 0: unknown machine.
std::uint64_t all_registers();
// Their names, separated by blanks: "AX BX CX ...".
std::string register_names();
// "ip,sp": any case. An error lists the known names.
Result<std::uint64_t> parse_registers(std::string_view text);

}  // namespace tacho::record
