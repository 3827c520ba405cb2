// LiveWindow: the last seconds of a running recording, as a capture in memory. It has two halves; when the
// newer one is full, the older one is dropped. So memory is bounded, however long the recording runs and
// however many processes start.
//
// Each half is a complete capture: the mappings and thread names of a process, as of that time, precede its
// first sample. Processes without samples are left out, so hundreds of short-lived processes a second cost
// nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "format/records/sample.h"
#include "report/samples/ordered_records.h"

namespace tacho::report {

class LiveWindow {
 public:
  using Clock = std::chrono::steady_clock;

  // `half`: the duration of a half; `most_bytes`: limit of both halves.
  LiveWindow(Clock::duration half, std::size_t most_bytes) : half_(half), most_bytes_(most_bytes / 2) {
    older_.begin = newer_.begin = Clock::now();
  }

  // Adds a kernel record: in time order, in host byte order. `attr`: of the record's event.
  void take_record(const OrderedRecord& record, const format::EventAttr& attr);
  // Writes FINISHED_ROUND, so that readers show all records so far.
  void finish_round();
  bool is_full(Clock::time_point now) const {
    return now - newer_.begin >= half_ || newer_.records.size() >= most_bytes_;
  }
  // The newer half becomes the older one, and a new half begins.
  void begin_half(Clock::time_point now);

  // Records that follow the header of a capture.
  const std::vector<std::byte>& older() const { return older_.records; }
  const std::vector<std::byte>& newer() const { return newer_.records; }
  // Start time of the older half, or of the newer one if the older one is empty.
  Clock::time_point begin_time() const { return older_.records.empty() ? newer_.begin : older_.begin; }
  std::uint64_t lost() const { return older_.lost + newer_.lost; }
  // Number of known processes and threads, for tests.
  std::size_t processes() const { return processes_.size(); }
  std::size_t threads() const { return threads_.size(); }

 private:
  struct Half {
    std::vector<std::byte> records;
    std::uint64_t lost = 0;
    Clock::time_point begin;
  };
  // A sideband record that later samples need: mapping, comm, ksymbol.
  struct Kept {
    std::shared_ptr<const std::vector<std::byte>> bytes;  // null: none
    std::size_t time_at = 0;                              // offset of its time; 0: it has none
  };
  struct Mapping {
    std::uint64_t begin = 0, end = 0;
    Kept record;
  };
  using Mappings = std::vector<Mapping>;
  struct Process {
    // Shared with the parent process until one of them adds a mapping; may be null.
    std::shared_ptr<Mappings> mappings;
    std::size_t threads = 0;
    std::uint64_t written_in = 0;   // number of the last half into which its mappings were written
    std::uint64_t last_record = 0;  // number of the half with its last record
  };
  struct Thread {
    std::uint32_t pid = 0;
    Kept name, namespaces;
    std::uint64_t written_in = 0;  // number of the last half into which its name was written
    bool has_ended = false;
  };

  Process& process(std::uint32_t pid);
  Thread& thread(std::uint32_t pid, std::uint32_t tid);
  void begin_thread(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent_pid, std::uint32_t parent_tid);
  void end_thread(std::uint32_t tid);
  void take_mapping(const format::RecordView& view, const Kept& kept);
  void take_name(const format::RecordView& view, Kept kept);
  void take_symbol(const format::RecordView& view, Kept kept);
  void append_process(std::uint32_t pid, std::uint32_t tid, std::uint64_t time);
  void append(format::Bytes record);
  void append_as(const Kept& kept, std::uint32_t pid, std::uint32_t tid, std::uint64_t time);
  void forget_unseen();

  Clock::duration half_;
  std::size_t most_bytes_;
  Half older_, newer_;
  std::uint64_t number_ = 1;  // of the newer half
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::vector<std::uint32_t> ended_;                  // exited threads, whose last samples may still come
  std::vector<Kept> kernel_;                          // mappings
  std::unordered_map<std::uint64_t, Kept> symbols_;   // KSYMBOL records by address
  std::unordered_map<std::uint64_t, Kept> cgroups_;   // by id
  std::unordered_map<std::uint64_t, Kept> programs_;  // BPF, by id
  format::SampleParser parser_;
};

}  // namespace tacho::report
