// The first stages of a recording, each a type that only the stage before makes: prepared, opened. Then it
// runs (record/session/running_recording.h) and is finished (record/session/recording.h).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/attach/follower.h"
#include "bpf/attach/pid_numbers.h"
#include "bpf/loaded_object.h"
#include "bpf/user_object.h"
#include "format/base/file.h"
#include "format/extensions/attachment.h"
#include "format/extensions/tracing_data.h"
#include "record/events/target.h"
#include "record/host/foreign_reader.h"
#include "record/host/host.h"
#include "record/host/running_kernel.h"
#include "record/kernel/argument_probes.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/conditions.h"
#include "record/objects/dropping_programs.h"
#include "record/plan/plan.h"
#include "record/session/control.h"
#include "record/session/workload.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

// Objects (by index) whose events the recorder limits itself, or records of all threads.
struct FilteringOfObjects {
  std::vector<std::size_t> limited_here;  // their programs do not apply --sample-rate and --max-rate
  // They choose threads themselves, since they follow kernel objects from a followed thread into others.
  std::vector<std::size_t> in_all_threads;
};

// What every stage of a recording has.
struct ResolvedRequest {
  Host host;
  std::shared_ptr<ForeignReader> reader;  // of what belongs to recorded processes
  // In a pid namespace, if there are BPF programs that see pids.
  std::optional<bpf::PidNumbers> numbers;
  std::optional<bpf::Follower> follower;  // when the plan follows threads; the objects look into its table
  std::vector<format::Attachment> attachments;  // what the capture needs to show the objects' samples
  FilteringOfObjects filtering;
  format::TracingData tracing;
  TargetTasks tasks;
  std::vector<format::Fd> cgroups;  // their folders; events of the plan have the descriptors
  std::vector<std::string> notes;   // messages about the request
  std::optional<Plan> switch_plan;  // of --switch-output-event, without sideband
  std::optional<Workload> workload;
  std::function<bool()> stop;  // whether a signal came; polled by steps that may take long
};

// The request of the command line. Nothing is open in the kernel yet. Made by prepare_recording().
struct PreparedRecording : ResolvedRequest {
  Plan plan;
  std::vector<bpf::UserObject> objects;
};

// The events are open in the kernel and joined to programs; nothing is sampled yet. Made by open_events(); it
// must not move.
struct OpenedRecording : ResolvedRequest {
  OpenedRecording(ResolvedRequest request, std::vector<bpf::LoadedObject> loaded, UnwoundEvents opened)
      : ResolvedRequest(std::move(request)),
        plan(std::move(opened.plan)),
        objects(std::move(loaded)),
        stacks(std::move(opened.stacks)),
        events(std::move(opened.events)) {}
  OpenedRecording(const OpenedRecording&) = delete;
  OpenedRecording& operator=(const OpenedRecording&) = delete;

  const Plan plan;  // as the kernel accepted it
  std::vector<bpf::LoadedObject> objects;
  // Programs of the objects on the events of the plan, by event, CPU and task.
  std::map<std::tuple<std::size_t, int, int>, format::Fd> program_links;
  std::unique_ptr<SwitchEvents> switches;  // null without --switch-output-event
  std::vector<DroppingProgram> dropping;   // at the start
  ArgumentProbes argument_probes;
  EventFilters conditions;  // the events keep their programs
  // Read while events are opened. Null if there are objects: the kernel adds symbols for their programs, so
  // its symbols are read later.
  std::unique_ptr<KernelSymbolsAhead> kernel_symbols;
  std::unique_ptr<StackUnwinding> stacks;  // null: no event wants it
  KernelEvents events;
};

}  // namespace tacho::record
