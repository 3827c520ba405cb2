#include "record/stacks/stack_unwinding.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpf/unwinder/stack_walker.h"
#include "format/base/byte_writer.h"
#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "record/host/running_processes.h"
#include "record/kernel/perf_event.h"
#include "record/parse_text.h"
#include "record/plan/stack_choice.h"
#include "record/stacks/deferred_samples.h"
#include "record/stacks/file_table.h"
#include "record/stacks/mmap_events.h"
#include "record/stacks/unwind_tables.h"

namespace tacho::record {

namespace {

using Counted = std::vector<std::pair<std::uint64_t, std::string_view>>;  // most frequent first
struct Ends {
  std::uint64_t all = 0, whole = 0;
  Counted others;
  Counted without;  // samples of threads without a user stack; not in `all`
};

Ends ends_of(const StackCounts& counts) {
  constexpr std::array<std::string_view, TACHO_END_COUNT> kReasons{
      "",
      "",
      "at the maximum of frames",
      "in processes that had just started",
      "at an address whose mapping was not known yet",
      "at code whose unwind table was not read yet",
      "in code without unwind information",
      "at an unwind rule that tables cannot represent",
      "where the stack was not in memory",
      "at a frame that is not above the last one",
      "of 32-bit programs",
      "as their processes ended",
      "in execve, between two programs",
      "deeper than the part of the stack that was copied",
      "as their processes are outside of this pid namespace"};
  constexpr std::size_t kWithoutStack[] = {TACHO_END_EXITING, TACHO_END_EXEC, TACHO_END_OUTSIDE};
  Ends ends;
  ends.all = counts.without;
  for (const std::uint64_t count : counts.ends) ends.all += count;
  for (const auto how : kWithoutStack) {
    ends.all -= counts.ends[how];
    if (counts.ends[how] != 0) ends.without.emplace_back(counts.ends[how], kReasons[how]);
  }
  ends.whole = counts.ends[TACHO_END_WHOLE] + counts.ends[TACHO_END_FRAME_ZERO];
  for (std::size_t how = TACHO_END_CUT; how < TACHO_END_COUNT; ++how)
    if (counts.ends[how] != 0 && std::ranges::find(kWithoutStack, how) == std::end(kWithoutStack))
      ends.others.emplace_back(counts.ends[how], kReasons[how]);
  if (counts.without != 0)
    ends.others.emplace_back(
        counts.without, "before their first step, as the process was not known yet or the rings were full");
  for (Counted* const counted : {&ends.others, &ends.without})
    std::ranges::stable_sort(*counted, std::greater<>{}, &Counted::value_type::first);
  return ends;
}

double percent(std::uint64_t count, std::uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(all);
}

}  // namespace

StackCounts operator-(StackCounts counts, const StackCounts& before) {
  for (std::size_t how = 0; how < counts.ends.size(); ++how) counts.ends[how] -= before.ends[how];
  counts.frames -= before.frames;
  counts.without -= before.without;
  counts.unused -= before.unused;
  counts.finished -= before.finished;
  return counts;
}

std::string stack_counts_text(const StackCounts& counts) {
  const Ends ends = ends_of(counts);
  if (ends.all == 0) return "";
  std::string text =
      fmt::format("User stacks: {:.2f} % of {} are whole", percent(ends.whole, ends.all), ends.all);
  if (!ends.others.empty()) text += "; others end";
  for (const auto& [count, reason] : ends.others) {
    const bool is_first = &reason == &ends.others.front().second;
    text += fmt::format("{} {} ({:.2f} %)", is_first ? "" : ",", reason, percent(count, ends.all));
  }
  for (const auto& [count, reason] : ends.without) {
    const bool is_first = &reason == &ends.without.front().second;
    text += fmt::format("{} {} {}", is_first ? "; samples where there is none:" : ",", count, reason);
  }
  return text;
}

bool are_mostly_whole(const StackCounts& counts) {
  constexpr double kExpected = 95;
  const Ends ends = ends_of(counts);
  return ends.all == 0 || percent(ends.whole, ends.all) >= kExpected;
}

format::StringPairs stack_counts_facts(const StackCounts& counts) {
  const Ends ends = ends_of(counts);
  if (ends.all == 0) return {};
  format::StringPairs facts{
      {"walked", std::to_string(ends.all)},
      {"whole", fmt::format("{} ({:.2f} %)", ends.whole, percent(ends.whole, ends.all))}};
  if (counts.finished != 0)
    facts.emplace_back("of them finished by the recorder",
                       fmt::format("{} ({:.2f} %)", counts.finished, percent(counts.finished, ends.all)));
  for (const auto& [count, reason] : ends.others)
    facts.emplace_back("others end " + std::string(reason),
                       fmt::format("{} ({:.2f} %)", count, percent(count, ends.all)));
  for (const auto& [count, reason] : ends.without)
    facts.emplace_back("samples where there is none, " + std::string(reason), std::to_string(count));
  return facts;
}

std::string table_facts_text(const TableFacts& facts) {
  return fmt::format(
      "unwind tables: {} files, {} of them without one; {:.1f} MB of {:.0f} MB; built in {:.0f} ms of CPU; "
      "{} had to make room; {} were found by stacks before their mapping was known",
      facts.files, facts.bare, static_cast<double>(facts.bytes) / (1 << 20),
      static_cast<double>(facts.budget) / (1 << 20), static_cast<double>(facts.building.count()) / 1000.0,
      facts.evicted, facts.asked);
}

namespace {

namespace abi = format::abi;

// The recorder's events that write walks into the rings of the samples.
PlannedEvent walk_event(const PlannedEvent& sample) {
  PlannedEvent event;
  event.name = "stacks";
  event.attr.size = sample.attr.size;
  event.attr.type = abi::kSoftware;
  event.attr.config = abi::kBpfOutput;
  event.attr.sample_period = 1;
  // The trailer of its LOST records is the samples'.
  constexpr std::uint64_t kOfTrailer = abi::kSampleTid | abi::kSampleTime | abi::kSampleId |
                                       abi::kSampleStreamId | abi::kSampleCpu | abi::kSampleIdentifier;
  event.attr.sample_type = (sample.attr.sample_type & kOfTrailer) | abi::kSampleIdentifier | abi::kSampleRaw;
  event.attr.read_format = abi::kReadId | (sample.attr.read_format & abi::kReadLost);  // if the kernel has it
  event.attr.flags =
      sample.attr.flags & (abi::kUseClockid | abi::kWriteBackward | abi::kWatermark | abi::kSampleIdAll);
  event.attr.clockid = sample.attr.clockid;
  event.attr.wakeup = sample.attr.wakeup;
  return event;
}

// Holds the program on a tracepoint. It takes no samples and is not inherited: when a child's copy of an
// event with a program is closed, the kernel detaches the program from the tracepoint for all.
PlannedEvent holder_of(const PlannedEvent& sample) {
  PlannedEvent event;
  event.name = sample.name;
  event.attr.size = sample.attr.size;
  event.attr.type = sample.attr.type;
  event.attr.config = sample.attr.config;
  event.attr.sample_period = 1;
  event.attr.flags = abi::kDisabled;
  return event;
}

}  // namespace

bpf::StackHook hook_of(const PlannedEvent& event) {
  if (event.attr.type == abi::kTracepoint) return bpf::StackHook::Tracepoint;
  return event.probe_target.empty() ? bpf::StackHook::Overflow : bpf::StackHook::Probe;
}

Result<WalksEvent> open_walks(bpf::StackWalker& walker, const OpenEvent& open, const PlannedEvent& planned,
                              const Host& host) {
  const PlannedEvent writer = walk_event(planned);
  auto walks = open_event(writer, -1, open.cpu);
  if (!walks) return explain_refusal(writer, open.cpu, walks.error().code, host).in("--call-graph ehframe");
  if (auto done = share_ring(*walks, open.fd); !done)
    return std::move(done.error()).in("--call-graph ehframe");
  const auto id = id_of_event(*walks);
  if (!id) return id.error();
  if (auto done = walker.put_output(open.cpu, walks->get()); !done) return std::move(done.error());
  return WalksEvent{std::move(*walks), writer.attr, *id};
}

// The condition of --filter is evaluated first, and calls the walk itself.
Result<> WalkHooks::attach_behind_condition(const OpenEvent& open, const PlannedEvent& planned,
                                            bpf::StackHook hook) {
  auto known = conditions_.find(open.event);
  if (known == conditions_.end()) {
    const auto kind =
        hook == bpf::StackHook::Overflow ? bpf::EventFilter::Hook::Overflow : bpf::EventFilter::Hook::Probe;
    auto filter = bpf::EventFilter::load(planned.condition, kind, walker_->program(hook));
    if (!filter) return std::move(filter.error());
    known = conditions_.emplace(open.event, std::move(*filter)).first;
  }
  return known->second.attach(open.fd.get());
}

Result<> WalkHooks::attach(const OpenEvent& open, const PlannedEvent& planned, const Host& host) {
  const auto hook = hook_of(planned);
  int held_by = open.fd.get();
  if (hook == bpf::StackHook::Tracepoint) {
    if (!hooked_.emplace(planned.attr.type, planned.attr.config).second) return Done{};
    const PlannedEvent holder = holder_of(planned);
    auto opened = open_event(holder, -1, std::max(open.cpu, 0));
    if (!opened)
      return explain_refusal(holder, open.cpu, opened.error().code, host).in("--call-graph ehframe");
    holders_.push_back(std::move(*opened));
    held_by = holders_.back().get();
  }
  if (!planned.condition.empty() && hook != bpf::StackHook::Tracepoint) {
    if (auto done = attach_behind_condition(open, planned, hook); !done)
      return std::move(done.error()).in("--filter: event '" + planned.name + "'");
    return Done{};
  }
  auto link = walker_->attach(hook, held_by);
  if (!link) return std::move(link.error()).in("--call-graph ehframe: event '" + planned.name + "'");
  if (hook == bpf::StackHook::Tracepoint) {
    held_.push_back(std::move(*link));
  } else {
    links_.insert_or_assign({open.event, open.cpu, open.task}, std::move(*link));
  }
  return Done{};
}

namespace {

using Clock = std::chrono::steady_clock;

// Stacks that come before their tables are finished from copies, so the start waits only this long for
// tables.
constexpr std::chrono::milliseconds kPatienceAtStart{30};
constexpr std::chrono::milliseconds kPatienceWithProgram{200};  // of a COMMAND; a compiler's table takes 50
constexpr std::chrono::milliseconds kPatienceByDefault{50};  // the same, if ehframe is only the default (-g)
constexpr std::chrono::seconds kLingering{2};   // a process may have threads after its first one has ended
constexpr std::uint32_t kRangesOfProcess = 48;  // for each process now, and as many for later ones
constexpr std::uint32_t kLeastRanges = 1U << 16, kMostRanges = 1U << 22;
constexpr std::uint32_t kLeastProcesses = 4096;
// If the program reads mappings itself, ranges are for deferred stacks only, which find others by reading the
// process's mappings; each mapping costs a copy of all.
constexpr std::size_t kRangesForDeferred = 1024;

std::uint32_t running_processes() {
  return static_cast<std::uint32_t>(RunningProcesses("/proc", 0).all().size());
}
std::uint32_t most_ranges_for(std::uint32_t processes) {
  return std::clamp(std::bit_ceil(2 * processes * kRangesOfProcess), kLeastRanges, kMostRanges);
}

// Whether a thread of the process is alive: its first thread may have ended, and other users may read its
// state.
bool has_living_thread(std::uint32_t process) {
  std::error_code failed;
  std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", process), failed);
  for (; !failed && tasks != std::filesystem::directory_iterator(); tasks.increment(failed)) {
    // Unlike "stat" it is never held up by an execve.
    const auto status = format::read_file(tasks->path() / "status");
    if (!status) continue;
    const std::string_view state = format::field_of_status(format::as_text(*status), "State");
    if (!state.starts_with('Z') && !state.starts_with('X')) return true;
  }
  return false;
}

// Whether files can be opened through /proc/PID/map_files, which answers the program's file requests; else
// the kernel's mmap records are needed immediately.
bool may_open_mappings() {
  std::error_code failed;
  const std::filesystem::directory_iterator mappings("/proc/self/map_files", failed);
  return !failed && mappings != std::filesystem::directory_iterator() &&
         format::open_input(mappings->path()).operator bool();
}

// `processes`, or this process (`own`) if there are none: a command will map many of the same files.
std::span<const int> or_own(std::span<const int> processes, const int& own) {
  return processes.empty() ? std::span(&own, 1) : processes;
}

}  // namespace

struct StackUnwinding::State {
  State(bpf::StackWalker loaded, const format::EventAttr& sideband_attr, std::uint32_t ranges,
        std::size_t most_frames, const std::shared_ptr<ForeignReader>& foreign)
      : walker(std::move(loaded)),
        reader(foreign),
        sideband(sideband_attr),
        maps(walker.reads_mappings() ? kRangesForDeferred : std::size_t{TACHO_MOST_RANGES_OF_PROCESS}),
        id_ranges(ranges),
        tables(walker, kTableBudget, reader),
        deferred({[this] { walker.enable_copies(); },
                  [this](const auto& sink) { (void)walker.take_copies(sink); }},
                 most_frames, reader) {}

