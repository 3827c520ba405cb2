// Sorts records by time, round by round, in bounded memory.
//
// Rings of different CPUs are drained one after another, so their records interleave in chunks. At the n-th
// FINISHED_ROUND all records up to the highest time seen before the (n-1)-th can be emitted: no older record
// can come any more (docs/capture-format.md, "Order").
//
// Long rounds must not fill the memory. When waiting records take more than a multiple of their bytes in the
// capture, inflated blocks are parked: compressed again in memory (block_cache.h), and inflated once more
// when their records are due. If that is not enough, the older half is emitted early. If blocks would be
// inflated again and again, the round is emitted in file order.
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
  // Waiting records may take this much memory, and more in proportion to their bytes in the capture.
  static constexpr std::size_t kMostHeld = std::size_t{24} << 20;  // bytes

  explicit TimeOrder(std::size_t most_held = kMostHeld) : floor_(most_held) {}
  // Adds a record of the kernel (no payload follows it). `time` in ns; records of equal time keep their
  // order. pop() returns `event` with the record.
  void push(const RecordView& record, std::uint64_t time, const BlockRef& block, std::uint32_t event = 0);
  // Notes the time of a record that is not pushed, so that rounds end as if it had been.
  void leave_out(std::uint64_t time) { highest_ = highest_ < time ? time : highest_; }
  void finished_round();
  // No more records will come: all waiting ones can be popped.
  void flush();
  // The next record that is ready. Its bytes stay valid until the next call of pop().
  struct Item {
    RecordView record;
    std::uint64_t time = 0;
    std::uint32_t event = 0;
    const BlockRef* block = nullptr;  // what the record points into
  };
  std::optional<Item> pop();
  bool has_ready() const { return next_ready_ < ready_.size(); }
  // Reports how many records came out of order, and why. Call it after the last pop().
  void report(Diagnostics& diagnostics) const;
  // How many records were older than one popped before; complete after the last pop().
  std::uint64_t out_of_order() const { return out_of_order_; }
  // Whether records were emitted before their round, to save memory.
  bool went_out_early() const { return went_out_early_; }

 private:
  // A waiting record, with all that sorting and popping need: both read memory sequentially.
  struct Entry {
    std::uint64_t time;
    std::uint32_t at;     // in its block, bytes; its low bits
    std::uint32_t block;  // number of the block since the start; its low bits
    std::uint32_t event;
    std::uint16_t size;  // bytes
    bool is_big_endian;

    std::endian order() const { return is_big_endian ? std::endian::big : std::endian::little; }
  };
  static_assert(sizeof(Entry) == 24);  // a round may have a million
  // A block, or a part of one if it is longer than 4 GiB.
  struct Held {
    BlockRef block;                           // null: parked, or none of its records waits
    std::size_t base = 0;                     // offset of the part in its block, in bytes
    const std::byte* begin = nullptr;         // the part's first byte; null while parked
    std::uint64_t offset = 0;                 // in the capture: of the part, or of the COMPRESSED record
    std::size_t waiting = 0;                  // its records that were not popped
    std::size_t source = 0;                   // bytes that its records take in the capture
    bool is_plain = true;                     // it was not inflated
    std::size_t bytes = 0;                    // inflated size; 0 if plain
    std::optional<CompressedBlock> parked{};  // set when it is parked, until it is released
    Buffer opened{};                          // of a parked block: its bytes, inflated again
  };
  Held& block_of(const RecordView& record, std::size_t place, const BlockRef& block);
  Held& begin_block(const BlockRef& block, std::size_t base, std::uint64_t offset);
  void reduce_memory();
  void park(Held& from);
  void open_parked(Held& from, std::uint32_t number);
  Bytes copied(const Entry& entry);
  void close_parked(Held& from);
  bool close_oldest();
  void release(Held& from);
  std::size_t memory_limit() const;
  void emit_until(std::uint64_t time);
  void emit_early();
  void emit_in_file_order();
  void sort_ready();
  // The index in blocks_ of a block, from the low bits of its number.
  std::uint32_t index_of(std::uint32_t block) const {
    return block - static_cast<std::uint32_t>(first_block_);
  }
  Held& held(std::uint32_t block) {
    if (last_held_ == nullptr || block != last_block_) {
      last_held_ = &blocks_[index_of(block)];
      last_block_ = block;
    }
    return *last_held_;
  }
  // Whether the entry's block is parked and must be inflated again.
  bool is_closed(const Entry& entry) {
    const Held& from = held(entry.block);
    return from.parked && from.opened.empty();
  }
  void prefetch_record(std::size_t ready);
  void finish_last();
  void drop_popped();

  std::vector<Entry> waiting_;
  std::vector<Entry> ready_;
  std::vector<std::size_t> runs_;  // start of each sorted run, while sorting
  std::size_t next_ready_ = 0;
  std::deque<Held> blocks_;
  std::uint64_t first_block_ = 0;  // number of blocks_.front()
  Held* last_held_ = nullptr;      // the result of the last held()
  std::uint32_t last_block_ = 0;   // its number
  struct Popped {
    std::uint32_t block = 0;
    std::uint16_t size = 0;
    bool is_there = false;
  };
  Popped last_popped_;
  std::uint64_t highest_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t latest_popped_ = 0;
  std::uint64_t out_of_order_ = 0;
  std::size_t floor_;
  std::size_t cost_ = 0;    // bytes of memory that waiting records take
  std::size_t source_ = 0;  // bytes that blocks_ take in the capture
  bool went_out_early_ = false;
  BlockCache parking_;
  std::uint64_t next_to_park_ = 0;    // number of a block
  std::deque<std::uint32_t> opened_;  // parked blocks that were inflated again, the oldest first
  std::size_t opened_bytes_ = 0;      // inflated bytes of these
  std::uint64_t parked_bytes_ = 0, reopened_bytes_ = 0;  // totals so far
  BlockRef copies_;                                      // copied records of parked blocks
  std::byte* next_copy_ = nullptr;                       // in copies_: the next free byte
  std::size_t copies_left_ = 0;                          // bytes
  bool in_file_order_ = false;                           // ready_ is not sorted by time
  std::vector<std::uint64_t> times_;                     // scratch
};

}  // namespace tacho::format
