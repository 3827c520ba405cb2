// Batches: reads a capture as batches of some thousand records in time order. Each sample gets its thread and
// its version of the address space. So worker threads need no other records, and the next batch is made
// meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/capture_reader.h"
#include "report/samples/filter.h"
#include "report/samples/ordered_records.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/threads.h"
#include "symbolize/address_space.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

// A sample, or another record that the view wants.
struct BatchItem {
  const std::byte* record = nullptr;  // header included
  std::uint64_t time = 0;             // ns; 0: it was not sorted by time
  std::uint64_t offset = 0;           // in the capture
  const Thread* thread = nullptr;     // null: the record has none
  const char* comm_begin = nullptr;
  const symbolize::SpaceVersion* space = nullptr;  // of samples
  std::uint32_t comm_size = 0;
  std::uint32_t event = 0;
  std::uint16_t size = 0;   // bytes: a record's size has 16 bits
  std::uint16_t block = 0;  // index of the record's block in the batch
  bool is_sample = false;

  // The thread's name at that time; equal names share their bytes.
  std::string_view comm() const { return {comm_begin, comm_size}; }
};
static_assert(sizeof(BatchItem) <= 64);

// A sample's location and stack, for serial views.
struct ItemPlaces {
  const Stack* stack = nullptr;  // null: it has no call chain
  std::uint32_t place = 0;       // number of its own location
  bool is_sound = false;         // its record is as long as its fields require
  bool has_payload_stack = false;
};

// Records live as long as the batch; threads and their names as long as the Batches.
struct Batch {
  std::vector<BatchItem> items;
  std::vector<ItemPlaces> places;               // of each item; empty: not resolved yet
  std::vector<format::BlockRef> blocks;         // hold the records
  symbolize::AddressSpaces::Versions replaced;  // old versions of address spaces that items point to
  std::uint64_t first = 0;                      // index of the first item, over all batches
  std::uint64_t bytes_read = 0;                 // of the capture; 0: no progress to report
  // The next record changes what all processes share (kernel mappings, JIT code, build ids): finish this
  // batch before the next one is made.
  bool ends_before_change = false;
  bool is_last = false;

  void clear();
};

// Which records a batch has.
struct BatchOptions {
  const Filter* filter = nullptr;
  bool leaves_out_guests = false;
  bool wants_others = false;  // records other than samples
  std::size_t most_items = std::size_t{1} << 13;
};

inline bool is_guest(std::uint8_t cpumode) {
  return cpumode == format::abi::kCpumodeGuestKernel || cpumode == format::abi::kCpumodeGuestUser;
}

// Belongs to one thread at a time. While it makes a batch, other threads may read spaces(), jit() and
// finished batches.
class Batches {
 public:
  // All must outlive this.
  Batches(format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
          format::Diagnostics& diagnostics);
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Starts a run. `options` must outlive it.
  void begin(const BatchOptions& options);
  // Makes the next batch. Only the previous batch may still be in use, and only if its ends_before_change is
  // false.
  void fill(Batch& batch);

  const symbolize::AddressSpaces& spaces() const { return spaces_; }
  const symbolize::JitCode& jit() const { return jit_; }
  const CgroupNames& cgroups() const { return cgroups_; }  // thread-safe
  // At the end of a run: adds lost samples to the diagnostics, if there are new ones.
  void report_losses();
  std::uint64_t lost_samples() const { return lost_samples_; }
  // Frees what only further records would need.
  void end_replay();
  // Gives every thread the name it had last.
  void settle_names() { threads_.settle_names(); }

 private:
  // WouldChange: the record must wait until the batches before it are finished (Batch::ends_before_change).
  enum class Applied : std::uint8_t { Yes, WouldChange };
  Applied apply(const OrderedRecord& record, Batch& batch);
  Applied apply_other(const OrderedRecord& record, Batch& batch);
  Applied apply_user_record(const format::RecordView& view, const Batch& batch);
  bool may_change(const Batch& batch) const { return may_change_ && batch.items.empty(); }
  void add_build_ids();
  void replay(const format::Record& record, std::uint16_t misc);
  void add_sample(const OrderedRecord& record, Batch& batch);
  void add_other(const OrderedRecord& record, const format::Record& parsed, const format::EventAttr& attr,
                 Batch& batch);
  BatchItem& add(const OrderedRecord& record, Batch& batch);
  // Of an event's samples.
  struct EventFacts {
    std::size_t pid_at = 0;   // offset of pid and tid in samples, bytes; 0: not sampled
    bool has_values = false;  // of counters
  };
  const EventFacts& facts_of(std::uint32_t event);
  std::pair<std::uint32_t, std::uint32_t> pid_and_tid(const OrderedRecord& record, const EventFacts& event);
  const symbolize::SpaceVersion& space_of(std::uint32_t pid);
  void count_losses(const format::Record& record);

  format::CaptureReader* capture_;
  format::Diagnostics* diagnostics_;
  OrderedRecords records_;
  const BatchOptions* options_ = nullptr;
  symbolize::AddressSpaces spaces_;
  symbolize::JitCode jit_;
  Threads threads_;
  CgroupNames cgroups_;
  std::vector<EventFacts> facts_;         // by event
  std::optional<OrderedRecord> pending_;  // the record before which the last batch ended
  bool may_change_ = true;                // whether shared data may change: no worker reads it now
  bool is_pipe_ = false, has_ended_ = false;
  std::uint64_t next_item_ = 0;
  std::size_t build_ids_seen_ = 0;
  std::uint64_t lost_samples_ = 0, lost_records_ = 0, reported_losses_ = 0;
  struct Recent {
    std::uint32_t pid = 0;
    const symbolize::SpaceVersion* space = nullptr;
  };
  std::array<Recent, 64> recent_{};  // the last pid for each value of its low bits
};

}  // namespace tacho::report