  bpf::StackWalker walker;
  std::shared_ptr<ForeignReader> reader;
  format::EventAttr sideband;
  bool is_asked_for = true;     // --call-graph ehframe, and not only -g
  mutable std::mutex counting;  // guards the merger's counts, which the writing thread reads, too
  struct Ring {
    bool is_sideband = false;
    WalksEvent walks;
    std::uint64_t walks_id = 0;       // of the first walk event
    std::uint64_t reported_lost = 0;  // walks among the records counted by LOST records
    CallchainMerger::Waiting waiting;
  };
  std::unordered_map<const PerfRing*, Ring> rings;
  WalkHooks hooks{walker};
  Result<> join(const OpenEvent& open, const Plan& plan, PerfRing& ring, const Host& host);
  Result<> give_walks(const OpenEvent& open, const PlannedEvent& planned, PerfRing& ring, const Host& host);

  CallchainMerger merger;
  std::vector<MmapEvent> mmap_events;
  CodeMaps maps;
  // Copies of ranges in the kernel, shared by a process and its children.
  struct Copy {
    std::shared_ptr<const CodeMaps::Ranges> ranges;
    std::uint32_t first = 0, users = 0;
  };
  IdRangeAllocator id_ranges;
  std::map<const CodeMaps::Ranges*, Copy> copies;
  std::unordered_map<std::uint32_t, const CodeMaps::Ranges*> published;  // by process
  std::set<std::uint32_t> unpublished;                                   // processes whose ranges changed
  std::deque<std::pair<Clock::time_point, std::uint32_t>> ended;         // processes whose first thread ended
  std::atomic<std::uint64_t> all_ended{0};                               // their number since the start
  std::uint32_t expected = UnwindTables::kBare;                          // the command's own module
  // Last: their threads use the members above.
  UnwindTables tables;
  DeferredSamples deferred;

