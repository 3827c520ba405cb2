// Facts about this host that decide which events can be opened, and the environment that a capture's header
// holds.
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
