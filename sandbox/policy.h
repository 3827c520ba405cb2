// The seccomp and Landlock policy of a process that parses untrusted files.
#pragma once

#include <cstdint>
#include <span>

#include "format/base/result.h"

namespace tacho::sandbox {

// What the process may do.
enum class Policy : std::uint8_t {
  ReadFiles,    // read files, and nothing else
  WriteOutput,  // also write to what is open for it, at any offset
  MemoryFiles,  // also make files in memory, of what archives hold
  Trials,       // also fork children that try something, under the same policy, and may die
  Servers,      // also ask debuginfod servers, and keep files that they send; with files in memory
};

// Holds for good, for the calling thread and the threads that it starts. System calls that the policy does
// not need fail with ENOSYS (libseccomp); capabilities but CAP_DAC_READ_SEARCH and CAP_SYSLOG are dropped;
// there are no core dumps. Except with Policy::Servers no file or folder can be written, made, renamed or
// removed, no program started, nothing connected to, and no other process signalled; Landlock forbids the
// changes of files once more where the kernel has it (Linux 5.13). Standard error stays open, and `kept`,
// and descriptors that the command line names (/dev/fd/63). Limits: address space half of the machine's
// memory and 4 GB (none under sanitizers, whose shadow takes more), 24 hours of CPU time. An error where the
// kernel has no seccomp filters.
Result<> confine(Policy policy, std::span<const int> kept);

}  // namespace tacho::sandbox