  std::uint32_t expect(const std::string& path);
  void apply(const MmapEvent& what);
  bool publish(std::uint32_t process);
  void release(const CodeMaps::Ranges* ranges);
  void forget_ended();
};

void StackUnwinding::State::apply(const MmapEvent& what) {
  if (what.kind == MmapEvent::Kind::Exec && walker.reads_mappings()) tables.forget(what.process);
  switch (what.kind) {
    case MmapEvent::Kind::Map:
      return maps.map(what.process,
                      {what.start, what.end, what.start - what.offset, tables.module_of(what.file),
                       deferred.number_of(what.file)},
                      what.time);
    case MmapEvent::Kind::Fork:
      return maps.fork(what.process, what.parent, what.time);
    case MmapEvent::Kind::Exec:
      return maps.exec(what.process, what.time);
    case MmapEvent::Kind::Exit:
      ended.emplace_back(Clock::now(), what.process);
      ++all_ended;
      return;
  }
}

// New ranges get another slot, because a walk may be reading the old one. False: there is no free slot, and
// the kernel continues with the old ranges, or none.
bool StackUnwinding::State::publish(std::uint32_t process) {
  const auto ranges = maps.ranges(process);
  const auto before = published.find(process);
  const CodeMaps::Ranges* const old = before == published.end() ? nullptr : before->second;
  if (ranges.get() == old && old != nullptr) return true;
  if (ranges) {
    const auto size = static_cast<std::uint32_t>(ranges->size());
    Copy& copy = copies[ranges.get()];
    if (copy.users == 0 && size != 0) {
      const auto first = id_ranges.take_range(size, Clock::now());
      if (!first) {
        copies.erase(ranges.get());
        return false;
      }
      copy.first = *first;
      std::ranges::copy(*ranges, walker.ranges().subspan(*first).begin());
    }
    copy.ranges = ranges;
    ++copy.users;
    if (!walker.set_process(process, {copy.first, size})) {
      release(ranges.get());
      return false;
    }
    published[process] = ranges.get();
  } else {
    published.erase(process);
    walker.remove_process(process);
  }
  if (old != nullptr) release(old);
  return true;
}

void StackUnwinding::State::release(const CodeMaps::Ranges* ranges) {
  const auto copy = copies.find(ranges);
  if (copy == copies.end() || --copy->second.users != 0) return;
  if (!ranges->empty())
    id_ranges.give_back(copy->second.first, static_cast<std::uint32_t>(ranges->size()), Clock::now());
  copies.erase(copy);
}

void StackUnwinding::State::forget_ended() {
  const auto now = Clock::now();
  while (!ended.empty() && now - ended.front().first >= kLingering) {
    const std::uint32_t process = ended.front().second;
    ended.pop_front();
    if (has_living_thread(process)) {
      ended.emplace_back(now, process);  // other threads of it still run, or the pid is used again
      if (ended.size() > kLeastProcesses) ended.pop_back();
      break;
    }
    maps.remove(process);
  }
}

// Opens an event next to `open` that writes its walks; after a CPU was offline, in place of the old one.
Result<> StackUnwinding::State::give_walks(const OpenEvent& open, const PlannedEvent& planned, PerfRing& ring,
                                           const Host& host) {
  auto walks = open_walks(walker, open, planned, host);
  if (!walks) return std::move(walks.error());
  Ring& known = rings[&ring];
  if (known.walks.fd) {
    ring.rename(walks->id, known.walks_id);
  } else {
    known.walks_id = walks->id;
    merger.add_walks(walks->id, walks->attr, open.id);
  }
  known.walks = std::move(*walks);
  known.reported_lost = 0;
  return Done{};
}

Result<> StackUnwinding::State::join(const OpenEvent& open, const Plan& plan, PerfRing& ring,
                                     const Host& host) {
  const PlannedEvent& planned = plan.events[open.event];
  Ring& known = rings[&ring];
  known.is_sideband = planned.is_sideband;
  if (planned.unwound_frames == 0 || planned.unwinds_in_program) return Done{};
  merger.add_event(open.id, planned.attr);
  if (!known.walks.fd)
    if (auto done = give_walks(open, planned, ring, host); !done) return done;
  if (planned.attr.is_bpf_output()) return Done{};  // its program calls the walk
  return hooks.attach(open, planned, host);
}

StackUnwinding::StackUnwinding(std::unique_ptr<State> state) : state_(std::move(state)) {}
StackUnwinding::~StackUnwinding() {
  if (state_ && !state_->tables.end_thread())
    (void)state_.release();  // leaked: the thread hangs, and uses it
}

Result<StackUnwinding::Loaded> StackUnwinding::load(const Plan& plan, const Host& host, const Log& log) {
  Loaded loaded;
  const auto first = std::ranges::max_element(plan.events, {}, &PlannedEvent::unwound_frames);
  if (first == plan.events.end() || first->unwound_frames == 0) {
    if (!plan.events.empty()) relax_sideband(plan, host, loaded.adaptation);
    return loaded;
  }
  bpf::StackWalkerOptions options;
  options.most_frames = first->unwound_frames;
  const std::uint32_t running = running_processes();
  options.most_ranges = most_ranges_for(running);
  options.most_processes = std::bit_ceil(std::max(4 * running, kLeastProcesses));
  options.only_recorded_tasks = plan.tasks != std::vector<int>{-1};
  options.hooks = {};
  for (const PlannedEvent& event : plan.events)
    if (event.unwound_frames != 0 && !event.attr.is_bpf_output())
      options.hooks[static_cast<std::size_t>(hook_of(event))] = true;
  for (const ArgumentProbe& probe : plan.argument_probes)
    if (plan.events[probe.event].unwound_frames != 0)
      options.hooks[static_cast<std::size_t>(bpf::StackHook::Reader)] = true;
  options.most_readers = static_cast<std::uint32_t>(std::max<std::size_t>(plan.argument_probes.size(), 1));
  auto walker = bpf::StackWalker::load(options, log);
  if (!walker && may_use_frame_pointers(plan)) {
    loaded.adaptation = without_unwinding(plan, host, walker.error().what);
    return loaded;
  }
  if (!walker) return std::move(walker.error()).in("--call-graph ehframe");
  if (walker->reads_mappings() && may_open_mappings()) relax_sideband(plan, host, loaded.adaptation);
  loaded.walker = std::move(*walker);
  return loaded;
}

Result<std::unique_ptr<StackUnwinding>> StackUnwinding::create(std::optional<bpf::StackWalker> walker,
                                                               const Plan& plan, KernelEvents& events,
                                                               const Host& host,
                                                               std::shared_ptr<ForeignReader> reader) {
  if (!walker) return std::unique_ptr<StackUnwinding>();
  const auto ranges = static_cast<std::uint32_t>(walker->ranges().size());
  const auto most = std::ranges::max_element(plan.events, {}, &PlannedEvent::unwound_frames)->unwound_frames;
  auto state = std::make_unique<State>(std::move(*walker), plan.events.back().attr, ranges, most, reader);
  state->is_asked_for = !may_use_frame_pointers(plan);
  for (const OpenEvent& open : events.open_events())
    if (auto done = state->join(open, plan, events.rings()[open.ring], host); !done)
      return std::move(done.error());
  if (auto done = state->tables.start(); !done) return std::move(done.error()).in("--call-graph ehframe");
  // Samples of --overwrite stay in their rings: nothing waits for copies of their stacks.
  const bool may_wait = std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return event.unwound_frames != 0 && !event.attr.has(abi::kWriteBackward);
  });
  if (may_wait)
    if (auto done = state->deferred.start(); !done) return std::move(done.error()).in("--call-graph ehframe");
  return std::unique_ptr<StackUnwinding>(new StackUnwinding(std::move(state)));
}

