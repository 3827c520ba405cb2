// Checks that what this process is about to wait for answers: files on file systems that may be silent (FUSE,
// NFS), and processes in an execve that waits for one. The kernel reads the code of a probed file while it
// holds locks that fork() needs, so a silent file would stop the whole host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/events/target.h"
#include "record/host/foreign_reader.h"
#include "record/host/host.h"

namespace tacho::record {

// Reads the whole file in a child, so that its pages are in memory. Error ETIMEDOUT: it does not answer. A
// file that cannot be read is no error here.
Result<> check_file_answers(ForeignReader& reader, const std::string& path);
// The same for the files that events name: of probes, and binary= and lib= of recorders.
Result<> check_files_answer(ForeignReader& reader, std::span<const EventRequest> events);

// For the first bytes of the program of `command` (empty: none), and with -p and -t for the processes.
Result<> check_target_answers(ForeignReader& reader, std::span<const std::string> command, Watch watch,
                              const TargetTasks& tasks);

}  // namespace tacho::record
