// tacho doctor FILE: reports what a capture lacks on another machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/query/capture_gaps.h"
#include "report/samples/session.h"

namespace tacho::report {

// Frames without a name in one module, for one reason.
struct LackingModule {
  std::string path;      // empty: nothing was mapped there
  std::string build_id;  // hexadecimal; empty: none is known
  std::string reason;
  std::uint64_t frames = 0;     // of all samples
  std::uint64_t addresses = 0;  // distinct
};

struct SensitiveClass {
  std::string_view name;  // as tacho redact calls it
  std::uint64_t count = 0;
  std::string what;   // the unit of `count`
  std::string state;  // what tacho redact did with it; empty: nothing
};

// What a capture shows on a machine without the files of the recording host, and its private content.
struct CaptureFacts {
  std::uint64_t samples = 0;
  NamedFrames names;
  std::vector<LackingModule> lacking;  // most frames first
  std::uint64_t unsure_frames = 0;     // frames in modules without a build id
  std::uint64_t lost = 0, throttled = 0;
  std::uint64_t cut_chains = 0;     // call chains with the kernel's maximum number of frames
  std::uint64_t copied_stacks = 0;  // copied stacks, whose unwinding needs the files of the host
  std::uint64_t cut_copies = 0;     // copied stacks that fill their space
  std::uint64_t file_copies = 0;    // copies of programs and libraries in the capture
  std::uint64_t source_files = 0;   // copies of source files in the capture
  std::string clock;                // the recording clock
  bool has_wall_clock = false;      // times can be converted to times of day
  std::uint64_t cgroups = 0, namespaces = 0, deleted_modules = 0;
  std::vector<SensitiveClass> sensitive;  // the classes of which the capture has any content
};

// Reads the whole capture. The session's symfs is symbolize::kNoFiles: names come from the capture alone.
CaptureFacts examine(Session& session);

}  // namespace tacho::report
