// State that the steps of a recording share, from preparation to the end.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bpf/attach/follower.h"
#include "bpf/user_object.h"
#include "format/attachment.h"
#include "format/file.h"
#include "format/tracing_data.h"
#include "record/events/target.h"
#include "record/host/host.h"
#include "record/host/running_kernel.h"
#include "record/kernel/argument_probes.h"
#include "record/kernel/dropping_programs.h"
#include "record/objects/conditions.h"
#include "record/plan/plan.h"
#include "record/session/switch_events.h"
#include "record/session/workload.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

class FilePinner;

// Everything that is needed, found to exist, and not yet started.
struct OpenedRecording {
  Host host;
  std::optional<bpf::Follower> follower;  // when the plan follows threads; the objects look into its table
  std::vector<bpf::UserObject> objects;
  // Their programs on the events of the plan, by event, CPU and task.
  std::map<std::tuple<std::size_t, int, int>, format::Fd> program_links;
  std::vector<format::Attachment> attachments;  // what the capture needs to show the objects' samples
  std::vector<std::size_t> limited_here;  // objects whose programs do not ask how many events are wanted
  format::TracingData tracing;
  TargetTasks tasks;
  std::vector<format::Fd> cgroups;  // folders, which the plan's events name
  Plan plan;
  std::optional<Plan> switch_plan;         // of --switch-output-event, but for its sideband
  std::unique_ptr<SwitchEvents> switches;  // the same, open
  std::vector<std::string> environment;    // variables that the workload gets instead of the recorder's
  std::optional<Workload> workload;
  std::vector<DroppingProgram> dropping;  // once the events are open
  ArgumentProbes argument_probes;         // the same
  EventFilters conditions;                // the same; the events keep their programs
  // Read beside all that; null: programs of the objects come first, which make the kernel name code of its
  // own.
  std::unique_ptr<KernelSymbolsAhead> kernel_symbols;
  std::unique_ptr<StackUnwinding> stacks;  // the same; null: no event wants it
  FilePinner* pinner = nullptr;            // of files that packing will want; null: nothing will be packed
  // Of ring buffers of the objects, so far; set once there are some.
  std::function<std::vector<Losses>()> ring_losses;
  std::function<std::vector<std::string>()> summary_troubles;  // what summaries lack, in words; the same
  std::function<bool()> stop;  // whether a signal came; asked wherever the start may take long
};

}  // namespace tacho::record
