// Unwind tables of mapped files, where the BPF program that walks stacks finds them. They are built on a
// thread of their own, once for each file whoever maps it, and kept within a budget of memory: what no stack
// led through for longest goes first, and is built again when one does.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bpf/stack_walker.h"
#include "format/build_id.h"
#include "format/result.h"
#include "record/stacks/number_runs.h"
#include "unwind/row_table.h"

namespace tacho::record {

// A mapped file: what it is, and where to find it.
struct MappedFile {
  format::BuildId build_id;
  std::uint32_t major = 0, minor = 0;  // with the inode: when the kernel told no build id
  std::uint64_t inode = 0;
  std::string name;           // as the kernel calls it
  std::uint32_t process = 0;  // one that has it mapped, there:
  std::uint64_t start = 0, end = 0;
};

struct TableFacts {
  std::size_t files = 0;  // of which tables were asked for
  std::size_t bare =
      0;  // of them, files without a table: not readable, not ELF, or not describing themselves
  std::size_t evicted = 0;                // tables that made room for others
  std::uint64_t bytes = 0, budget = 0;    // of tables: now, and at most
  std::chrono::microseconds building{0};  // CPU time, all together
};

class UnwindTables {
 public:
  // Code that is no file, or has no table: found by frame pointers. As a module's number.
  static constexpr std::uint32_t kBare = 0;

  // `budget`: bytes. The walker must outlive the tables.
  UnwindTables(bpf::StackWalker& walker, std::uint64_t budget);
  UnwindTables(const UnwindTables&) = delete;
  UnwindTables& operator=(const UnwindTables&) = delete;
  ~UnwindTables();

  Result<> start();
  // The number of a file's module, whose table will be there soon.
  std::uint32_t module_of(const MappedFile& file);
  // Waits until all tables asked for are there; false when it took longer.
  bool wait(std::chrono::milliseconds patience);
  TableFacts facts();

 private:
  struct Module {
    MappedFile file;
    std::uint32_t first_block = 0, blocks = 0;  // 0 blocks: it has no table now
    bool is_unopened = false;                   // through no process that mapped it so far
  };

  void run();
  void build(std::uint32_t number, const MappedFile& file);
  bool publish(std::uint32_t number, const unwind::RowTable& table);
  std::optional<std::uint32_t> room_for(std::uint32_t blocks);
  bool grow();
  bool evict_one();
  void ask_for_evicted();
  void set_state(std::uint32_t number, std::uint32_t state);

  bpf::StackWalker& walker_;
  std::span<tacho_unwind_module> published_;
  std::uint32_t most_blocks_;
  // Of the building thread alone:
  NumberRuns blocks_{0};
  std::vector<std::span<tacho_unwind_block>> segments_;
  std::uint32_t now_ = 1;  // goes on each second

  std::mutex mutex_;  // of all that follows
  std::condition_variable has_work_, is_idle_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by what a file is
  std::vector<Module> modules_;
  std::deque<std::uint32_t> wanted_;
  bool is_building_ = false;
  std::atomic<bool> is_over_ = false;
  TableFacts facts_;
  std::thread thread_;
};

// The table of a file, with rows that count from places in the file and not from ELF addresses: these are
// what a mapping is known by. Empty when the file has none.
Result<unwind::RowTable> table_of_file(const MappedFile& file, const unwind::RowLimits& limits,
                                       const std::string& proc = "/proc");

}  // namespace tacho::record
