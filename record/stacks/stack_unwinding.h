// --call-graph eh: users' stacks walked in the kernel, by a BPF program and tables of the binaries' own
// unwind information. This keeps the program's tables and mappings up to date while a recording runs, and
// puts the stacks into their samples.
//
//   auto stacks = StackUnwinding::create(plan, events, host, {...}, log);   // attached; nothing is sampled
//   yet stacks->begin(processes);            // what runs already stacks->take(ring, records, begin);  // for
//   each ring, again and again stacks->end_pass();                  // after all rings
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/perf_ring.h"
#include "record/plan.h"
#include "record/stacks/stack_splice.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

inline constexpr std::uint64_t kTableBudget = std::uint64_t{64} << 20;  // bytes of unwind tables

class StackUnwinding {
 public:
  using Log = std::function<void(std::string_view)>;

  // Whether an event of the plan wants it.
  static bool is_wanted(const Plan& plan);
  // Loads the program and attaches it to the events. `plan`, `events` and their rings must stay where they
  // are.
  static Result<std::unique_ptr<StackUnwinding>> create(const Plan& plan, KernelEvents& events,
                                                        const Host& host, const Log& log);
  StackUnwinding(const StackUnwinding&) = delete;
  StackUnwinding& operator=(const StackUnwinding&) = delete;
  ~StackUnwinding();

  // Mappings of what runs now, once the kernel tells of later ones; then waits for their tables for a moment,
  // so that the first samples are as good as the last.
  void begin(std::span<const int> processes);

  // A program that will be started soon: its table is built meanwhile.
  void expect(const std::string& path);

  // What `records` hold from `begin` on came from `ring`: samples get their stacks, and what is told of
  // processes is noted. Bytes that are no records stay as they are.
  void take(const PerfRing& ring, std::vector<std::byte>& records, std::size_t begin);
  // The same of a copy of a ring that is written over and over.
  void take_copy(std::vector<std::byte>& records, std::size_t begin);
  // Every ring was looked at: what was told of processes holds from now on.
  void end_pass();

  const StackCounts& counts() const;
  TableFacts tables() const;

 private:
  struct State;
  explicit StackUnwinding(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The line for the end of a recording: how many stacks are whole, and why the others are not. Empty without
// samples.
std::string described(const StackCounts& counts);
// Tables and memory, for -v.
std::string described(const TableFacts& facts);

}  // namespace tacho::record
