// The arguments of a program's functions, as its debugging information names them. It is read by tacho-report
// in a process that may do nothing else: libdw is too large a reader for a recorder that runs as root.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/probe_program.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/events/probe_arguments.h"

namespace tacho::record {

struct UserFunction {
  std::string path;          // of the file
  std::uint64_t offset = 0;  // of its first instruction, in the file
  std::string symbol;        // the linker's name
};

// Those of `requests` that have a name, in their order. The error's code is ENOENT where there is no
// tacho-report to be asked.
Result<std::vector<NamedArgument>> user_arguments(const UserFunction& function,
                                                  std::span<const ArgumentRequest> requests,
                                                  const std::function<bool()>& stop);

// What tacho-report says of them (report/views/parameters), one line for each of `names`.
Result<std::vector<NamedArgument>> parse_user_arguments(std::string_view lines,
                                                        std::span<const std::string> names);

}  // namespace tacho::record
