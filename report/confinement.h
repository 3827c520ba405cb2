// What a process gives up before it reads files that a capture names: whoever made these may know a fault of
// a parser.
#pragma once

#include <cstdint>
#include <span>

#include "format/base/result.h"

namespace tacho::report {

enum class Reach : std::uint8_t {
  Files,       // reads them, and nothing else
  AndOutput,   // and writes to what is open for it, at any place there
  AndMemory,   // and makes files in memory, of what archives hold
  AndTrials,   // and has children that try something, in the same confinement, and may die
  AndServers,  // and asks servers besides, and keeps what they answer (--debuginfod); with files in memory
};

// For good, for the calling thread and those that it starts: system calls that reading does not take answer
// as on a kernel without them (libseccomp), capabilities that reading does not take are gone, and so are core
// dumps. But with Reach::AndServers no file or folder can be written, made, renamed or removed, no program
// started, nothing connected to and no signal sent to another process; landlock holds the files once more
// where the kernel has it (Linux 5.13). Of the descriptors standard error and `kept` stay open, and those
// that the command line names (/dev/fd/63). Memory is half of the machine's and 4 GB at most, but under
// sanitizers, whose shadow takes more; time on processors a day. An error where the kernel has no seccomp
// filters.
Result<> confine(Reach reach, std::span<const int> kept);

}  // namespace tacho::report
