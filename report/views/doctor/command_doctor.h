// tacho doctor FILE: what a capture shows and lacks on another machine.
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

// What a capture can tell on a machine that has nothing of the host where it was recorded, and what it would
// give away there.

// Frames without a name, of one module for one reason.
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
  std::string what;   // counted in
  std::string state;  // what tacho redact made of it; empty: nothing
};

struct CaptureFacts {
  std::uint64_t samples = 0;
  NamedFrames names;
  std::vector<LackingModule> lacking;  // most frames first
  std::uint64_t unsure_frames = 0;     // of modules whose build id is not known
  std::uint64_t lost = 0, throttled = 0;
  std::uint64_t cut_chains = 0;     // call chains with as many frames as the kernel takes down
  std::uint64_t copied_stacks = 0;  // that have to be unwound, which takes the files of the host
  std::uint64_t cut_copies = 0;     // of these, as large as the room for them
  std::uint64_t file_copies = 0;    // programs and libraries that travel in the capture
  std::uint64_t source_files = 0;   // likewise
  std::string clock;                // what times count
  bool has_wall_clock = false;      // times can be told as times of day
  std::uint64_t cgroups = 0, namespaces = 0, deleted_modules = 0;
  std::vector<SensitiveClass> sensitive;  // without those that the capture has nothing of
};

// Reads the whole capture. The session's symfs is symbolize::kNoFiles: names come from the capture alone.
CaptureFacts examine(Session& session);

Result<cli::ExitStatus> run_doctor(const std::vector<std::string>& arguments);

}  // namespace tacho::report
