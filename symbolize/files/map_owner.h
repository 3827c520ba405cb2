// Whose map of code made at run time a file in /tmp is: its name says a number that many processes have had.
#pragma once

#include <cstdint>
#include <string>

namespace tacho::symbolize {

// Whether the file may be of the process `pid` whose last sample was taken at `last_sample` (ns since the
// start of this host, or of the time of day): it was there by then, or that process still runs and made it
// later, as agents do. Asked on the recording host. True where nothing is known.
bool may_be_of_process(const std::string& path, std::uint32_t pid, std::uint64_t last_sample);

}  // namespace tacho::symbolize