Result<> StackUnwinding::reopen_cpu(int cpu, std::span<const OpenEvent> opened, const Plan& plan,
                                    KernelEvents& events, const Host& host) {
  const std::lock_guard lock(state_->counting);
  std::set<std::size_t> done_rings;
  const auto is_walked = [](const PlannedEvent& planned) {
    return planned.unwound_frames != 0 && !planned.unwinds_in_program;
  };
  for (const OpenEvent& open : events.open_events()) {
    const PlannedEvent& planned = plan.events[open.event];
    PerfRing& ring = events.rings()[open.ring];
    const auto known = state_->rings.find(&ring);
    if (open.cpu != cpu || known == state_->rings.end() || !known->second.walks.fd) continue;
    if (!is_walked(planned) || !done_rings.insert(open.ring).second) continue;
    if (auto done = state_->give_walks(open, planned, ring, host); !done) return done;
  }
  for (const OpenEvent& open : opened) {
    const PlannedEvent& planned = plan.events[open.event];
    PerfRing& ring = events.rings()[open.ring];
    // The ring has walks already if the CPU was offline at first, and comes online again.
    const bool has_walks = is_walked(planned) && state_->rings[&ring].walks.fd;
    if (is_walked(planned) && done_rings.insert(open.ring).second && has_walks)
      if (auto done = state_->give_walks(open, planned, ring, host); !done) return done;
    if (auto done = state_->join(open, plan, ring, host); !done) return done;
  }
  return Done{};
}

