// Threads of a capture and their current names, while records are replayed in time order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/samples/record_effects.h"
#include "report/samples/resolved_sample.h"
#include "symbolize/address_space.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// A thread as it is known while records are replayed.
struct KnownThread {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  Thread shown;                   // given out: changes no more while others may look at it
  std::uint32_t renamed = kNone;  // number of the name that it has now, if that is another
};

// The threads met so far. perf keeps a thread's name from its last COMM or FORK on, whatever exits in
// between.
class Threads {
 public:
  const KnownThread& find(std::uint32_t pid, std::uint32_t tid, const symbolize::AddressSpaces& spaces) {
    KnownThread*& recent = recent_[tid % recent_.size()];
    if (recent != nullptr && recent->shown.tid == tid && recent->shown.pid == pid) return *recent;
    const auto [row, is_new] = by_tid_.try_emplace(tid, 0);
    if (is_new || all_[row->second].shown.pid != pid) {
      const std::string_view comm = spaces.comm(pid, tid);
      row.value() = static_cast<std::uint32_t>(all_.size());
      all_.push_back({.shown = {pid, tid, comm}});
    }
    recent = &all_[row->second];
    return *recent;
  }
  std::string_view comm(const KnownThread& thread) const {  // now
    return thread.renamed == KnownThread::kNone ? thread.shown.comm : names_[thread.renamed];
  }
  void apply(const Change& change, const symbolize::AddressSpaces& spaces) {
    if (change.born) {
      by_tid_.erase(*change.born);
      recent_[*change.born % recent_.size()] = nullptr;
    }
    if (!change.renamed) return;
    if (const auto row = by_tid_.find(*change.renamed); row != by_tid_.end()) {
      KnownThread& thread = all_[row->second];
      if (thread.renamed == KnownThread::kNone) {
        thread.renamed = static_cast<std::uint32_t>(names_.size());
        names_.emplace_back();
      }
      names_[thread.renamed] = spaces.comm(thread.shown.pid, thread.shown.tid);
    }
  }
  void settle_names() {
    for (KnownThread& thread : all_) thread.shown.comm = comm(thread);
  }
  // Gives back the memory that finding takes: nothing more is found or changed. Threads stay.
  void end_lookups() {
    decltype(by_tid_)().swap(by_tid_);
    recent_.fill(nullptr);
  }

 private:
  std::deque<KnownThread> all_;
  std::vector<std::string_view> names_;                                      // of renamed ones
  tsl::robin_map<std::uint32_t, std::uint32_t, format::SeededHash> by_tid_;  // in all_: alive, or last alive
  std::array<KnownThread*, 256> recent_{};  // some of them, by the low bits of the tid
};

}  // namespace tacho::report
