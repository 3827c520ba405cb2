// Threads of a capture and their current names, while records are replayed in time order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/samples/resolved_sample.h"
#include "symbolize/address_space.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// What a record changes in address spaces and threads.
struct Change {
  bool kernel = false;
  std::optional<std::uint32_t> pid;      // the process whose mappings change
  std::optional<std::uint32_t> renamed;  // tid
  std::optional<std::uint32_t> forked;   // tid of the new thread
  std::optional<std::uint32_t> parent;   // pid of the process that forked
};

struct ChangeOf {
  std::uint16_t misc;
  Change operator()(const format::MmapRecord& r) const {
    if (r.pid == ~0U || (misc & format::abi::kCpumodeMask) == format::abi::kCpumodeKernel)
      return {.kernel = true, .pid = {}, .renamed = {}, .forked = {}, .parent = {}};
    return {.kernel = false, .pid = r.pid, .renamed = {}, .forked = {}, .parent = {}};
  }
  Change operator()(const format::CommRecord& r) const {
    return {.kernel = false,
            .pid = r.is_exec ? std::optional(r.pid) : std::nullopt,
            .renamed = r.tid,
            .forked = {},
            .parent = {}};
  }
  Change operator()(const format::TaskRecord& r) const {
    if (r.is_exit) return {};
    // A thread shares its process's mappings.
    return {.kernel = false,
            .pid = r.pid == r.parent_pid ? std::nullopt : std::optional(r.pid),
            .renamed = {},
            .forked = r.tid,
            .parent = r.pid == r.parent_pid ? std::nullopt : std::optional(r.parent_pid)};
  }
  Change operator()(const format::KsymbolRecord&) const {
    return {.kernel = true, .pid = {}, .renamed = {}, .forked = {}, .parent = {}};
  }
  Change operator()(const auto&) const { return {}; }
};

struct SubjectOf {  // the thread a record is about
  using Pair = std::optional<std::pair<std::uint32_t, std::uint32_t>>;
  Pair operator()(const format::MmapRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::CommRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::TaskRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const format::NamespacesRecord& r) const { return std::pair(r.pid, r.tid); }
  Pair operator()(const auto&) const { return std::nullopt; }
};

// A thread while records are replayed.
struct KnownThread {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  Thread shown;                   // other threads read it, so it does not change during a run
  std::uint32_t renamed = kNone;  // number of its current name, if that is another
};

// As in perf, a thread keeps the name of its last COMM or FORK, also after an EXIT.
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
  std::string_view comm(const KnownThread& thread) const {  // its current name
    return thread.renamed == KnownThread::kNone ? thread.shown.comm : names_[thread.renamed];
  }
  void apply(const Change& change, const symbolize::AddressSpaces& spaces) {
    if (change.forked) {
      by_tid_.erase(*change.forked);
      recent_[*change.forked % recent_.size()] = nullptr;
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
  // Gives every thread its last name.
  void settle_names() {
    for (KnownThread& thread : all_) thread.shown.comm = comm(thread);
  }
  // Frees all but the threads. No lookups or changes afterwards.
  void end_lookups() {
    decltype(by_tid_)().swap(by_tid_);
    recent_.fill(nullptr);
  }

 private:
  std::deque<KnownThread> all_;
  std::vector<std::string_view> names_;  // of renamed threads
  tsl::robin_map<std::uint32_t, std::uint32_t, format::SeededHash>
      by_tid_;                              // the last thread with a tid, in all_
  std::array<KnownThread*, 256> recent_{};  // a cache, by the low bits of the tid
};

}  // namespace tacho::report