std::uint64_t StackUnwinding::left_out_of(std::uint64_t due) const {
  // The part of a period that each task has left at its end is not sampled: up to one sample of each process.
  constexpr std::uint64_t kLeast = 10, kLeastShare = 20;  // one twentieth
  const std::uint64_t missing = due - std::min(due, state_->walker.samples() + state_->all_ended);
  return missing < kLeast || missing < due / kLeastShare ? 0 : missing;
}

bpf::StackWalker& StackUnwinding::walker() { return state_->walker; }

void StackUnwinding::read_running(std::span<const int> processes) {
  if (state_->walker.reads_mappings()) {
    // For deferred stacks: by then a process may be gone, or run another program.
    for (const int process : processes) {
      const auto number = static_cast<std::uint32_t>(process);
      state_->maps.running(number, state_->deferred.ranges_of_running(number));
    }
    const bool is_command = state_->expected != UnwindTables::kBare;
    const auto patience = state_->is_asked_for ? kPatienceWithProgram : kPatienceByDefault;
    const auto end = Clock::now() + patience;
    (void)state_->tables.wait_for(state_->expected, patience);
    // A command shares the few libraries of this process; the whole system has many more.
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    (void)state_->tables.wait(is_command ? std::max(rest, std::chrono::milliseconds(0)) : kPatienceAtStart);
    state_->tables.look_no_further();
    return;
  }
  format::ByteWriter out;
  RunningProcesses running("/proc", format::sample_id_size(state_->sideband), state_->reader,
                           {.build_ids = state_->sideband.has(abi::kBuildId)});
  const int own = getpid();
  for (const int process : or_own(processes, own)) {
    running.describe_process(process, out);
    parse_mmap_events(out.view(), state_->sideband, state_->mmap_events);
    // Threads appear there as forks from a parent that has other mappings.
    std::erase_if(state_->mmap_events,
                  [](const MmapEvent& one) { return one.kind == MmapEvent::Kind::Fork; });
    out.clear();
  }
  std::vector<std::byte> none;  // no samples were taken yet
  end_pass(none);
  (void)state_->tables.wait(kPatienceAtStart);
}

