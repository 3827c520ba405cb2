// Samples whose stacks are finished by the recorder: held back until what was told of mappings up to then is
// known and the rest of their stacks was found.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/cursor.h"
#include "format/result.h"
#include "record/stacks/code_maps.h"
#include "record/stacks/file_table.h"
#include "record/stacks/stack_finisher.h"
#include "record/stacks/stack_splice.h"
#include "record/stacks/walk_rest.h"

namespace tacho::record {

class LateStacks {
 public:
  // Where copies come from (bpf::StackWalker).
  struct Copies {
    std::function<void()> begin;
    std::function<void(const std::function<void(format::Bytes)>&)> take;  // those that came since
  };
  // What `copies` refer to must outlive this. `most_frames`: of a stack.
  LateStacks(Copies copies, std::size_t most_frames, StackFinisher::ImageOf images = StackFinisher::image_of)
      : source_(std::move(copies)),
        finisher_(std::make_shared<StackFinisher>(most_frames, std::move(images))) {}
  LateStacks(const LateStacks&) = delete;
  LateStacks& operator=(const LateStacks&) = delete;
  ~LateStacks() { finisher_->end(); }
  // From now on the program copies stacks.
  Result<> start();

  std::uint32_t number_of(const MappedFile& file) { return finisher_->number_of(file); }  // for ranges
  CodeMaps::Ranges ranges_of_running(std::uint32_t process) { return finisher_->ranges_of_running(process); }
  // The samples of this look at the rings; more may be appended.
  std::vector<StackSplice::Unfinished>& fresh() { return fresh_; }
  // All rings were looked at, and `maps` is what they told. Appends what is finished to `records`.
  void end_pass(const CodeMaps& maps, StackSplice& splice, std::vector<std::byte>& records);
  std::uint64_t last_pass() const { return pass_ - 1; }
  // Samples of that pass, or of earlier ones, are still to come.
  bool holds_until(std::uint64_t pass) const { return !held_.empty() && held_.begin()->first <= pass; }
  void give_up() { finisher_->give_up(); }

  // A reader takes it that, once a round has ended, nothing comes that is older than the newest record of the
  // round before. What was read in a pass is newer than all that was read two passes earlier. True: the round
  // ends.
  bool end_round();
  void begin_file() { round_end_.reset(); }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of copies
  void take_copies();
  void give_ripe(const CodeMaps& maps);
  void put_done(StackSplice& splice, std::vector<std::byte>& records);
  bool waits_too_long() const;

  Copies source_;
  std::shared_ptr<StackFinisher> finisher_;
  std::uint64_t pass_ = 1;                  // the one that is under way
  std::optional<std::uint64_t> round_end_;  // the pass that the last round ended with
  struct Held {
    std::size_t samples = 0;
    std::optional<std::chrono::steady_clock::time_point> given;  // to be finished
  };
  std::map<std::uint64_t, Held> held_;                 // samples of former passes, by pass
  std::vector<StackSplice::Unfinished> fresh_, ripe_;  // of this pass and of the last one
  struct Copy {
    StackCopy stack;
    std::uint64_t pass = 0;
  };
  std::unordered_map<std::uint64_t, Copy> copies_;  // by number
  std::size_t bytes_ = 0;                           // of all copies, those that are being finished included
  StackFinisher::Stacks done_;
};

}  // namespace tacho::record
