// A BPF program on a perf event, with a number that it can ask for.
#pragma once

#include <cstdint>

#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// The program runs until this is closed, or the event is. `number`: what bpf_get_attach_cookie() says there.
// Linux 5.15.
Result<format::Fd> link_to_event(int program, int event_fd, std::uint64_t number = 0);

}  // namespace tacho::bpf