void StackUnwinding::look_at(std::span<const int> processes) {
  const int own = getpid();
  if (state_->walker.reads_mappings()) state_->tables.look_at(or_own(processes, own));
}

std::uint32_t StackUnwinding::State::expect(const std::string& path) {
  auto file = reader->open_file({"/", path}, scope_of_file(0, 0, path, "/proc/self"));
  if (!file) return UnwindTables::kBare;
  const struct stat& info = file->status();
  MappedFile binary;
  know(binary, *file);
  // The kernel's records identify a file without build id differently from its questions.
  const bool has_same_identity = !binary.build_id.empty() && sideband.has(abi::kBuildId);
  if (!has_same_identity && !walker.reads_mappings()) return UnwindTables::kBare;
  binary.major = major(info.st_dev);
  binary.minor = minor(info.st_dev);
  binary.inode = info.st_ino;
  binary.name = path;
  binary.process = static_cast<std::uint32_t>(getpid());
  return tables.module_of(binary);
}

bool StackUnwinding::writes_mappings() const { return !state_->walker.reads_mappings(); }

namespace {

// In a child of the reader: the program's path without links, and those of libraries that it will probably
// map, each ended by a NUL.
Result<std::vector<std::byte>> files_of_program(format::Bytes program) {
  std::error_code failed;
  const std::string path = std::filesystem::canonical(format::as_text(program), failed);
  if (failed) return Error{failed.message(), failed.value()};
  const auto cache = format::read_file("/etc/ld.so.cache");
  format::ByteWriter out;
  out.padded_text(path, 1);
  for (const std::string& library :
       needed_libraries(path, cache ? libraries_of_cache(*cache) : LibraryPaths{}))
    out.padded_text(library, 1);
  return std::move(out).take_bytes();
}

}  // namespace

