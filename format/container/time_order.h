// Puts records in time order, round by round, in memory bounded by the rounds.
//
// Rings of different processors are drained one after another, so their records interleave in chunks. At the
// n-th FINISHED_ROUND everything up to the highest time seen before the (n-1)-th can be given out: nothing
// older can come any more (docs/capture-format.md, "Order").
//
// A capture whose rounds are long must not fill the memory: when what waits takes more than a multiple of the
// bytes of the capture that it came from, blocks that were inflated are packed again in memory
// (block_cache.h), and inflated once more when their records are due. When that does not help, the older
// half goes out early; where blocks would be inflated over and over, records go out in the order of the file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/diagnostics.h"
#include "format/codec/block_cache.h"
#include "format/records/record_view.h"

namespace tacho::format {

class TimeOrder {
 public:
  // What waits may take so much memory, and some for each byte of the capture that it came from.
  static constexpr std::size_t kMostHeld = std::size_t{24} << 20;  // bytes

  explicit TimeOrder(std::size_t most_held = kMostHeld) : floor_(most_held) {}
  // Time in ns. Records of equal time keep the order of their pushes. `event` comes back with the record,
  // which is a kernel's: nothing follows it.
  void push(const RecordView& record, std::uint64_t time, const BlockRef& block, std::uint32_t event = 0);
  // A record of that time was there and is left out: rounds end for the others as if it had been pushed.
  void leave_out(std::uint64_t time) { highest_ = highest_ < time ? time : highest_; }
  void finished_round();
  // No more records will come: everything may go out.
  void flush();
  // The next record that may go out. Its bytes stay valid until the next call of pop().
  struct Item {
    RecordView record;
    std::uint64_t time = 0;
    std::uint32_t event = 0;
    const BlockRef* block = nullptr;  // what the record points into
  };
  std::optional<Item> pop();
  bool has_ready() const { return next_ready_ < ready_.size(); }
  // To be called when the last record was popped: how many were given out late, and why.
  void report(Diagnostics& diagnostics) const;
  // How many records were older than something already given out; more are found until the last one was
  // popped.
  std::uint64_t out_of_order() const { return out_of_order_; }
  // Whether the order of what waited was given up, since it was too much.
  bool went_out_early() const { return went_out_early_; }

 private:
  // A record that waits. All is in here, so that sorting and giving out go through memory from its beginning
  // to its end.
  struct Entry {
    std::uint64_t time;
    std::uint32_t at;     // in its block, bytes; its low bits
    std::uint32_t block;  // number of the block since the start; its low bits
    std::uint32_t event;
    std::uint16_t size;  // bytes
    std::endian order;
  };
  // A block, or a part of one: nearly always the whole. Within a part offsets follow from places.
  struct Held {
    BlockRef block;                    // null: parked, or none of its records waits
    std::size_t base = 0;              // offset of the part in its block, bytes
    const std::byte* begin = nullptr;  // of that part, while it is there
    std::uint64_t offset = 0;          // of that part, if plain; of all records, where they were inflated
    std::size_t waiting = 0;           // records of it still in the queue
    std::size_t source = 0;            // bytes of the capture that these came from, all that were pushed
    bool is_plain = true;              // it was not inflated
    std::size_t bytes = 0;             // of one that was inflated
    std::optional<CompressedBlock> parked{};  // from then on
    Buffer opened{};                          // what is inflated of it, while records of it go out
  };
  Held& block_of(const RecordView& record, std::size_t place, const BlockRef& block);
  Held& begin_block(const BlockRef& block, std::size_t base, std::uint64_t offset);
  void hold_less();
  void park(Held& from);
  void open(Held& from, std::uint32_t number);
  Bytes copied(const Entry& entry);
  void close(Held& from);
  bool close_oldest();
  void release(Held& from);
  std::size_t most_held() const;
  void let_out_until(std::uint64_t time);
  void let_out_early();
  void let_out_as_they_came();
  void sort_ready();
  // Of a block by the low bits of its number.
  std::uint32_t place_of(std::uint32_t block) const {
    return block - static_cast<std::uint32_t>(first_block_);
  }
  Held& held(std::uint32_t block) {
    if (last_held_ == nullptr || block != last_block_) {
      last_held_ = &blocks_[place_of(block)];
      last_block_ = block;
    }
    return *last_held_;
  }
  // Whether its block must be inflated again.
  bool is_closed(const Entry& entry) {
    const Held& from = held(entry.block);
    return from.parked && from.opened.empty();
  }
  void prefetch_record(std::size_t ready);
  void drop_done();
  void drop_given();

  std::vector<Entry> waiting_;
  std::vector<Entry> ready_, merged_;
  std::vector<std::size_t> runs_;  // where each begins, while sorting
  std::size_t next_ready_ = 0;
  std::deque<Held> blocks_;
  std::uint64_t first_block_ = 0;  // number of blocks_.front()
  Held* last_held_ = nullptr;      // of blocks_, the one that was asked for last
  std::uint32_t last_block_ = 0;   // its number
  struct Popped {
    std::uint32_t block = 0;
    std::uint16_t size = 0;
    bool is_there = false;
  };
  Popped last_popped_;
  std::uint64_t highest_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t given_out_ = 0;
  std::uint64_t out_of_order_ = 0;
  std::size_t floor_;
  std::size_t cost_ = 0;    // bytes of memory that what waits takes
  std::size_t source_ = 0;  // bytes of the capture that blocks_ came from
  bool went_out_early_ = false;
  BlockCache parking_;
  std::uint64_t next_to_park_ = 0;    // number of a block
  std::deque<std::uint32_t> opened_;  // blocks that were parked and are open again, the oldest first
  std::size_t opened_bytes_ = 0;      // of these
  std::uint64_t parked_bytes_ = 0, reopened_bytes_ = 0;  // of all blocks so far, as often as they were
  BlockRef copies_;                                      // records of parked blocks that went out
  std::byte* next_copy_ = nullptr;                       // in copies_: the next free byte
  std::size_t copies_left_ = 0;                          // bytes
  bool goes_as_it_came_ = false;                         // what is in ready_
  std::vector<std::uint64_t> times_;                     // scratch
};

}  // namespace tacho::format
