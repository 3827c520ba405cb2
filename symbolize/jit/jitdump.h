// Parser of jitdump files ("jit-PID.dump"), in which a JIT compiler logs the code it makes. Format:
// tools/perf/Documentation/jitdump-specification.txt of Linux.
//
//   header: magic, version, size, machine, pad, pid (u32 each), time, flags (u64)
//   records: id, size (u32), time (u64), then by id
//     0 code loaded    pid, tid (u32), vma, address, size, index (u64), name, NUL, code
//     1 code moved     pid, tid (u32), vma, old address, new address, size, index (u64)
//     2 source lines   address, count (u64), each: address (u64), line, discriminator (u32), file, NUL
//     3 closed
//     4 unwinding      size, size of .eh_frame_hdr, mapped size (u64), then .eh_frame and .eh_frame_hdr
//
// Lines and unwinding information come before their code. The file name "\377" means: that of the previous
// line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/attachment.h"

namespace tacho::symbolize {

struct JitLine {
  std::uint64_t offset = 0;  // bytes from the start of the code
  std::uint32_t line = 0;
  std::string_view file;
};

// The load or the move of a function.
struct JitEvent {
  std::uint64_t time = 0;     // ns, or processor ticks
  std::uint64_t address = 0;  // the new address
  std::uint64_t size = 0;     // bytes
  std::uint64_t index = 0;    // number of the function in its process
  bool is_move = false;
  std::string_view name;       // of a load
  std::vector<JitLine> lines;  // ascending
  format::Bytes code;          // of a load; empty: not in the file
  // Unwinding information of a load. Empty: the compiler (V8) wrote a record without rules, so frame pointers
  // are followed. Nothing: the file has none.
  std::optional<format::Bytes> eh_frame = {};
};

class Jitdump {
 public:
  // Names and files point into `bytes`, which the result keeps. The last record may be truncated, since the
  // file grows while its process runs; it is ignored.
  static Result<Jitdump> parse(std::vector<std::byte> bytes);

  std::uint32_t pid() const { return pid_; }
  std::endian order() const { return order_; }         // of unwinding information
  bool counts_ticks() const { return counts_ticks_; }  // times are the processor's, not CLOCK_MONOTONIC
  const std::vector<JitEvent>& events() const { return events_; }  // in the file's order
  bool is_cut_short() const { return is_cut_short_; }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t pid_ = 0;
  std::endian order_ = std::endian::native;
  bool counts_ticks_ = false, is_cut_short_ = false;
  std::vector<JitEvent> events_;
};

// Makes a jitdump of these functions without their code, but with their unwinding information, to be attached
// to a capture. `events`: in the order of their file `path`. If it exceeds the limit of readers, lines are
// left out, and then the last functions.
struct AttachedJitdump {
  format::Attachment attachment;
  bool lacks_lines = false;  // lines were left out
  std::size_t left_out = 0;  // number of events that were left out
};
Result<AttachedJitdump> attach_jitdump(const std::string& path, std::uint32_t pid,
                                       const std::vector<const JitEvent*>& events);

// The line at `offset`: of the last entry at or before it. Null before the first.
const JitLine* line_at(const std::vector<JitLine>& lines, std::uint64_t offset);

}  // namespace tacho::symbolize
