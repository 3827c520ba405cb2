// The plan: the exact events that will be opened, with the perf_event_attr of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/object/channel.h"
#include "bpf/object/probe_program.h"
#include "bpf/unwinder/stack_walker.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "format/records/perf_abi.h"
#include "record/events/event_request.h"
#include "record/events/recorders.h"

namespace tacho::record {

struct PlannedEvent {
  format::EventAttr attr;
  std::string name{};
  // The event of mappings, names and ends of processes. It has its own rings, so that no mapping is lost
  // because of many samples.
  bool is_sideband = false;
  // Descriptor of the cgroup's folder, owned elsewhere; -1: every thread.
  int cgroup = -1;
  std::string filter{};                 // of a tracepoint, for the kernel; empty: none
  std::string filter_fields{};          // the fields that it may use, for messages
  std::optional<std::size_t> leader{};  // index of its group's leader; a leader has its own
  std::string group_name{};
  std::string probe_target{};  // of a probe: its function or file, to whose text config1 points
  // Opened on every CPU for all threads, whatever the target: samples are filtered in BPF
  // (bpf/attach/follower.h).
  bool system_wide = false;
  bool most_precise = false;  // highest precise_ip that the kernel accepts
  // tacho unwinds its user stacks, up to this many frames (record/stacks); 0: the kernel walks them.
  std::uint16_t unwound_frames = 0;
  bool unwinds_in_program = false;  // the BPF program that fills a ring buffer calls the unwinder itself
  // If unwinding is refused, copies or frame pointers may be used: ehframe is only the default (-g).
  bool may_use_frame_pointers = false;
  std::string unwind_fallback_reason{};  // why one of these is used; empty: the user chose it
  bool copies_stacks = false;            // its stacks are copied, and unwound after the recording
  // --filter of events other than tracepoints: the kernel evaluates it before it takes a sample; empty: no
  // filter.
  bpf::FilterSteps condition = {};
};

// Connects a map of an object to an event: the map's slots get the event's descriptors, or the recorder makes
// samples of the event from a ring buffer.
struct Connection {
  std::size_t object = 0;  // index of the object
  std::string map;
  std::size_t event = 0;  // index of the event
  bpf::ChannelKind kind = bpf::ChannelKind::PerfEventArray;
};

// A program of section "perf_event", which runs on the samples of an event. The kernel accepts one for each
// event.
struct SampleProgram {
  std::size_t object = 0;  // index of the object
  std::string program;
  std::size_t event = 0;  // index of the event
};

// A probe whose samples have arguments: they are samples of a bpf-output event, written by a program at the
// probe, or by the recorder from that program's counts.
struct ArgumentProbe {
  std::size_t event = 0;  // index of the event
  PlannedEvent probe;     // opened once, for all CPUs; evaluates its condition first
  std::vector<bpf::ProbeArgument> arguments;
  std::optional<bpf::ProbeSum> sum = {};
};

struct Plan {
  std::vector<PlannedEvent> events;  // the sideband event is last
  std::vector<Connection> connections;
  // Ring buffers with the events that were unfinished at the end of the recording. Their samples are of
  // another channel's event.
  std::vector<Connection> unfinished;
  std::vector<SampleProgram> sample_programs;
  std::vector<ArgumentProbe> argument_probes;
  std::vector<int> cpus;        // {-1}: each thread on any CPU
  std::vector<int> later_cpus;  // offline now; recorded when they come online
  // Threads to follow, each on every CPU; {-1}: all threads.
  std::vector<int> tasks;
  bool follows_threads = false;  // an event is system-wide, but only threads of the target are recorded
  std::size_t ring_pages = 0, sideband_pages = 0;  // of one CPU
  std::vector<std::string> notes;                  // messages for the user: differences from the options
  std::vector<std::string> warnings;               // the same, if expected events will be missing
};

// Fields of samples after the payload that are one word each. In samples that the recorder makes they are 0,
// unknown, but for the cgroup of ring buffers with headers.
inline constexpr std::uint64_t kFieldsBehindPayload[] = {
    format::abi::kSampleRegsUser, format::abi::kSampleStackUser,   format::abi::kSampleWeight,
    format::abi::kSampleDataSrc,  format::abi::kSampleTransaction, format::abi::kSampleRegsIntr,
    format::abi::kSamplePhysAddr, format::abi::kSampleCgroup};

// Facts of an opened object that the plan needs.
struct ObjectFacts {
  std::string path;
  bool is_recorder() const { return record::is_recorder(path); }
  std::vector<MapBinding> channels;                                  // map and name of the event
  std::vector<std::string> sample_programs;                          // of section "perf_event"
  std::vector<std::pair<std::string, bpf::ChannelKind>> rings = {};  // channels that are ring buffers
  std::vector<std::string> rings_with_stacks = {};   // whose programs put stacks into the payload
  std::vector<std::string> rings_with_cgroups = {};  // whose programs give the cgroup
  bpf::WalkUse walk_use = {};                        // how its programs use the unwinder
  std::vector<std::string> unsupported_output = {};  // messages: output of its programs that is not recorded
  std::vector<std::string> doubts = {};              // messages: declarations without effect
  std::vector<std::pair<std::string, std::string>> unfinished = {};  // map, event
  bool has_data_addresses = false;  // some payload has addresses of the process's data
};

}  // namespace tacho::record
