// Facts about this host and the recorder's rights, which decide which events can be opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/container/environment.h"

namespace tacho::record {

// The recorder's capabilities. Opening events needs many, recording few or none: the others are dropped, so
// that a bug or a hostile file can do little harm while it runs for days.

// Capabilities as bits, bit N for capability N.
using Capabilities = std::uint64_t;

// What is done after all events are open; it decides which capabilities are kept.
struct LaterWork {
  bool describes_again = false;  // describes the host and its processes for further files or snapshots
  bool lists_programs = false;   // lists BPF programs that were attached to a watched tracepoint meanwhile
  bool has_objects = false;      // reads counts of BPF objects at the end
  bool signals_command = false;  // sends signals to the command, which may run as another user by then
  bool packs = false;            // starts tacho-report, which reads other users' files, at the end
  bool reopens_cpus = false;     // opens events of CPUs that come online
  bool maps_rings = false;       // maps rings later, beyond a user's limit of locked memory
  bool holds_files = false;      // reads files of all processes after the recording
  bool reads_kernel_stacks = false;  // /proc/PID/stack
  bool reads_binaries = false;  // reads binaries of all processes for unwind tables, which go into BPF maps
};

// The capabilities for this work.
Capabilities rights_for(const LaterWork& work);
// "cap_kill, cap_bpf"; "none".
std::string names_of(Capabilities rights);

// Drops all capabilities except rights_for(work), permanently: for the calling thread, its later threads and
// the programs that these run. `folder`: where files will be created or renamed later; another user may own
// it. Empty: none. Returns the remaining set.
Result<Capabilities> drop_rights(const LaterWork& work, const std::string& folder);

std::string_view version();  // of tacho: that of CMakeLists.txt

// Facts about this host that decide which events can be opened.
struct Host {
  std::vector<int> online_cpus;       // ascending
  std::vector<int> offline_cpus;      // present, but not online; ascending
  std::size_t page_size = 4096;       // bytes
  std::uint64_t max_sample_rate = 0;  // Hz, kernel.perf_event_max_sample_rate; 0: unknown
  int perf_event_paranoid = 2;        // kernel.perf_event_paranoid
};

Result<Host> read_host();

// The environment of a header, without events and build ids. Facts that the host does not provide are left
// out.
format::Environment describe_host(const std::vector<std::string>& command_line);

// CLOCK_MONOTONIC, ns.
std::uint64_t monotonic_now();
std::uint64_t clock_now(int clockid);  // ns by clock_gettime(); 0: the kernel refuses the clock

// Raises the soft limit of file descriptors to the hard limit: each event needs one for each CPU.
void raise_descriptor_limit();

// The path at which execvp() will find a command; nullopt: nowhere.
std::optional<std::string> path_of_program(const std::string& command);

}  // namespace tacho::record
