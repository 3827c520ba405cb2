// The seccomp and Landlock policy of a process that parses untrusted files.
#pragma once

#include <cstdint>
#include <span>

#include "format/base/result.h"

namespace tacho::sandbox {

// What the process may do.
enum class Policy : std::uint8_t {
  ReadFiles,    // read files, and nothing else
  WriteOutput,  // also write to open files, at any offset
  MemoryFiles,  // also create files in memory (memfd_create) for members of archives
  Trials,       // also fork children, under the same policy, for work that may crash
  Servers,      // also connect to debuginfod servers and store files that they send; includes MemoryFiles
};

// Whether the process may read the addresses of kernel symbols (/proc/kallsyms), which CAP_SYSLOG gives.
enum class KernelSymbols : std::uint8_t { Hidden, Shown };

// Confines the calling thread, and threads that it starts later, for good:
// - System calls that the policy does not need fail with ENOSYS (libseccomp). Except with
//   Policy::Servers, the process cannot write, create, rename or remove files, start programs, connect,
//   or signal other processes. Landlock (Linux 5.13) forbids changes of files a second time. A call of
//   another architecture (x32, 32-bit) kills the process.
// - All capabilities but CAP_DAC_READ_SEARCH, and CAP_SYSLOG for KernelSymbols::Shown, are dropped.
// - All descriptors are closed but standard error, `kept`, and those named on the command line (/dev/fd/63).
// - Limits: an address space of half of the machine's memory plus 4 GB (none under sanitizers, whose shadow
//   memory takes more), 24 hours of CPU time, no core dumps.
//
// An error: the kernel has no seccomp filters.
Result<> confine(Policy policy, KernelSymbols symbols, std::span<const int> kept);

}  // namespace tacho::sandbox
