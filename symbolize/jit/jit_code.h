// The functions in jitdump files of JIT compilers, added to address spaces as `perf inject --jit` adds them
// to a capture: from its load on, each function is a mapping of a file "jitted-PID-INDEX.so" in the jitdump's
// folder. These files are not written: names come from this class.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/file_access.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::symbolize {

enum class JitClock : std::uint8_t {
  Monotonic,  // the capture's times are jitdump's: perf record -k mono
  Other,
};
// As in perf, jitdumps are used only if all events have that clock.
JitClock clock_of(const format::EventSet& events);

class JitCode {
 public:
  // Offset of the code in perf's files; shown addresses include it.
  static constexpr std::uint64_t kTextOffset = 0x80;

  // `folder`: searched first (--jitdump-dir); empty: only the path in the capture. `access`: to jitdumps; may
  // be null, and must outlive this.
  JitCode(std::string folder, DebugFiles files, FileAccess* access = nullptr)
      : folder_(std::move(folder)), files_(std::move(files)), access_(access) {}

  // Sets the capture, whose attached jitdumps are used before files; must outlive this.
  void use(const format::Features& features) { features_ = &features; }

  // Whether it is the mapping of a jitdump, by which a JIT compiler announces it.
  static bool is_jitdump_marker(const format::MmapRecord& record);
  // Reads the jitdump if the mapping is one. True: the mapping must not be applied to address spaces, since
  // it is a jitdump, or anonymous memory in a process with a jitdump, which would hide the functions.
  bool consumes(const format::MmapRecord& record, JitClock clock);
  // Whether due() has a result for this time; fast, called for every record.
  bool is_due(std::uint64_t time) const { return time >= next_time_; }
  // The next mapping of a time up to `time`. Its name lives as long as this.
  std::optional<format::MmapRecord> due(std::uint64_t time);

  struct Function {
    std::string_view name;  // perhaps mangled
    std::uint64_t size = 0;
    std::vector<JitLine> lines;
    format::Bytes code;                       // empty: not known
    std::optional<format::Bytes> eh_frame;    // nothing: not known; empty: no rules
    std::endian order = std::endian::native;  // of eh_frame

    // Where perf's file has .eh_frame: behind the code.
    std::uint64_t eh_frame_address() const { return (kTextOffset + size + 7) / 8 * 8; }
  };
  // Finds a function by the path of its mapping; null: not of a jitdump.
  const Function* find_function(const std::string& path) const;

  // The jitdumps as attachments, with only the functions that `is_wanted` accepts (by the path of their
  // mapping), without code. A jitdump without functions is included, since it hides anonymous memory of its
  // process.
  struct Reduced {
    std::string path;
    Result<AttachedJitdump> attached;
  };
  std::vector<Reduced> reduced(const std::function<bool(const std::string&)>& is_wanted) const;

  // Reports the jitdumps that could not be read, or not completely.
  void report(format::Diagnostics& diagnostics) const;

 private:
  struct Pending {
    std::uint32_t pid = 0;
    std::uint64_t address = 0, size = 0;
    const std::string* path = nullptr;
  };
  Result<std::vector<std::byte>> read_dump(const std::string& path) const;
  Result<Jitdump> open_dump(const std::string& path, JitClock clock) const;
  void add_dump(std::uint32_t pid, const std::string& folder, const Jitdump& dump);

  std::string folder_;
  DebugFiles files_;
  FileAccess* access_;
  const format::Features* features_ = nullptr;
  struct Opened {
    std::string path;
    Jitdump dump;
  };
  std::deque<Opened> dumps_;
  std::unordered_map<std::string, Function> functions_;  // by path
  std::multimap<std::uint64_t, Pending> pending_;        // by time
  std::uint64_t next_time_ = ~std::uint64_t{0};
  std::unordered_set<std::string> seen_;     // paths of jitdumps
  std::unordered_set<std::uint32_t> known_;  // processes with one
  std::vector<std::string> remarks_;
};

}  // namespace tacho::symbolize
