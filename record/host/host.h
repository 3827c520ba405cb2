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

// Capabilities of the recorder. Opening what it records needs many, the recording few or none: the rest is
// dropped, so that a bug or a hostile file can do as little as possible while it runs for days.

// Capabilities as bits, bit N for capability N.
using Capabilities = std::uint64_t;

// Work that remains once everything is open.
struct LaterWork {
  bool tells_again = false;      // other files or snapshots, which describe the host and its processes again
  bool asks_programs = false;    // BPF programs that came to a watched tracepoint meanwhile
  bool has_objects = false;      // BPF objects, whose counts are read at the end
  bool signals_command = false;  // which may have become another user's
  bool packs = false;            // a program started at the end reads other users' files
  bool takes_in_cpus = false;    // that come online: their events are opened then
  bool maps_rings = false;       // maps rings later: beyond a user's limit of locked memory
  bool holds_files = false;      // of all processes, to be read when the recording is over
  bool reads_binaries = false;   // of all processes, for their unwind tables, which go into BPF maps
};

// The capabilities that this needs.
Capabilities rights_for(const LaterWork& work);
// "cap_kill, cap_bpf"; "none".
std::string names_of(Capabilities rights);

// Drops whatever rights_for(work) does not hold, for good: the calling thread and the ones it starts later
// have no more, and no program they may start gets any. `folder`: where files will be made or renamed
// later, which root may not own; empty: nowhere. Returns the remaining set.
Result<Capabilities> drop_rights(const LaterWork& work, const std::string& folder);

// Facts about this host that decide which events can be opened, and the environment that a capture's header
// holds.

std::string_view version();  // of tacho, "0.1.0"

struct Host {
  std::vector<int> online_cpus;       // ascending
  std::vector<int> offline_cpus;      // there, but not online; ascending
  std::size_t page_size = 4096;       // bytes
  std::uint64_t max_sample_rate = 0;  // Hz, kernel.perf_event_max_sample_rate; 0: not known
  int perf_event_paranoid = 2;        // kernel.perf_event_paranoid
};

Result<Host> read_host();

// The contents of a header, but events and build ids. What the host does not provide stays out.
format::Environment describe_host(const std::vector<std::string>& command_line);

// Raises the soft limit of descriptors to the hard one: each event takes one for each CPU.
void raise_descriptor_limit();

// Where execvp() will find a command; nothing when it will not.
std::optional<std::string> path_of_program(const std::string& command);

}  // namespace tacho::record
