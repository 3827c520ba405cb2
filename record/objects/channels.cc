#include "record/objects/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cli/message_text.h"
#include "format/base/cursor.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "record/objects/followed_functions.h"

namespace tacho::record {

// A listed thread may start another one before it is followed: read the list again until nothing is new.
Result<bpf::Follower> follow_target(const Target& target, const TargetTasks& tasks,
                                    std::optional<int> command,
                                    const std::optional<bpf::PidNumbers>& numbers) {
  constexpr int kMostLooks = 20;
  const bool with_children = target.watch != Watch::Threads && target.inherit;
  auto follower = bpf::Follower::create(with_children ? bpf::Children::Followed : bpf::Children::Ignored);
  if (!follower && (follower.error().code == EPERM || follower.error().code == EACCES))
    return Error{
        "not permitted: BPF programs need root, or CAP_BPF and CAP_PERFMON, those on tracepoints also "
        "CAP_DAC_READ_SEARCH (tacho doctor prints the setcap command)",
        follower.error().code};
  if (!follower)
    return Error{
        "BPF programs cannot filter by thread: " + follower.error().what + "; record all threads (-a)",
        follower.error().code};
  const auto kernel_tid = [&numbers](int thread) {
    return static_cast<int>(bpf::kernel_tid_of(numbers, static_cast<std::uint32_t>(thread)));
  };
  if (command) follower->set_thread(kernel_tid(*command), bpf::Followed::FromExec);
  std::vector<int> threads = tasks.threads;
  for (int look = 0; look < kMostLooks; ++look) {
    bool any_new = false;
    for (const int thread : threads) {
      const int tid = kernel_tid(thread);
      if (tid == 0) continue;  // it has ended
      any_new |= follower->thread_state(tid) != bpf::Followed::Yes;
      follower->set_thread(tid, bpf::Followed::Yes);
    }
    if (!any_new || target.watch != Watch::Processes) break;
    auto now = tasks_of(target);
    if (!now) break;  // all threads have ended
    threads = std::move(now->threads);
  }
  return follower;
}

TargetFilter::TargetFilter(std::vector<std::uint64_t> ids, std::function<bool(int thread)> is_followed)
    : ids_(std::move(ids)), is_followed_(std::move(is_followed)) {
  std::ranges::sort(ids_);
}

void TargetFilter::limit(std::vector<std::uint64_t> ids, const bpf::EventRate& rate) {
  limited_ = std::move(ids);
  std::ranges::sort(limited_);
  limit_ = RateLimit(rate);
}

// Every planned event samples IDENTIFIER, IP, TID and TIME, in this order.
bool TargetFilter::keeps(const std::byte* record, std::size_t size) {
  format::Cursor in(format::Bytes(record, size));
  const std::uint32_t type = in.u32();
  in.u32();  // misc, size
  const std::uint64_t id = in.u64();
  in.u64();  // ip
  in.u32();  // process
  const std::uint32_t thread = in.u32();
  const std::uint64_t time = in.u64();
  if (in.failed() || type != format::abi::kRecordSample) return true;
  if (std::ranges::binary_search(ids_, id) && !is_followed_(static_cast<int>(thread))) {
    ++dropped_;
    return false;
  }
  return !std::ranges::binary_search(limited_, id) || limit_.passes(time);
}

void TargetFilter::remove_unwanted(std::vector<std::byte>& records, std::size_t begin) {
  std::size_t to = begin;
  for (std::size_t from = begin; from < records.size();) {
    format::Cursor header(format::Bytes(records).subspan(from));
    header.u32();  // type
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (header.failed() || size < format::kRecordHeaderSize || size > records.size() - from) {
      const std::size_t rest = records.size() - from;  // damaged bytes, which the counting step reports
      std::memmove(records.data() + to, records.data() + from, rest);
      to += rest;
      break;
    }
    if (keeps(records.data() + from, size)) {
      if (to != from) std::memmove(records.data() + to, records.data() + from, size);
      to += size;
    }
    from += size;
  }
  records.resize(to);
}

namespace {

// The ids of the perf events in these objects' perf event arrays.
std::vector<std::uint64_t> ids_fed_by(const std::vector<std::size_t>& objects,
                                      const OpenedRecording& recording, const KernelEvents& events) {
  std::vector<std::uint64_t> ids;
  for (const OpenEvent& event : events.open_events()) {
    const bool is_fed = std::ranges::any_of(recording.plan.connections, [&](const Connection& each) {
      return each.event == event.event && each.kind == bpf::ChannelKind::PerfEventArray &&
             std::ranges::find(objects, each.object) != objects.end();
    });
    if (is_fed) ids.push_back(event.id);
  }
  return ids;
}

}  // namespace

Result<FilteringOfObjects> configure_objects(std::span<bpf::UserObject> objects,
                                             const bpf::Follower* follower, const bpf::EventRate& rate,
                                             const Messages& messages) {
  if (rate.limits() && objects.empty())
    return use_error(
        "--sample-rate and --max-rate are for events of BPF objects (-e PROGRAM.bpf.c); for other events, "
        "-c N samples every Nth one, -F a number a second");
  FilteringOfObjects filtering;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    bpf::UserObject& object = objects[i];
    const bool asks = object.set_rate(rate);
    if (!asks) filtering.limited_here.push_back(i);
    if (follows_objects_anywhere(object)) filtering.in_all_threads.push_back(i);
    if (follower != nullptr) (void)object.set_threads(follower->table_fd());
    if (!asks && (rate.limits() || follower != nullptr))
      messages.detail(object.path() +
                      ": does not call tacho_wants() (tacho/emit.h), so tacho-record drops unwanted events");
  }
  return filtering;
}

