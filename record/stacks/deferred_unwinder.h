// Deferred unwinding, of stacks that the BPF walk had to leave at a module without a table: finished on a
// thread from a copy of the stack, by the same rows (bpf/programs/stack_walk.h).
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
#include "record/host/foreign_file.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "unwind/elf_image.h"
#include "unwind/row_finder.h"

namespace tacho::record {

// Copies of stacks, and the walk that goes on where the kernel's ended.

// struct tacho_stack_copy, of which the bytes are as many as were there.
struct StackCopy {
  std::uint64_t number = 0, sp = 0, bp = 0, rbx = 0;
  std::size_t frames = 0;  // found before; the last one is where to go on
  bool is_return = false;  // it stands behind a call
  bool is_bp_known = false, is_rbx_known = false;
  std::size_t part = 0;          // of a deep stack; the first one has all the rest
  std::vector<std::byte> bytes;  // from sp on
};
// Nothing when it is cut short.
std::optional<StackCopy> stack_copy_of(format::Bytes written);
// Puts the next part of the same stack behind it; false, and nothing is changed, when it does not begin
// there.
bool add_part(StackCopy& copy, const StackCopy& part);

// The row for code at an address: of kind NOTHING for mapped code without unwind information. Nothing where
// no code is mapped (TACHO_END_NO_MAPPING) or its file cannot be read (TACHO_END_NO_TABLE), which `end` is
// set to. `is_return`: the address is a return address.
using RowOfAddress = std::function<std::optional<unwind::RowFinder::Found>(
    std::uint64_t address, bool is_return, std::uint16_t& end)>;

// Continues from the copy, and leaves in `walk` its frames and how it ended. Frames beyond `most` are left
// out.
void finish_unwind(CallchainMerger::Walk& walk, const StackCopy& copy, std::size_t most,
                   const RowOfAddress& row_of);

// Stacks that a walk in the kernel had to leave, finished on a thread of their own: only the rows that they
// lead through are made, out of files that are opened when the first stack needs them.

class DeferredUnwinder : public std::enable_shared_from_this<DeferredUnwinder> {
 public:
  struct Stack {
    CallchainMerger::Deferred sample;
    StackCopy copy;
    CodeMaps::AtTime maps;         // of its process, when it was taken
    std::uint64_t pass = 0;        // the caller's
    std::size_t copied_bytes = 0;  // the caller's, too: the copy goes when it was used
  };

  // Lists, since they go from one to another without asking for memory.
  using Stacks = std::list<Stack>;
  static constexpr std::size_t kMostWaiting = 4096;
  // Processes whose current mappings are read, until nothing waits any more: stacks of further ones stay as
  // they are.
  static constexpr std::size_t kMostLookedUp = 64;

  // Opens a mapped file; it may take any time.
  using ImageOf = std::function<Result<unwind::ElfImage>(const MappedFile&)>;
  static Result<unwind::ElfImage> image_of(const MappedFile& file);

  // `most_frames`: of a stack. It is shared with its thread, which may hang in a file that does not answer.
  explicit DeferredUnwinder(std::size_t most_frames, ImageOf images = image_of)
      : most_frames_(most_frames), image_of_(std::move(images)) {}
  DeferredUnwinder(const DeferredUnwinder&) = delete;
  DeferredUnwinder& operator=(const DeferredUnwinder&) = delete;
  ~DeferredUnwinder() = default;
  Result<> start();
  // Nothing more is finished. A thread that does not end within two seconds is left behind.
  void end();

  // An id for `file` in ranges, never given to another one; the oldest of very many are forgotten.
  // Anonymous code has an id, too.
  std::uint32_t number_of(const MappedFile& file);
  // The current mappings of a process that ran before the recording. Empty when they cannot be read.
  CodeMaps::Ranges ranges_of_running(std::uint32_t process);
  // Beyond kMostWaiting they are done as they are.
  void give(Stacks stacks);
  // All that was given is done as it is, the one under way included.
  void give_up();
  // Stacks finished since the last call: their walks have how they end now.
  Stacks take_done();

 private:
  static constexpr std::size_t kMostFiles = 1U << 13;
  // Unwind rows of one file; nothing when it cannot be read.
  struct File {
    std::optional<unwind::RowFinder> rows;
    bool is_bare = false;  // it can be read, and describes nothing
    std::uint64_t last_used = 0;
  };