void StackUnwinding::expect(const std::string& program, const std::function<bool()>& stop) {
  std::error_code failed;
  const std::string path = std::filesystem::absolute(program, failed);
  if (failed) return;
  const auto files = state_->reader->run_work(files_of_program, std::as_bytes(std::span(path)), path, path);
  std::string_view rest = files ? format::as_text(*files) : std::string_view();
  const std::string_view first = take_until(rest, '\0');
  if (first.empty()) return;
  state_->expected = state_->expect(std::string(first));
  while (!rest.empty() && state_->expected != UnwindTables::kBare && !stop())
    (void)state_->expect(std::string(take_until(rest, '\0')));
}

void StackUnwinding::take_records(const PerfRing& ring, std::vector<std::byte>& records, std::size_t begin) {
  const auto found = state_->rings.find(&ring);
  if (found == state_->rings.end() || begin == records.size()) return;
  State::Ring& known = found->second;
  if (!known.is_sideband && !known.walks.fd) return;
  const auto lost_walks = [&known](std::uint64_t most) {
    const std::uint64_t lost =
        lost_by_event(known.walks.fd, known.walks.attr, known.walks.id) - known.reported_lost;
    known.reported_lost += std::min(lost, most);
    return std::min(lost, most);
  };
  const std::size_t held = state_->deferred.fresh().size();
  bool is_done = false;
  try {
    if (known.is_sideband)
      return parse_mmap_events(format::Bytes(records).subspan(begin), state_->sideband, state_->mmap_events);
    const std::lock_guard lock(state_->counting);
    is_done = state_->merger.merge(records, begin, known.waiting, lost_walks, &state_->deferred.fresh());
  } catch (const std::bad_alloc&) {
    known.waiting.clear();  // these samples keep what the kernel wrote
    state_->merger.drop_walks(records, begin);
  }
  if (!is_done) state_->deferred.fresh().resize(held);  // merge() failed: they are still in `records`
}

