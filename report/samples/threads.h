// Threads of a capture and their current names, while records are replayed in time order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "format/base/seeded_hash.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "report/samples/resolved_sample.h"
#include "symbolize/address_space.h"
#include "tsl/robin_map.h"

namespace tacho::report {

// What a record changes besides mappings of a process.
struct Change {
  bool kernel = false;                   // kernel mappings or symbols
  std::optional<std::uint32_t> renamed;  // tid
  std::optional<std::uint32_t> forked;   // tid of the new thread
};

struct ChangeVisitor {
  std::uint16_t misc;
  Change operator()(const format::MmapRecord& r) const {
    const bool is_kernel = (misc & format::abi::kCpumodeMask) == format::abi::kCpumodeKernel;
    return {.kernel = r.pid == ~0U || is_kernel, .renamed = {}, .forked = {}};
  }
  Change operator()(const format::CommRecord& r) const {
    return {.kernel = false, .renamed = r.tid, .forked = {}};
  }
  Change operator()(const format::TaskRecord& r) const {
    return {.kernel = false, .renamed = {}, .forked = r.is_exit ? std::nullopt : std::optional(r.tid)};
  }
  Change operator()(const format::KsymbolRecord&) const {
    return {.kernel = true, .renamed = {}, .forked = {}};
  }
  Change operator()(const auto&) const { return {}; }
};

struct SubjectVisitor {  // the thread a record is about
  using PidTid = std::optional<std::pair<std::uint32_t, std::uint32_t>>;
  PidTid operator()(const format::MmapRecord& r) const { return std::pair(r.pid, r.tid); }
  PidTid operator()(const format::CommRecord& r) const { return std::pair(r.pid, r.tid); }
  PidTid operator()(const format::TaskRecord& r) const { return std::pair(r.pid, r.tid); }
  PidTid operator()(const format::NamespacesRecord& r) const { return std::pair(r.pid, r.tid); }
  PidTid operator()(const auto&) const { return std::nullopt; }
};

// A thread while records are replayed.
struct KnownThread {
  Thread thread;                            // other threads read it, so it does not change during a run
  std::optional<std::string_view> renamed;  // its current name, if not thread.comm
  std::string_view comm() const { return renamed.value_or(thread.comm); }
};

// As in perf, a thread keeps the name of its last COMM or FORK, also after an EXIT.
class Threads {
 public:
  const KnownThread& find_thread(std::uint32_t pid, std::uint32_t tid,
                                 const symbolize::AddressSpaces& spaces) {
    const auto [known, is_new] = by_tid_.try_emplace(tid, nullptr);
    if (is_new || known->second->thread.pid != pid)
      known.value() = &threads_.emplace_back(KnownThread{{pid, tid, spaces.comm(pid, tid)}, {}});
    return *known->second;
  }
  void apply(const Change& change, const symbolize::AddressSpaces& spaces) {
    if (change.forked) by_tid_.erase(*change.forked);
    if (!change.renamed) return;
    const auto known = by_tid_.find(*change.renamed);
    if (known == by_tid_.end()) return;
    const Thread& thread = known->second->thread;
    known->second->renamed = spaces.comm(thread.pid, thread.tid);
  }
  // Gives every thread its last name.
  void use_last_names() {
    for (KnownThread& known : threads_) known.thread.comm = known.comm();
  }
  // Frees all but the threads. No lookups or changes afterwards.
  void end_lookups() { decltype(by_tid_)().swap(by_tid_); }

 private:
  std::deque<KnownThread> threads_;
  tsl::robin_map<std::uint32_t, KnownThread*, format::SeededHash> by_tid_;  // the latest thread of a tid
};

}  // namespace tacho::report