  // State of the stack that the thread works on, which itself may be given up meanwhile.
  struct Work {
    CallchainMerger::Walk walk;
    StackCopy copy;
    CodeMaps::AtTime maps;
    std::uint32_t process = 0;
    std::chrono::nanoseconds begin{};  // of the thread's CPU time
  };

  void run();
  Work begin_next();
  void finish(Work& work);
  bool shall_stop(const Work& work) const;
  const tacho_code_range* mapped_at(const Work& work, std::uint64_t address);
  std::optional<unwind::RowFinder::Found> row_at(const Work& work, std::uint64_t address, bool is_return,
                                                 std::uint16_t& end);
  File& opened_file(const tacho_code_range& range, std::uint32_t process);
  void make_room();
  MappedFile mapped_file(std::uint32_t number);

  const std::size_t most_frames_;
  const ImageOf image_of_;
  // Used by the thread only:
  std::unordered_map<std::uint32_t, File> open_;                   // by number
  std::unordered_map<std::uint32_t, CodeMaps::Ranges> looked_up_;  // by process
  std::uint64_t uses_ = 0;
  TimedFileReader reader_;

  std::atomic<bool> is_given_up_ = false;  // what is under way

  std::mutex mutex_;  // of all that follows
  std::condition_variable has_work_, has_ended_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by what a file is
  std::unordered_map<std::uint32_t, MappedFile> files_;     // by number
  std::deque<std::uint32_t> order_;                         // of their numbers, oldest first
  std::uint32_t last_number_ = 0;
  Stacks waiting_, begun_, done_;  // one is begun, or none
  bool is_over_ = false, is_thread_over_ = false;
  std::thread thread_;
};

// Deferred samples: held back until the mappings up to their time are known and the rest of their stacks
// was found.

class DeferredSamples {
 public:
  // Where copies come from (bpf::StackWalker).
  struct Copies {
    std::function<void()> begin;
    std::function<void(const std::function<void(format::Bytes)>&)> take;  // new ones
  };
  // What `copies` refer to must outlive this. `most_frames`: of a stack.
  DeferredSamples(Copies copies, std::size_t most_frames,
                  DeferredUnwinder::ImageOf images = DeferredUnwinder::image_of)
      : source_(std::move(copies)),
        unwinder_(std::make_shared<DeferredUnwinder>(most_frames, std::move(images))) {}
  DeferredSamples(const DeferredSamples&) = delete;
  DeferredSamples& operator=(const DeferredSamples&) = delete;
  ~DeferredSamples() { unwinder_->end(); }
  // From now on the program copies stacks.
  Result<> start();

  std::uint32_t number_of(const MappedFile& file) { return unwinder_->number_of(file); }  // for ranges
  CodeMaps::Ranges ranges_of_running(std::uint32_t process) { return unwinder_->ranges_of_running(process); }
  // The samples of this look at the rings; more may be appended.
  std::vector<CallchainMerger::Deferred>& fresh() { return fresh_; }
  // All rings were read, and `maps` is up to date. Appends finished samples to `records`.
  void end_pass(const CodeMaps& maps, CallchainMerger& merger, std::vector<std::byte>& records);
  std::uint64_t last_pass() const { return pass_ - 1; }
  // Samples of that pass, or of earlier ones, are still to come.
  bool holds_until(std::uint64_t pass) const { return !held_.empty() && held_.begin()->first <= pass; }
  void give_up() { unwinder_->give_up(); }

  // Readers expect that, once a round has ended, nothing comes that is older than the newest record of the
  // round before. Records of a pass are newer than all that were read two passes earlier. True: the round
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
  std::uint64_t pass_ = 1;                  // the one that is under way
  std::optional<std::uint64_t> round_end_;  // the pass that the last round ended with
  struct Held {
    std::size_t samples = 0;
    std::optional<std::chrono::steady_clock::time_point> given;  // to be finished
  };
  std::map<std::uint64_t, Held> held_;                   // samples of former passes, by pass
  std::vector<CallchainMerger::Deferred> fresh_, ripe_;  // of this pass and of the last one
  struct Copy {
    StackCopy stack;
    std::uint64_t pass = 0;
  };
  std::unordered_map<std::uint64_t, Copy> copies_;  // by number
  std::size_t bytes_ = 0;                           // of all copies, also of stacks that are being finished
  DeferredUnwinder::Stacks done_;
};

}  // namespace tacho::record
