// What a program on a classic tracepoint may return. The kernel joins the results of all programs on a
// tracepoint with AND, and where the lowest bit of that is 0 it drops the hit for every perf event on the
// tracepoint, whoever opened it, and counts no loss. So such a program has to return 1.
#pragma once

#include "format/cursor.h"

namespace tacho::bpf {

// Whether some way through the program may end with an even number, as far as its instructions alone tell
// (8 bytes each, of this machine's byte order, from the program's first one on): true where it cannot be
// told.
bool may_drop_events(format::Bytes instructions);

}  // namespace tacho::bpf
