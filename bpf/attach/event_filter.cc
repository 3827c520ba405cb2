#include "bpf/attach/event_filter.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"

namespace tacho::bpf {
namespace {

constexpr int kContextRegister = 6, kValueRegister = 7;  // callee-saved
constexpr std::int32_t kCommBytes = 16;

// r0 = the member, from the payload on the stack.
void load_member(Assembler& program, const FilterStep& step, std::int16_t payload) {
  program.load(Assembler::size_code(step.size), 0, 10, static_cast<std::int16_t>(payload + step.at));
  if (step.is_signed != 0) program.extend_sign(0, step.size);
}

// r7 = the value of the step.
void load_value(Assembler& program, const FilterStep& step, ConditionFrame frame) {
  switch (step.value) {
    case FilterValue::Process:
    case FilterValue::Thread:
      program.call(BPF_FUNC_get_current_pid_tgid);
      break;
    case FilterValue::User:
    case FilterValue::Group:
      program.call(BPF_FUNC_get_current_uid_gid);
      break;
    case FilterValue::Cpu:
      program.call(BPF_FUNC_get_smp_processor_id);
      break;
    case FilterValue::Cgroup:
      program.call(BPF_FUNC_get_current_cgroup_id);
      break;
    case FilterValue::CgroupAbove:
      program.set(1, step.at);
      program.call(BPF_FUNC_get_current_ancestor_cgroup_id);
      break;
    case FilterValue::Name:
      program.clear_stack(frame.scratch, kCommBytes);
      program.set_stack_address(1, frame.scratch);
      program.set(2, kCommBytes);
      program.call(BPF_FUNC_get_current_comm);
      program.load(BPF_DW, 0, 10, static_cast<std::int16_t>(frame.scratch + 8 * (step.at & 1)));
      break;
    case FilterValue::Member:
      load_member(program, step, frame.payload);
      break;
    case FilterValue::None:
      program.set(0, 0);
      break;
  }
  if (step.value == FilterValue::Thread || step.value == FilterValue::User)
    return program.move32(kValueRegister, 0);
  program.move(kValueRegister, 0);
  if (step.value == FilterValue::Process || step.value == FilterValue::Group)
    program.shift_right(kValueRegister, 32);
}

constexpr int kJumps[] = {BPF_JEQ, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE};  // by FilterTest

// A jump whose target is not assembled yet.
struct Pending {
  std::size_t jump = 0;
  std::uint8_t to = 0;
};

Assembler assemble(std::span<const FilterStep> steps, int next) {
  Assembler program;
  program.move(kContextRegister, 1);
  return_unless(program, steps, {});
  if (next >= 0) program.tail_call(kContextRegister, next);
  program.exit_with(1);
  return program;
}

}  // namespace

bool has_members(std::span<const FilterStep> steps) {
  return std::ranges::any_of(steps, [](const FilterStep& step) { return step.value == FilterValue::Member; });
}

void return_unless(Assembler& program, std::span<const FilterStep> steps, ConditionFrame frame) {
  if (steps.empty()) return;
  std::vector<Pending> pending;
  std::vector<std::size_t> begins;
  for (const FilterStep& step : steps) {
    begins.push_back(program.here());
    load_value(program, step, frame);
    if (step.mask != ~std::uint64_t{0}) {
      program.set_wide(2, step.mask);
      program.and_register(kValueRegister, 2);
    }
    program.set_wide(2, step.than);
    pending.push_back({program.jump_if(kJumps[static_cast<int>(step.test)], kValueRegister, 2), step.yes});
    pending.push_back({program.jump(), step.no});
  }
  const std::size_t rejected = program.here();
  program.exit_with(frame.result);
  const std::size_t passed = program.here();
  for (const Pending& each : pending) {
    const bool is_step = each.to < begins.size();
    program.set_target(each.jump, is_step ? begins[each.to] : each.to == kFilterPasses ? passed : rejected);
  }
}

Result<format::Fd> program_array_with(int program) {
  format::Fd table(
      bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "tacho_next", sizeof(int), sizeof(int), 1, nullptr));
  const int first = 0;
  if (table && bpf_map_update_elem(table.get(), &first, &program, BPF_ANY) == 0) return table;
  return system_error("a program array with one BPF program", errno);
}

Result<EventFilter> EventFilter::load(std::span<const FilterStep> steps, Hook hook, int next) {
  if (auto may = check_may_load(); !may) return std::move(may.error());
  const LibbpfLog quiet;
  EventFilter filter;
  if (next >= 0)
    if (auto made = store(filter.next_, program_array_with(next)); !made) return std::move(made.error());
  const Assembler program = assemble(steps, filter.next_.get());
  const auto type = hook == Hook::Overflow ? BPF_PROG_TYPE_PERF_EVENT : BPF_PROG_TYPE_KPROBE;
  auto loaded = store(filter.program_, load_program(type, "tacho_filter", program.instructions(),
                                                    "the kernel refused the program of the condition"));
  return loaded ? Result<EventFilter>(std::move(filter)) : std::move(loaded.error());
}

Result<> EventFilter::attach(int event_fd) const {
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_.get()) == 0) return Done{};
  if (errno == EEXIST || errno == EBUSY) return Error{"the event already runs another BPF program", errno};
  return system_error("the condition cannot be attached to the event", errno);
}

}  // namespace tacho::bpf
