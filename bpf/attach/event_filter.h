// Conditions of --filter that are evaluated in the kernel before a stack is walked: a bounded list of
// comparisons. BPF objects evaluate them in tacho_wants() (tacho/emit.h). For perf events they are compiled
// to a small BPF program, and for probes with arguments to a part of the program that reads the arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpf/attach/raw_program.h"
#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::bpf {

// As enum tacho_value in tacho/emit.h.
enum class FilterValue : std::uint8_t {
  None = 0,
  Process,
  Thread,
  User,  // ids of the host's user namespace
  Group,
  Cpu,
  Cgroup,       // id of the thread's cgroup (version 2)
  CgroupAbove,  // id of its ancestor cgroup at level FilterStep::at
  Name,         // 8 of the 16 bytes of the thread's name: half FilterStep::at
  Member,       // a member of the payload
};

// As enum tacho_test. "Not equal" and "greater" are these with `yes` and `no` exchanged.
enum class FilterTest : std::uint8_t { Equal, Less, LessOrEqual, SignedLess, SignedLessOrEqual };

inline constexpr std::size_t kMostFilterSteps = 32;
inline constexpr std::uint8_t kFilterPasses = 254, kFilterRejects = 255;

// As struct tacho_step.
struct FilterStep {
  FilterValue value = FilterValue::None;
  FilterTest test = FilterTest::Equal;
  std::uint8_t yes = kFilterPasses, no = kFilterRejects;  // a later step, or one of the two above
  std::uint16_t at = 0;                                   // offset in the payload; half of the name; level
  std::uint8_t size = 8;                                  // of a member: 1, 2, 4 or 8 bytes
  std::uint8_t is_signed = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t than = 0;
  bool operator==(const FilterStep&) const = default;
};
static_assert(sizeof(FilterStep) == 24);

// At most kMostFilterSteps; none: everything passes.
using FilterSteps = std::vector<FilterStep>;

// Where the code of a condition finds its data in the program around it.
struct ConditionFrame {
  std::int16_t scratch = -16;  // 16 aligned bytes of the stack that the program may overwrite
  std::int16_t payload = 0;    // stack offset of the payload; used by steps on members
  std::int32_t result = 0;     // returned if the condition does not hold
};
// Appends the code, which returns if the condition does not hold. Clobbers r0 to r5 and r7.
void return_unless(Assembler& program, std::span<const FilterStep> steps, ConditionFrame frame);

// Whether some step compares a member of a payload.
bool has_members(std::span<const FilterStep> steps);

// A program array with one program, for bpf_tail_call().
Result<format::Fd> program_array_with(int program);

// The condition as a program for perf events, which have no payload members.
class EventFilter {
 public:
  // The event's kind: overflow of a counter or clock, or a probe of the kprobe or uprobe PMU.
  enum class Hook : std::uint8_t { Overflow, Probe };
  // `next`: a program of the same kind that runs when the condition holds; -1: none.
  static Result<EventFilter> load(std::span<const FilterStep> steps, Hook hook, int next = -1);

  // Attaches the program: the event then samples only if the condition holds. It stays attached until the
  // event is closed.
  Result<> attach(int event_fd) const;
  int fd() const { return program_.get(); }

 private:
  EventFilter() = default;
  format::Fd program_, next_;
};

}  // namespace tacho::bpf
