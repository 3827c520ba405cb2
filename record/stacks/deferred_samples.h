// Samples whose stacks are finished by another thread (record/stacks/deferred_unwinder.h).
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

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "record/host/foreign_reader.h"
#include "record/stacks/callchain_merger.h"
#include "record/stacks/deferred_unwinder.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "record/stacks/stack_copy.h"

namespace tacho::record {

// Holds samples until the mappings up to their time are known, and their stacks are finished.
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
  ~DeferredSamples() { unwinder_->end_thread(); }
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
  void give_up_stacks() { unwinder_->give_up_stacks(); }

  // Readers expect that, after a round has ended, no record is older than the newest record of the round
  // before. Records of a pass are newer than all records that were read two passes earlier. True: the round
  // ends.
  bool try_end_round();
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
