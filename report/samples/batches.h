// BatchReader: reads a capture as batches of some thousand records in time order. Each sample gets its thread
// and its version of the address space. Worker threads therefore need only the batch, and the next batch can
// be read while they work on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
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
struct BatchRecord {
  const std::byte* record = nullptr;  // header included
  std::uint64_t time = 0;             // ns; 0: the record has no timestamp
  std::uint64_t offset = 0;           // in the capture
  const Thread* thread = nullptr;     // null: the record has none
  const char* comm_data = nullptr;
  const symbolize::SpaceVersion* space = nullptr;  // of samples
  std::uint32_t comm_size = 0;
  std::uint32_t event = 0;
  std::uint16_t size = 0;  // bytes; perf_event_header.size is a u16
  bool is_sample = false;

  // The thread's name at that time; equal names share their bytes.
  std::string_view comm() const { return {comm_data, comm_size}; }
};
static_assert(sizeof(BatchRecord) <= 64);

// Records live as long as the batch; threads and their names as long as the BatchReader.
struct Batch {
  std::vector<BatchRecord> items;
  std::vector<format::BlockRef> blocks;         // hold the records
  symbolize::AddressSpaces::Versions replaced;  // old versions of address spaces that items point to
  std::uint64_t first = 0;                      // index of the first item, over all batches
  std::uint64_t bytes_read = 0;  // offset in the capture; 0: nothing to report since the last batch
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
  std::size_t max_items = std::size_t{1} << 13;
};

inline bool is_guest(std::uint8_t cpumode) {
  return cpumode == format::abi::kCpumodeGuestKernel || cpumode == format::abi::kCpumodeGuestUser;
}

// Belongs to one thread at a time. While it makes a batch, other threads may read spaces(), jit() and
// finished batches.
class BatchReader {
 public:
  // All must outlive this.
  BatchReader(format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
              format::Diagnostics& diagnostics);
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Starts a run. `options` must outlive it.
  void begin(const BatchOptions& options);
  // Makes the next batch. Precondition: no batch before the previous one is in use; nor is the previous one
  // if its ends_before_change is true.
  void fill(Batch& batch);

  const symbolize::AddressSpaces& spaces() const { return spaces_; }
  const symbolize::JitCode& jit() const { return jit_; }
  const CgroupNames& cgroups() const { return cgroups_; }  // thread-safe
  // At the end of a run: adds to the diagnostics what is new about lost samples and about samples of
  // processes outside of the recorder's pid namespace.
  void report_losses();
  std::uint64_t lost_samples() const { return lost_samples_; }
  // No records follow: frees the state that replaying needs.
  void end_replay();
  // Gives every thread the name it had last.
  void use_last_names() { threads_.use_last_names(); }

 private:
  // Postponed: it changes shared data, so the batches before it must be finished first
  // (Batch::ends_before_change).
  enum class Outcome : std::uint8_t { Applied, Postponed };
  Outcome process(const OrderedRecord& record, Batch& batch);
  Outcome process_other(const OrderedRecord& record, Batch& batch);
  Outcome process_build_id(const format::RecordView& view, const Batch& batch);
  void add_build_ids();
  bool can_change_shared(const Batch& batch) const { return previous_is_finished_ && batch.items.empty(); }
  void replay(const format::Record& record, std::uint16_t misc);
  void add_sample(const OrderedRecord& record, Batch& batch);
  void add_other(const OrderedRecord& record, const format::Record& parsed, const format::EventAttr& attr,
                 Batch& batch);
  BatchRecord& add_record(const OrderedRecord& record, Batch& batch);
  static void set_thread(BatchRecord& item, const KnownThread& thread);
  // What BatchReader needs to know of an event's samples.
  struct SampleLayout {
    std::size_t pid_tid_offset = 0;  // offset of pid and tid in samples, bytes; 0: not sampled
    bool has_values = false;         // of counters
  };
  const SampleLayout& layout_of_event(std::uint32_t event);
  std::pair<std::uint32_t, std::uint32_t> pid_and_tid(const OrderedRecord& record, const SampleLayout& event);
  const symbolize::SpaceVersion& space_of(std::uint32_t pid);
  bool is_of_outside(const OrderedRecord& record);
  void note_outside();
  void count_losses(const format::Record& record);

  format::CaptureReader* capture_;
  format::Diagnostics* diagnostics_;
  OrderedRecords records_;
  const BatchOptions* options_ = nullptr;
  symbolize::AddressSpaces spaces_;
  symbolize::JitCode jit_;
  Threads threads_;
  const KnownThread outside_{.thread = {0, 0, kOutsideName}, .renamed = {}};
  format::SampleParser outside_parser_;
  bool keeps_pid_zero_, has_outside_ = false;
  std::uint64_t of_outside_ = 0, reported_outside_ = 0;  // samples
  CgroupNames cgroups_;
  std::vector<SampleLayout> layouts_;     // index: event
  std::optional<OrderedRecord> pending_;  // the record before which the last batch ended
  bool previous_is_finished_ = true;      // no worker holds the previous batch, so shared data may change
  bool is_pipe_ = false;
  std::uint64_t next_item_ = 0;
  std::size_t build_ids_seen_ = 0;
  std::uint64_t lost_samples_ = 0, lost_records_ = 0, reported_losses_ = 0;
  struct RecentSpace {
    std::uint32_t pid = 0;
    const symbolize::SpaceVersion* space = nullptr;
  };
  std::array<RecentSpace, 64> recent_spaces_{};  // direct-mapped cache, by the low bits of the pid
};

}  // namespace tacho::report
