// The functions that JIT compilers wrote to jitdump files, put into the address spaces as `perf inject --jit`
// would put them into the capture: each is a mapping of its own, of a file "jitted-PID-INDEX.so" beside the
// jitdump, from the moment it was loaded. No such file is made: the names come from here.
#pragma once

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
#include "format/records/record.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/file_access.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::symbolize {

enum class JitClock : std::uint8_t {
  Monotonic,  // the capture's times are jitdump's: perf record -k mono
  Other,
};

class JitCode {
 public:
  // Where perf's files have the code, in bytes: shown addresses count from there.
  static constexpr std::uint64_t kTextOffset = 0x80;

  // `folder`: where to look for jitdumps first (--jitdump-dir); empty: where the capture says.
  // `access`: of these; may be null, and must outlive this.
  JitCode(std::string folder, DebugFiles files, FileAccess* access = nullptr)
      : folder_(std::move(folder)), files_(std::move(files)), access_(access) {}

  // A capture that may have jitdumps of its own, which come before files; must outlive this.
  void use(const format::Features& features) { features_ = &features; }

  // Whether it is the mapping of a jitdump, by which its maker says that there is one.
  static bool is_mark(const format::MmapRecord& record);
  // A mapping came up. The one of a jitdump makes it be read. True when the mapping must not be applied: it
  // is such a mark, or memory without a file in a process whose functions are known, which would hide them.
  bool takes(const format::MmapRecord& record, JitClock clock);
  // Whether due() has something for this time: asked for every record.
  bool is_due(std::uint64_t time) const { return time >= next_time_; }
  // The next mapping that stands at `time` or before. Its name lives as long as this.
  std::optional<format::MmapRecord> due(std::uint64_t time);

  struct Function {
    std::string_view name;  // mangled, where its maker mangles
    std::uint64_t size = 0;
    std::vector<JitLine> lines;
    format::Bytes code;  // empty: not known
  };
  // By the name of the file that it is said to be in; null: no jitdump's.
  const Function* find(const std::string& path) const;

  // The jitdumps that were read, without the functions that `is_wanted` refuses (by the name of the file that
  // they are said to be in), and without code, as attachments. One without functions still says that its
  // process has one, which hides memory without a file.
  struct Reduced {
    std::string path;
    Result<AttachedJitdump> attached;
  };
  std::vector<Reduced> reduced(const std::function<bool(const std::string&)>& is_wanted) const;

  // One line for each jitdump that could not be used, or not to its end.
  void report(format::Diagnostics& diagnostics) const;

 private:
  struct Pending {
    std::uint32_t pid = 0;
    std::uint64_t address = 0, size = 0;
    const std::string* path = nullptr;
  };
  Result<std::vector<std::byte>> read(const std::string& path) const;
  Result<Jitdump> open(const std::string& path, JitClock clock) const;
  void add(std::uint32_t pid, const std::string& folder, const Jitdump& dump);

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