void StackUnwinding::take_copied_records(std::vector<std::byte>& records, std::size_t begin) {
  CallchainMerger::Waiting waiting;
  const std::lock_guard lock(state_->counting);
  (void)state_->merger.merge(records, begin, waiting, [](std::uint64_t) { return std::uint64_t{0}; });
}

void StackUnwinding::end_pass(std::vector<std::byte>& records) {
  State& state = *state_;
  try {
    std::ranges::stable_sort(state.mmap_events, {}, &MmapEvent::time);
    for (const MmapEvent& one : state.mmap_events) state.apply(one);
    state.forget_ended();
    for (const std::uint32_t process : state.maps.take_changed())
      if (!state.walker.reads_mappings()) state.unpublished.insert(process);
    std::erase_if(state.unpublished, [&state](std::uint32_t process) { return state.publish(process); });
  } catch (const std::bad_alloc&) {
    // Stacks through these mappings end there, with that reason.
  }
  state.mmap_events.clear();
  const std::lock_guard lock(state.counting);
  state.deferred.end_pass(state.maps, state.merger, records);
}

std::uint64_t StackUnwinding::last_pass() const { return state_->deferred.last_pass(); }
bool StackUnwinding::holds_samples_until(std::uint64_t pass) const {
  return state_->deferred.holds_until(pass);
}
void StackUnwinding::begin_file() { state_->deferred.begin_file(); }
bool StackUnwinding::try_end_round() { return state_->deferred.try_end_round(); }
void StackUnwinding::give_up_stacks() { state_->deferred.give_up_stacks(); }

StackCounts StackUnwinding::counts() const {
  const std::lock_guard lock(state_->counting);
  return state_->merger.counts();
}
TableFacts StackUnwinding::tables() const { return state_->tables.facts(); }

Result<UnwoundEvents> open_with_stacks(std::optional<bpf::StackWalker> walker, const Plan& plan,
                                       const Host& host, const std::shared_ptr<ForeignReader>& reader,
                                       const std::function<bool()>& stop) {
  std::string refusal;
  {
    auto events = KernelEvents::open(plan, host, stop);
    if (!events) return std::move(events.error());
    Plan opened = adapted(plan, events->adaptation());
    if (!walker) return UnwoundEvents{std::move(opened), std::move(*events), nullptr};
    auto stacks = StackUnwinding::create(std::move(walker), opened, *events, host, reader);
    if (stacks) return UnwoundEvents{std::move(opened), std::move(*events), std::move(*stacks)};
    if (!may_use_frame_pointers(plan)) return std::move(stacks.error());
    refusal = stacks.error().what;
  }  // closed before the others are opened: their rings use the same memory
  const Plan without = adapted(plan, without_unwinding(plan, host, refusal));
  auto events = KernelEvents::open(without, host, stop);
  if (!events) return std::move(events.error());
  Plan opened = adapted(without, events->adaptation());
  return UnwoundEvents{std::move(opened), std::move(*events), nullptr};
}

}  // namespace tacho::record
