// The long header sections about the recording host, as perf shows them with -I.
#pragma once

#include <string>

#include "format/container/environment.h"
#include "report/output/printable.h"

namespace tacho::report {

std::string cpu_topology_text(const format::Environment& environment, Names names);
std::string numa_text(const format::Environment& environment, Names names);
std::string cache_text(const format::Environment& environment, Names names);
std::string memory_text(const format::Environment& environment);

}  // namespace tacho::report
