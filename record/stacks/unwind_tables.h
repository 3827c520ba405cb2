// Unwind tables of mapped files for the BPF program that walks stacks; and the libraries that a program will
// map, found before it starts.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bpf/unwinder/stack_walker.h"
#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "record/host/foreign_reader.h"
#include "record/host/probe_offsets.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "unwind/row_table.h"

namespace tacho::record {

// The libraries that a program will probably map when it starts, from its dynamic section and `known`, so
// that tables can be built ahead. Paths, nearest first, each once: the program's interpreter, its libraries,
// and theirs. At most 128. The files may be hostile: of each, at most 128 names of at most 255 bytes and 64
// folders are read. When `stop` is true, the result is what was found so far (it may be empty).
std::vector<std::string> needed_libraries(const std::string& program, const LibraryPaths& known,
                                          const std::function<bool()>& stop = {});

struct TableFacts {
  std::size_t files = 0;                  // files whose tables were requested
  std::size_t bare = 0;                   // files without a table: not readable, or no unwind information
  std::size_t evicted = 0;                // tables that were removed for others
  std::size_t asked = 0;                  // files that a stack needed before their mapping was known
  std::uint64_t bytes = 0, budget = 0;    // size of the tables: now, and at most
  std::chrono::microseconds building{0};  // CPU time in all
};

// Unwind tables of mapped files, for the BPF program that walks stacks. A thread builds them, once for each
// file, within a budget of memory: the table least recently used by a stack is evicted first, and built again
// on demand. If the program reads mappings itself, it requests files without a table. The table
// that a stack needed last is built first.
class UnwindTables {
 public:
  // The module number of code without a file or a table, which is walked by frame pointers.
  static constexpr std::uint32_t kBare = TACHO_MODULE_OF_NO_FILE;

  // Builds the table of a file, which may take any time: table_of_file().
  using TableOf = std::function<Result<FileTable>(const MappedFile&, const unwind::RowLimits&)>;

  // `budget`: bytes. The walker must outlive the tables. `reader`: of mapped files. `tables`: for tests.
  UnwindTables(bpf::StackWalker& walker, std::uint64_t budget, std::shared_ptr<ForeignReader> reader,
               TableOf tables = {});
  UnwindTables(const UnwindTables&) = delete;
  UnwindTables& operator=(const UnwindTables&) = delete;
  ~UnwindTables();

  Result<> start();
  // Builds nothing more. False: the thread does not end in time; it uses this object and the walker, which
  // must stay.
  bool end_thread();
  // The number of a file's module, whose table will be built.
  std::uint32_t module_of(const MappedFile& file);
  // The process runs another program: its mappings are gone.
  void forget(std::uint32_t process);
  // Reads the mappings of these processes soon. For programs that read mappings themselves.
  void look_at(std::span<const int> processes);
  // Reads no more of them: from now on a table is built when a stack needs it.
  void look_no_further();
  // Waits until all requested tables are built; false: it took longer.
  bool wait(std::chrono::milliseconds patience);
  // The same for one table.
  bool wait_for(std::uint32_t number, std::chrono::milliseconds patience);
  TableFacts facts();

 private:
  static constexpr std::size_t kMostRemembered = 16384;
  struct Module {
    MappedFile file;
    std::uint32_t first_block = 0, blocks = 0;  // 0 blocks: it has no table now
    bool is_unopened = false;                   // no process that mapped it so far could open it
    bool is_waiting = false;                    // for its table
    std::vector<tacho_file_key> keys;           // by which the program finds it
  };
  struct OpenRequest {
    tacho_file_request request;
    std::chrono::steady_clock::time_point since;
  };

  void build_tables();
  std::uint32_t take_wanted();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void wake() const;
  std::uint32_t number_of(const MappedFile& file, bool is_first);
  std::uint32_t free_number();
  void bind(const tacho_file_key& key, std::uint32_t number);
  void serve_file_requests(std::unique_lock<std::mutex>& lock);
  void look_at_one(int process);
  void build(std::uint32_t number, const MappedFile& file);
  bool publish(std::uint32_t number, const unwind::RowTable& table);
  std::optional<std::uint32_t> room_for(std::uint32_t blocks);
  bool grow();
  bool evict_one();
  void ask_for_evicted();
  void set_state(std::uint32_t number, std::uint32_t state);

  bpf::StackWalker& walker_;
  const std::shared_ptr<ForeignReader> reader_;
  const TableOf table_of_;
  const bool reads_mappings_;
  std::span<tacho_unwind_module> published_;
  std::uint32_t most_blocks_;
  // Used by the building thread only:
  IdRangeAllocator blocks_{0};
  std::vector<std::span<tacho_unwind_block>> segments_;
  std::uint32_t now_ = 1;                 // incremented each second
  bool has_built_ = false;                // since memory was given back
  std::unordered_set<std::string> seen_;  // mapped files that were examined

  format::Fd news_;   // an eventfd: there is work
  std::mutex mutex_;  // guards all members below
  std::condition_variable is_idle_, is_built_, has_ended_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by identity of the file
  std::vector<Module> modules_;
  std::deque<std::uint32_t> wanted_;
  std::deque<int> processes_;              // to be examined
  std::deque<OpenRequest> open_requests_;  // about processes that were gone; the sideband may still answer
  std::deque<std::pair<std::chrono::steady_clock::time_point, std::uint32_t>>
      resting_;                                                    // numbers in quarantine
  std::vector<std::pair<std::uint32_t, std::uint32_t>> given_up_;  // blocks of modules that were removed
  MmapHistory history_{kMostRemembered};                           // a request may come later
  bool is_building_ = false, is_thread_over_ = false;
  std::atomic<bool> is_over_ = false;
  TableFacts facts_;
  std::thread thread_;
};

}  // namespace tacho::record
