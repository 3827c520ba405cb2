// Stacks that a walk in the kernel had to leave, finished on a thread of their own: only the rows that they
// lead through are made, out of files that are opened when the first stack needs them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "format/result.h"
#include "record/stacks/code_maps.h"
#include "record/stacks/file_table.h"
#include "record/stacks/stack_splice.h"
#include "record/stacks/walk_rest.h"
#include "unwind/row_finder.h"

namespace tacho::record {

class StackFinisher {
 public:
  struct Stack {
    StackSplice::Unfinished sample;
    StackCopy copy;
    std::shared_ptr<const CodeMaps::Ranges> ranges;  // of its process, when it was taken; null: not known
    std::uint64_t pass = 0;                          // the caller's
    std::size_t copied_bytes = 0;                    // the caller's, too: the copy goes when it was used
  };

  // `most_frames`: of a stack.
  explicit StackFinisher(std::size_t most_frames) : most_frames_(most_frames) {}
  StackFinisher(const StackFinisher&) = delete;
  StackFinisher& operator=(const StackFinisher&) = delete;
  ~StackFinisher();
  Result<> start();

  // A number for `file` in ranges, never given to another one; the oldest of very many are forgotten. What is
  // no file has a number, too.
  std::uint32_t number_of(const MappedFile& file);
  void give(std::vector<Stack> stacks);
  // What was given and not begun yet is done as it is.
  void give_up();
  // Those that were dealt with since the last call: their walks say how they end now.
  std::vector<Stack> take_done();

 private:
  static constexpr std::size_t kMostFiles = 1U << 13;
  // What is known of one file; nothing when it cannot be read.
  struct File {
    std::optional<unwind::RowFinder> rows;
    bool is_bare = false;  // it can be read, and describes nothing
    std::uint64_t last_used = 0;
  };

  void run();
  void finish(Stack& stack);
  std::optional<unwind::RowFinder::Found> row_at(const Stack& stack, std::uint64_t address, bool is_return,
                                                 std::uint16_t& end);
  std::shared_ptr<const CodeMaps::Ranges> ranges_of_running(std::uint32_t process);
  File& opened_file(const tacho_code_range& range, std::uint32_t process);
  void make_room();
  MappedFile mapped_file(std::uint32_t number);

  const std::size_t most_frames_;
  // Of the thread alone:
  std::unordered_map<std::uint32_t, File> open_;                                          // by number
  std::unordered_map<std::uint32_t, std::shared_ptr<const CodeMaps::Ranges>> looked_up_;  // by process
  std::size_t open_bytes_ = 0;
  std::uint64_t uses_ = 0;

  std::mutex mutex_;  // of all that follows
  std::condition_variable has_work_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by what a file is
  std::unordered_map<std::uint32_t, MappedFile> files_;     // by number
  std::deque<std::uint32_t> order_;                         // of their numbers, oldest first
  std::uint32_t last_number_ = 0;
  std::deque<Stack> waiting_;
  std::vector<Stack> done_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tacho::record
