// Stacks that a walk in the kernel had to leave, finished on a thread of their own: only the rows that they
// lead through are made, out of files that are opened when the first stack needs them.
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
#include <utility>
#include <vector>

#include "format/result.h"
#include "record/host/file_heads.h"
#include "record/stacks/code_maps.h"
#include "record/stacks/file_table.h"
#include "record/stacks/stack_splice.h"
#include "record/stacks/walk_rest.h"
#include "unwind/elf_image.h"
#include "unwind/row_finder.h"

namespace tacho::record {

class StackFinisher : public std::enable_shared_from_this<StackFinisher> {
 public:
  struct Stack {
    StackSplice::Unfinished sample;
    StackCopy copy;
    CodeMaps::AtTime maps;         // of its process, when it was taken
    std::uint64_t pass = 0;        // the caller's
    std::size_t copied_bytes = 0;  // the caller's, too: the copy goes when it was used
  };

  // Lists, since they go from one to another without asking for memory.
  using Stacks = std::list<Stack>;
  static constexpr std::size_t kMostWaiting = 4096;

  // What a mapped file holds; it may take any time.
  using ImageOf = std::function<Result<unwind::ElfImage>(const MappedFile&)>;
  static Result<unwind::ElfImage> image_of(const MappedFile& file);

  // `most_frames`: of a stack. It is shared with its thread, which may hang in a file that does not answer.
  explicit StackFinisher(std::size_t most_frames, ImageOf images = image_of)
      : most_frames_(most_frames), image_of_(std::move(images)) {}
  StackFinisher(const StackFinisher&) = delete;
  StackFinisher& operator=(const StackFinisher&) = delete;
  ~StackFinisher() = default;
  Result<> start();
  // Nothing more is finished. A thread that does not end within two seconds is left behind.
  void end();

  // A number for `file` in ranges, never given to another one; the oldest of very many are forgotten. What is
  // no file has a number, too.
  std::uint32_t number_of(const MappedFile& file);
  // What a process has mapped now: of those that ran before anybody told of them. Empty when that cannot be
  // read.
  CodeMaps::Ranges ranges_of_running(std::uint32_t process);
  // Beyond kMostWaiting they are done as they are.
  void give(Stacks stacks);
  // All that was given is done as it is, the one under way included.
  void give_up();
  // Those that were dealt with since the last call: their walks say how they end now.
  Stacks take_done();

 private:
  static constexpr std::size_t kMostFiles = 1U << 13;
  // What is known of one file; nothing when it cannot be read.
  struct File {
    std::optional<unwind::RowFinder> rows;
    bool is_bare = false;  // it can be read, and describes nothing
    std::uint64_t last_used = 0;
  };

  // What the thread needs of the stack that it is at, which itself may be given up meanwhile.
  struct Work {
    StackSplice::Walk walk;
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
  // Of the thread alone:
  std::unordered_map<std::uint32_t, File> open_;                   // by number
  std::unordered_map<std::uint32_t, CodeMaps::Ranges> looked_up_;  // by process
  std::uint64_t uses_ = 0;
  FileHeads heads_;

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

}  // namespace tacho::record
