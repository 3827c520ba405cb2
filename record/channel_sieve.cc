#include "record/channel_sieve.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "format/cursor.h"
#include "format/perf_abi.h"
#include "format/record_view.h"

namespace tacho::record {

// A thread that the list has, and that starts another one before it is followed, starts it unseen: so the
// list is read again until it says nothing new.
Result<bpf::Follower> follow_target(const Target& target, const TargetTasks& tasks,
                                    std::optional<int> command) {
  constexpr int kMostLooks = 20;
  const bool with_children = target.watch != Watch::Threads && target.inherit;
  auto follower = bpf::Follower::create(with_children ? bpf::Children::Followed : bpf::Children::Ignored);
  if (!follower && (follower.error().code == EPERM || follower.error().code == EACCES))
    return Error{
        "not permitted: BPF programs need root, or CAP_BPF and CAP_PERFMON (sudo setcap "
        "cap_perfmon,cap_bpf+ep on tacho-record)",
        follower.error().code};
  if (!follower)
    return Error{"BPF programs cannot be told whose events are wanted: " + follower.error().what +
                     "; take those of everybody with -a",
                 follower.error().code};
  if (command) follower->set(*command, bpf::Followed::FromExec);
  std::vector<int> threads = tasks.threads;
  for (int look = 0; look < kMostLooks; ++look) {
    bool any_new = false;
    for (const int thread : threads) {
      any_new |= follower->state(thread) != bpf::Followed::Yes;
      follower->set(thread, bpf::Followed::Yes);
    }
    if (!any_new || target.watch != Watch::Processes) break;
    auto now = tasks_of(target);
    if (!now) break;  // all of them have ended
    threads = std::move(now->threads);
  }
  return follower;
}

ChannelSieve::ChannelSieve(std::vector<std::uint64_t> ids, std::function<bool(int thread)> is_followed)
    : ids_(std::move(ids)), is_followed_(std::move(is_followed)) {
  std::ranges::sort(ids_);
}

void ChannelSieve::limit(std::vector<std::uint64_t> ids, const bpf::EventRate& rate) {
  limited_ = std::move(ids);
  std::ranges::sort(limited_);
  limit_ = RateLimit(rate);
}

// Every planned event samples IDENTIFIER, IP, TID and TIME, in this order.
bool ChannelSieve::keeps(const std::byte* record, std::size_t size) {
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

void ChannelSieve::sift(std::vector<std::byte>& records, std::size_t begin) {
  std::size_t to = begin;
  for (std::size_t from = begin; from < records.size();) {
    format::Cursor header(format::Bytes(records).subspan(from));
    header.u32();  // type
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (header.failed() || size < format::kRecordHeaderSize || size > records.size() - from) {
      const std::size_t rest = records.size() - from;  // no whole records: whoever counts them will say so
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

}  // namespace tacho::record
