// The plan: the exact events that will be opened, with the perf_event_attr of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/object/channel.h"
#include "bpf/user_object.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "format/records/perf_abi.h"
#include "record/events/event_request.h"
#include "record/events/event_spec.h"
#include "record/events/sample_fields.h"
#include "record/host/host.h"
#include "record/options/options.h"
#include "record/options/sampling_options.h"

namespace tacho::record {

// perf_event_attr of one event, from its -e, the options and the host; and how its user stacks are unwound.
// Pure.

// Stack options from the terms of the event, or else from the options.
StackOptions stacks_of(const EventRequest& request, const SamplingOptions& options);

// What every event of a capture has, so that the record loop and every reader find id and time at one place.
format::EventAttr common_attr(const SamplingOptions& options);

// The target, as far as it decides how an event is opened.
struct Following {
  bool children = true;  // of the watched threads, if the event or the next line says so
  bool inherits = true;  // what events do that do not say it
  bool at_exec = false;  // taking begins with the exec of the command
};

// Messages for the user where less was possible than requested go into `notes`, each once.
Result<format::EventAttr> sampling_attr(const EventRequest& request, const SamplingOptions& options,
                                        const Host& host, Following following,
                                        std::vector<std::string>& notes);

// Of the event that carries mappings, names and ends of processes.
format::EventAttr sideband_attr(const SamplingOptions& options, Following following);

// Has the kernel copy the user's registers and so many bytes of the stack, in place of the user's part of
// the call chain: the fields that perf asks for, so that its unwinder and tacho's have what they need.
void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes);

// Which events' stacks are walked in the kernel by unwind information (--call-graph ehframe, and -g where it
// can be).

struct UnwindingChoice {
  std::uint16_t frames = 0;             // of a walk, at most; 0: the stacks are not unwound
  bool may_use_frame_pointers = false;  // when the kernel refuses: it was not asked for by name
  std::string refusal;                  // why frame pointers are taken instead; empty: they are not
};

// `attr`: of the event, as it will be opened. An error: it was asked for by name, and is not possible.
Result<UnwindingChoice> unwinding_of(const EventRequest& request, const format::EventAttr& attr,
                                     const StackOptions& stacks, bool per_thread);

// The plan: the exact events that will be opened, from options, requests and facts of the host.

struct PlannedEvent {
  format::EventAttr attr;
  std::string name{};
  // Carries the mappings, names and ends of processes; has rings of its own, so that no flood of samples can
  // cost a mapping.
  bool is_sideband = false;
  // Descriptor of the cgroup's folder, owned elsewhere; -1: every thread.
  int cgroup = -1;
  std::string filter{};                 // of a tracepoint, as the kernel understands it; empty: none
  std::string filter_fields{};          // what that may ask for, in words
  std::optional<std::size_t> leader{};  // index of the event that leads its group; its own for the leader
  std::string group_name{};
  std::string probe_target{};  // of a probe: what the kernel is to find, whose address goes into config1
  // Opened on every CPU for all threads, whatever the target: its samples are filtered elsewhere
  // (bpf/attach/follower.h).
  bool system_wide = false;
  bool most_precise = false;  // as exact as the machine can: less is taken when it refuses
  // The user's side of its stacks, of so many frames at most, is walked by us and not by the kernel
  // (record/stacks); 0: it is not.
  std::uint16_t unwound_frames = 0;
  bool unwinds_in_program = false;  // by the program that fills a ring buffer; the kernel's event is as it is
  bool may_use_frame_pointers = false;   // or copies, when that cannot be: it was not asked for by name
  std::string unwind_fallback_reason{};  // why one of these was taken instead; empty: it was asked for
  bool copies_stacks = false;            // because of that: to be unwound when the recording ends
  // Of --filter, for events other than tracepoints: the kernel checks it before it takes a sample; empty:
  // nothing.
  bpf::FilterSteps condition = {};
};

// What is used for user stacks that cannot be unwound in the kernel (`unwind_fallback_reason`): copies,
// which are as complete, where ehframe was not asked for by name (-g) and the kernel can copy; else frame
// pointers. One of `notes` says it. The event is not open yet.
enum class Fallback : std::uint8_t { Copies, FramePointers };
Fallback do_without_unwinding(PlannedEvent& event, std::vector<std::string>& notes);

