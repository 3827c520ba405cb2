// Values of options about what a sample holds: --call-graph, -j, -k, --intr-regs and --user-regs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::record {

enum class CallGraph : std::uint8_t {
  None,
  FramePointers,  // the kernel walks them
  Dwarf,          // registers and a piece of the user's stack, unwound when the capture is read
  LastBranches,   // the processor keeps the calls (LBR)
  Unwound,        // the user's side walked in the kernel, by the binaries' own unwind information
  Best,           // Unwound where the kernel can and may, FramePointers elsewhere: -g
};

inline constexpr std::uint32_t kDefaultStackBytes = 8192;
// Limits of a sample: records have sizes of 16 bits.
inline constexpr std::uint64_t kMostStackBytes = 65528;
inline constexpr std::uint16_t kMostUnwoundFrames = 1024, kDefaultUnwoundFrames = 127;
// Default of kernel.perf_event_max_stack.
inline constexpr std::uint16_t kKernelFrames = 127;
inline constexpr std::uint64_t kMostStackFrames =
    65535;  // the field has 16 bits; the kernel has a limit of its own

struct StackOptions {
  CallGraph method = CallGraph::None;
  std::uint32_t bytes = kDefaultStackBytes;  // of the stack, with Dwarf; a multiple of 8
  std::uint16_t max_frames = 0;              // 0: kernel.perf_event_max_stack
};

// "fp", "fp,FRAMES", "dwarf", "dwarf,BYTES", "lbr", "ehframe", "ehframe,FRAMES".
Result<StackOptions> parse_call_graph(std::string_view text);
// A size of the piece of stack, made a multiple of 8.
Result<std::uint32_t> parse_stack_bytes(std::string_view text);

// Which branches the processor is to keep, as perf's -j and the term branch_type say it.

// "any_call,u" as bits of perf_event_attr.branch_sample_type; only privilege levels (u, k, hv) mean any
// branch there.
Result<std::uint64_t> parse_branch_filter(std::string_view text);

// The branch filter of call stacks (LBR): user calls, without costly details.
std::uint64_t call_stack_branches();

// Clocks that samples may be stamped with: perf's -k.

// "monotonic", "CLOCK_MONOTONIC_RAW", "mono", "4": the number of the clock for clock_gettime(). A clock that
// this host does not have is an error.
Result<int> parse_clock(std::string_view text);

// Registers as perf numbers them in samples: a bit each of sample_regs_user and sample_regs_intr.

// Every register that the kernel of this machine gives for a sample; 0 where none is known here.
std::uint64_t all_registers();
// Their names, separated by blanks: "AX BX CX ...".
std::string register_names();
// "ip,sp": any case. An error gives the names there are.
Result<std::uint64_t> parse_registers(std::string_view text);

}  // namespace tacho::record
