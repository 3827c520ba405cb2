// What a recorder may do. It needs many rights to open what it records, and few or none after that: the rest
// is given back, so that a fault of ours, or a hostile file, can do as little as possible while it runs for
// days.
#pragma once

#include <cstdint>
#include <string>

#include "format/result.h"

namespace tacho::record {

// Capabilities as bits, bit N for capability N.
using Capabilities = std::uint64_t;

// What is still to be done once everything is open.
struct LaterWork {
  bool tells_again = false;  // other files or snapshots, which tell anew what the host and its processes are
  bool asks_programs = false;    // BPF programs that came to a watched tracepoint meanwhile
  bool has_objects = false;      // BPF objects of ours, whose counts are read at the end
  bool signals_command = false;  // which may have become another user's
  bool packs = false;            // a program started at the end reads files of everybody
  bool takes_in_cpus = false;    // that come on line: their events are opened then
  bool maps_rings = false;       // the same, of those that have none yet: beyond what a user may lock
  bool holds_files = false;      // of all processes, to be read when the recording is over
  bool reads_binaries = false;   // of all processes, for their unwind tables, which go into BPF maps
};

// The capabilities that this needs.
Capabilities rights_for(const LaterWork& work);
// "cap_kill, cap_bpf"; "none".
std::string names_of(Capabilities rights);

// Gives back whatever rights_for(work) does not hold, for good: the calling thread and those it starts later
// have no more, and no program they may start gets any. `folder`: where files will be made or renamed later,
// of which root may not be the owner; empty: nowhere. Returns what is left.
Result<Capabilities> drop_rights(const LaterWork& work, const std::string& folder);

}  // namespace tacho::record