// A map of an object whose slots get the descriptors of an event; or a ring buffer, of which the recorder
// makes samples of the event.
struct Connection {
  std::size_t object = 0;  // index of the object
  std::string map;
  std::size_t event = 0;  // index of the event
  bpf::ChannelKind kind = bpf::ChannelKind::PerfEventArray;
};

// A program of section "perf_event", which runs on the samples of an event; the kernel takes one program for
// each event.
struct SampleProgram {
  std::size_t object = 0;  // index of the object
  std::string program;
  std::size_t event = 0;  // index of the event
};

// A probe whose samples hold arguments: samples of a bpf-output event, written by a program at the probe,
// or by the recorder from what that counted.
struct ArgumentProbe {
  std::size_t event = 0;  // index of the event
  PlannedEvent probe;     // opened once, for all CPUs; its condition is asked first
  std::vector<bpf::ProbeArgument> arguments;
  std::optional<bpf::ProbeSum> sum = {};
};

struct Plan {
  std::vector<PlannedEvent> events;  // the sideband event is last
  std::vector<Connection> connections;
  // Ring buffers whose samples are of an event that has another channel: what was open at the end.
  std::vector<Connection> unfinished;
  std::vector<SampleProgram> sample_programs;
  std::vector<ArgumentProbe> argument_probes;
  std::vector<int> cpus;        // {-1}: each thread wherever it runs
  std::vector<int> later_cpus;  // offline now, and to be recorded when they come
  // Threads to follow, each on every CPU; {-1}: every thread. Empty: the command, once it exists.
  std::vector<int> tasks;
  bool follows_threads = false;  // some event takes every thread, and only the target's threads are wanted
  std::size_t ring_pages = 0, sideband_pages = 0;  // of one CPU
  std::vector<std::string> notes;                  // for the user: what differs from what was asked for
  std::vector<std::string> warnings;               // the same, where events that were hoped for will not come
};

// Fields of samples that stand behind the payload, and are one word where the recorder makes the sample: 0,
// nothing is known.
inline constexpr std::uint64_t kFieldsBehindPayload[] = {
    format::abi::kSampleRegsUser, format::abi::kSampleStackUser,   format::abi::kSampleWeight,
    format::abi::kSampleDataSrc,  format::abi::kSampleTransaction, format::abi::kSampleRegsIntr,
    format::abi::kSamplePhysAddr, format::abi::kSampleCgroup};

// Facts of an opened object that the plan needs.
struct ObjectFacts {
  std::string path;
  std::vector<MapBinding> channels;          // map, and what the object calls its event
  std::vector<std::string> sample_programs;  // of section "perf_event"
  std::vector<std::pair<std::string, bpf::ChannelKind>> rings = {};  // channels that are ring buffers
  std::vector<std::string> rings_with_stacks = {};   // that their programs put into the payload
  bpf::WalkUse walk_use = {};                        // what its programs leave to the unwinder
  std::vector<std::string> unsupported_output = {};  // output of its programs that is not recorded, in words
  std::vector<std::string> doubts = {};              // what its declarations say in vain, in words
  std::vector<std::pair<std::string, std::string>> unfinished = {};  // map, event
};

// `requests`: with tracepoints found; the n-th request of kind BpfObject is `objects[n]`. `threads`: of the
// target, when it names processes or threads.
Result<Plan> make_plan(const RecordOptions& options, std::span<const EventRequest> requests,
                       std::span<const ObjectFacts> objects, std::span<const int> threads, const Host& host);

// Which event takes only what runs in which cgroup (-G, --for-each-cgroup).

// `cgroups`: the folders in the order they were named, an empty Fd for all cgroups. One goes for all
// events, several are one for each event in the order of the events, as perf has it. The sideband stays
// system-wide: a process may enter the cgroup long after it mapped its files.
Result<> assign_cgroups(Plan& plan, std::span<const format::Fd> cgroups);

// All events once for each cgroup, in the order of the cgroups (--for-each-cgroup, --container). An event of
// a BPF object, which has one descriptor for each CPU in its map, cannot be there twice.
Result<> repeat_in_cgroups(Plan& plan, std::span<const format::Fd> cgroups);

// Ring buffers and summaries of BPF objects know less than the kernel's own events: which options they cannot
// follow.

// A use error when that map cannot do what `options` ask for. `object`: its path, or the name of a recorder
// that tacho carries.
Result<> check_channel(const std::string& object, const std::string& map, bpf::ChannelKind kind,
                       const RecordOptions& options);

}  // namespace tacho::record
