// The unwinder, linked into BPF programs of others: what they write has the user's stack in front of it then
// (tacho/event.h, programs/linked_walk.bpf.c).
#pragma once

#include <cstddef>
#include <vector>

#include "bpf/object.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

// What the programs of an object leave to the unwinder.
struct WalkUse {
  bool in_front_of_events = false;  // of each that goes into a perf event array
  bool in_payloads = false;         // stacks that they ask for themselves
};
WalkUse walk_use_of(format::Bytes object);

// An object with the unwinder in it, and the maps that it shares with a StackWalker.
struct LinkedWalk {
  std::vector<std::byte> elf;
  MapsByName maps;
};
// Fails where libbpf cannot link the two. Without maps nothing is linked. `out` is empty then, and on
// failure.
Result<> link_walker(LinkedWalk& out, format::Bytes object, MapsByName maps);

}  // namespace tacho::bpf
