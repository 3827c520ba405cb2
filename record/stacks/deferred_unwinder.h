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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "record/host/foreign_reader.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "unwind/elf_image.h"
#include "unwind/row_finder.h"

namespace tacho::record {

// struct tacho_stack_copy, with as many bytes as were copied.
struct StackCopy {
  std::uint64_t number = 0, sp = 0, bp = 0, rbx = 0;
  std::size_t frames = 0;  // found by the BPF walk; the last one is where the walk continues
  bool is_return = false;  // the last frame is a return address
  bool is_bp_known = false, is_rbx_known = false;
  std::size_t part = 0;          // part of a deep stack; the first one has the other members
  std::vector<std::byte> bytes;  // from sp up
};
// nullopt: it is cut short.
std::optional<StackCopy> stack_copy_of(format::Bytes written);
// Appends the next part of the same stack. False, without a change: it does not begin at the end.
bool add_part(StackCopy& copy, const StackCopy& part);

// The unwind row for an address: of kind NOTHING for mapped code without unwind information. nullopt, with
// `end` set: no code is mapped there (TACHO_END_NO_MAPPING), or its file cannot be read (TACHO_END_NO_TABLE).
// `is_return`: the address is a return address.
using RowOfAddress = std::function<std::optional<unwind::RowFinder::Found>(
    std::uint64_t address, bool is_return, std::uint16_t& end)>;

// Continues the walk from the copy, and stores its frames and its end in `walk`. Frames beyond `most` are
// left out.
void finish_unwind(CallchainMerger::Walk& walk, const StackCopy& copy, std::size_t most,
                   const RowOfAddress& row_of);

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
  void end();

  // A unique id for `file` in ranges; with very many files, the oldest are forgotten. Anonymous code has an
  // id, too.
  std::uint32_t number_of(const MappedFile& file);
  // The current mappings of a process that ran before the recording. Empty: they cannot be read.
  CodeMaps::Ranges ranges_of_running(std::uint32_t process);
  // Beyond kMostWaiting, stacks stay unfinished.
  void give(Stacks stacks);
  // All stacks given so far stay unfinished, the current one included.
  void give_up();
  // The stacks that are done since the last call, with the end of their walks.
  Stacks take_done();

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

  void run();
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

// Deferred samples: held until the mappings up to their time are known, and their stacks are finished.
class DeferredSamples {
 public:
  // The source of copies (bpf::StackWalker).
  struct Copies {
    std::function<void()> begin;
    std::function<void(const std::function<void(format::Bytes)>&)> take;  // new ones
  };
  // The references in `copies` must outlive this. The others: as for DeferredUnwinder.
  DeferredSamples(Copies copies, std::size_t most_frames, std::shared_ptr<ForeignReader> reader,
                  DeferredUnwinder::ImageOf images = {})
      : source_(std::move(copies)),
        unwinder_(std::make_shared<DeferredUnwinder>(most_frames, std::move(reader), std::move(images))) {}
  DeferredSamples(const DeferredSamples&) = delete;
  DeferredSamples& operator=(const DeferredSamples&) = delete;
  ~DeferredSamples() { unwinder_->end(); }
  // From now on the BPF program copies stacks.
  Result<> start();

  std::uint32_t number_of(const MappedFile& file) { return unwinder_->number_of(file); }  // for ranges
  CodeMaps::Ranges ranges_of_running(std::uint32_t process) { return unwinder_->ranges_of_running(process); }
  // The samples of the current pass; more may be appended.
  std::vector<CallchainMerger::Deferred>& fresh() { return fresh_; }
  // All rings were read, and `maps` is up to date. Appends finished samples to `records`.
  void end_pass(const CodeMaps& maps, CallchainMerger& merger, std::vector<std::byte>& records);
  std::uint64_t last_pass() const { return pass_ - 1; }
  // Whether samples of that pass, or of earlier ones, are still held.
  bool holds_until(std::uint64_t pass) const { return !held_.empty() && held_.begin()->first <= pass; }
  void give_up() { unwinder_->give_up(); }

  // Readers expect that, after a round has ended, no record is older than the newest record of the round
  // before. Records of a pass are newer than all records that were read two passes earlier. True: the round
  // ends.
  bool end_round();
  void begin_file() { round_end_.reset(); }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of copies
  void take_copies();
  void give_ripe(const CodeMaps& maps);
  void put_done(CallchainMerger& merger, std::vector<std::byte>& records);
  bool waits_too_long() const;

  Copies source_;
  std::shared_ptr<DeferredUnwinder> unwinder_;
  std::uint64_t pass_ = 1;                  // the current one
  std::optional<std::uint64_t> round_end_;  // the pass with which the last round ended
  struct Held {
    std::size_t samples = 0;
    std::optional<std::chrono::steady_clock::time_point> given;  // when the stacks were given to be finished
  };
  std::map<std::uint64_t, Held> held_;                   // samples of earlier passes, by pass
  std::vector<CallchainMerger::Deferred> fresh_, ripe_;  // of this pass, and of the last one
  struct Copy {
    StackCopy stack;
    std::uint64_t pass = 0;
  };
  std::unordered_map<std::uint64_t, Copy> copies_;  // by number
  std::size_t bytes_ = 0;                           // of all copies, including stacks that are being finished
  DeferredUnwinder::Stacks done_;
};

}  // namespace tacho::record
