// Probes with arguments: opened in the kernel, with the programs that write their samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bpf/object/probe_program.h"
#include "bpf/rings/map_reader.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/plan/plan.h"

namespace tacho::record {

class ArgumentProbes {
 public:
  // Opens the probes; their samples are recorded once the events are enabled. The destructor detaches them.
  // `followed`: a table of threads to record (bpf/attach/follower.h), which must outlive this; nothing: all
  // threads. `walker`: for events with unwound stacks; null: there are none.
  static Result<ArgumentProbes> open(const Plan& plan, const KernelEvents& events, const Host& host,
                                     std::optional<int> followed, bpf::StackWalker* walker);

  // Probes that count, by their index in Plan::argument_probes.
  bpf::MapReader counts(std::size_t probe) const { return probes_[probe].program.counts(); }
  std::uint64_t lost(std::size_t probe) const { return probes_[probe].program.lost(); }

  // Sets the reopened events of a CPU as outputs of the probes.
  Result<> put_outputs(const Plan& plan, std::span<const OpenEvent> events) const;

 private:
  struct One {
    std::size_t event = 0;  // index of the event of its samples
    format::Fd probe;
    bpf::ProbeProgram program;
    format::Fd link;  // with unwound stacks; destroyed first
  };

  std::vector<One> probes_;
};

}  // namespace tacho::record
