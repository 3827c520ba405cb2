// Deferred unwinding: a thread finishes stacks that the BPF walk left at a module without a table, from a
// copy of the stack, with the same unwind rows (bpf/programs/stack_walk.h).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "bpf/programs/stack_maps.h"
#include "format/base/result.h"
#include "record/host/foreign_reader.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "record/stacks/stack_copy.h"
#include "unwind/elf_image.h"
#include "unwind/row_finder.h"

namespace tacho::record {

// The thread that finishes stacks. Only the rows for these stacks are made, from files that are opened when
// the first stack needs them.
class DeferredUnwinder : public std::enable_shared_from_this<DeferredUnwinder> {
 public:
  struct Stack {
    CallchainMerger::Deferred sample;
    StackCopy copy;
    CodeMaps::AtTime maps;         // of its process, at the time of the copy
    std::uint64_t pass = 0;        // for the caller
    std::size_t copied_bytes = 0;  // for the caller: the copy is freed after use
  };

  // Lists, because moving elements between them allocates nothing.
  using Stacks = std::list<Stack>;
  static constexpr std::size_t kMostWaiting = 4096;
  // The maximum of processes whose current mappings are read, until nothing waits; stacks of further
  // processes stay unfinished.
  static constexpr std::size_t kMostLookedUp = 64;

  // Opens a mapped file, which may take any time.
  using ImageOf = std::function<Result<unwind::ElfImage>(const MappedFile&)>;

  // `most_frames`: of a stack. `reader`: of mapped files and mappings. `images`: for tests. The object is
  // shared with its thread, which may not end in time.
  DeferredUnwinder(std::size_t most_frames, std::shared_ptr<ForeignReader> reader, ImageOf images = {});
  DeferredUnwinder(const DeferredUnwinder&) = delete;
  DeferredUnwinder& operator=(const DeferredUnwinder&) = delete;
  ~DeferredUnwinder() = default;
  Result<> start();
  // Finishes nothing more. A thread that does not end within two seconds is detached.
  void end_thread();

  // A unique id for `file` in ranges; with very many files, the oldest are forgotten. Anonymous code has an
  // id, too.
  std::uint32_t number_of(const MappedFile& file);
  // The current mappings of a process that ran before the recording. Empty: they cannot be read.
  CodeMaps::Ranges ranges_of_running(std::uint32_t process);
  // Beyond kMostWaiting, stacks stay unfinished.
  void give_stacks(Stacks stacks);
  // All stacks given so far stay unfinished, the current one included.
  void give_up_stacks();
  // The stacks that are done since the last call, with the end of their walks.
  Stacks take_finished();

 private:
  static constexpr std::size_t kMostFiles = 1U << 13;
  // Unwind rows of one file; empty: it cannot be read.
  struct File {
    std::optional<unwind::RowFinder> rows;
    bool is_bare = false;  // it can be read, but has no unwind information
    std::uint64_t last_used = 0;
  };

  // The state of the stack that the thread works on; the stack may be given up meanwhile.
  struct Work {
    CallchainMerger::Walk walk;
    StackCopy copy;
    CodeMaps::AtTime maps;
    std::uint32_t process = 0;
    std::chrono::nanoseconds begin{};  // CPU time of the thread
  };

  void unwind_stacks();
  Work begin_next();
  bool shall_stop(const Work& work) const;
  const tacho_code_range* mapped_at(const Work& work, std::uint64_t address);
  std::optional<unwind::RowFinder::Found> row_at(const Work& work, std::uint64_t address, bool is_return,
                                                 std::uint16_t& end);
  File& opened_file(const tacho_code_range& range, std::uint32_t process);
  void make_room();
  MappedFile mapped_file(std::uint32_t number);

  const std::size_t most_frames_;
  const std::shared_ptr<ForeignReader> reader_;
  const ImageOf image_of_;
  // Used by the thread only:
  std::unordered_map<std::uint32_t, File> open_;                   // by number
  std::unordered_map<std::uint32_t, CodeMaps::Ranges> looked_up_;  // by process
  std::uint64_t uses_ = 0;

  std::atomic<bool> is_given_up_ = false;  // the current stack

  std::mutex mutex_;  // guards all members below
  std::condition_variable has_work_, has_ended_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by identity of the file
  std::unordered_map<std::uint32_t, MappedFile> files_;     // by number
  std::deque<std::uint32_t> order_;                         // of their ids, oldest first
  std::uint32_t last_number_ = 0;
  Stacks waiting_, begun_, done_;  // one is begun, or none
  bool is_over_ = false, is_thread_over_ = false;
  std::thread thread_;
};

}  // namespace tacho::record