Result<Channels> Channels::open(const OpenedRecording& recording, const KernelEvents& events,
                                const bpf::EventRate& rate, const SummaryReading& reading) {
  Channels channels(recording);
  auto rings = ChannelRings::open(recording, events, rate);
  if (!rings) return std::move(rings.error());
  channels.rings_ = std::make_shared<ChannelRings>(std::move(*rings));
  auto summaries = Summaries::open(recording, events, reading);
  if (!summaries) return std::move(summaries.error());
  channels.summaries_ = std::make_shared<Summaries>(std::move(*summaries));
  const bool limits_here = rate.limits() && !recording.filtering.limited_here.empty();
  if (!recording.follower && !limits_here) return channels;
  std::vector<std::uint64_t> filtered =
      recording.follower ? events.system_wide_ids() : std::vector<std::uint64_t>();
  const auto unfiltered = ids_fed_by(recording.filtering.in_all_threads, recording, events);
  std::erase_if(filtered,
                [&](std::uint64_t id) { return std::ranges::find(unfiltered, id) != unfiltered.end(); });
  channels.filter_.emplace(std::move(filtered), [&recording](int thread) {
    const auto tid = bpf::kernel_tid_of(recording.numbers, static_cast<std::uint32_t>(thread));
    return recording.follower->thread_state(static_cast<int>(tid)) == bpf::Followed::Yes;
  });
  if (limits_here)
    channels.filter_->limit(ids_fed_by(recording.filtering.limited_here, recording, events), rate);
  return channels;
}

std::vector<Losses> Channels::losses() const {
  auto all = rings_->losses();
  for (const Losses& loss : summaries_->losses()) all.push_back(loss);
  return all;
}

Channels::LeftOut Channels::left_out() const {
  LeftOut all{rings_->dropped(), rings_->over_rate()};
  if (filter_) {
    all.of_others += filter_->dropped();
    all.over_rate += filter_->over_rate();
  }
  for (const bpf::LoadedObject& object : recording_->objects) all.over_rate += object.events_over_rate();
  return all;
}

void report_left_out(const Channels::LeftOut& left_out, const bpf::EventRate& rate,
                     const Messages& messages) {
  if (left_out.of_others != 0)
    messages.note(fmt::format(
        "{} of other threads dropped, that BPF programs reported; with tacho_wants() (tacho/emit.h) "
        "a program drops them in the kernel, before their stacks are walked",
        cli::counted(left_out.of_others, "event")));
  if (left_out.over_rate != 0)
    messages.note(fmt::format("{} of BPF programs above {} dropped",
                              cli::counted(left_out.over_rate, "event"),
                              rate.most_a_second == 0 ? "the rate that their recorder was given"
                                                      : fmt::format("--max-rate {}", rate.most_a_second)));
}

}  // namespace tacho::record
