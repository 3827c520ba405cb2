// Values of the kernel's own tracepoints as people write them: tracepoints have numbers where a recorder
// would have an enum.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "report/decode/payload.h"

namespace tacho::report {

// How a field's numbers are written; empty: as they are. `event`: "syscalls:sys_exit_openat"; `architecture`
// of the recording host as uname says it, which decides what system calls are called.
//
//   id, __syscall_nr of system calls    openat
//   ret of their ends                   -ENOENT, else the number
//   prev_state of sched_switch          S, D, R (could go on)
//   dev, s_dev                          259:1
using NumberText = std::function<std::string(std::int64_t)>;
NumberText kernel_number_text(std::string_view event, const PayloadField& field,
                              std::string_view architecture);

// A list of bytes that is an address of the Internet: of 4 or 16 bytes, with "addr" in its name.
bool is_internet_address(const PayloadField& field);
std::string internet_address(const PayloadField& field, Bytes payload, std::endian order);

}  // namespace tacho::report
