// Probes with arguments: opened in the kernel, with the programs that write their samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bpf/object/probe_program.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/plan/plan.h"

namespace tacho::record {

class ArgumentProbes {
 public:
  // The probes are hit from here on; their output is taken once the events are enabled. Detached with this
  // object. `followed`: of threads in this table (bpf/attach/follower.h), which must outlive it; nothing:
  // of all threads. `walker`: for the events whose stacks are unwound; null: none are.
  static Result<ArgumentProbes> open(const Plan& plan, const KernelEvents& events, const Host& host,
                                     std::optional<int> followed, bpf::StackWalker* walker);

  // Probes that count, by their index in Plan::argument_probes.
  bpf::MapReader counts(std::size_t probe) const { return probes_[probe].program.counts(); }
  std::uint64_t lost(std::size_t probe) const { return probes_[probe].program.lost(); }

  // Events of a CPU that were opened again, as outputs of the probes.
  Result<> put_outputs(const Plan& plan, std::span<const OpenEvent> events) const;

 private:
  struct One {
    std::size_t event = 0;  // that its samples are of
    format::Fd probe;
    bpf::ProbeProgram program;
    format::Fd link;  // with unwound stacks; destroyed first
  };

  std::vector<One> probes_;
};

}  // namespace tacho::record
