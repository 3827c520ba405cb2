#include "report/views/why/thread_spans.h"

#include <algorithm>
#include <cctype>
#include <tuple>

namespace tacho::report {

std::string family_of(std::string_view comm) {
  std::size_t size = comm.size();
  while (size > 0 && std::isdigit(static_cast<unsigned char>(comm[size - 1])) != 0) --size;
  if (size == comm.size() || size == 0) return std::string(comm);
  return std::string(comm.substr(0, size)) + "*";
}

void NameFamilies::add_name(std::string_view comm) {
  const auto [known, is_new] = names_.try_emplace(family_of(comm), comm);
  if (!is_new && known->second != comm) known->second = {};
}

std::string NameFamilies::shown_name(std::string_view comm) const {
  std::string family = family_of(comm);
  const auto known = names_.find(family);
  return known == names_.end() || known->second == comm ? std::string(comm) : family;
}

std::uint64_t median_of(std::vector<WaitTime>& waits) {
  std::sort(waits.begin(), waits.end());
  std::uint64_t count = 0, shorter = 0;
  for (const WaitTime& one : waits) count += one.waits;
  const auto middle = std::ranges::find_if(waits, [&](const WaitTime& one) {
    shorter += one.waits;
    return shorter > count / 2;
  });
  return middle == waits.end() ? 0 : middle->duration;
}

ThreadSpans::ThreadSpans(const WallTimes& times)
    : times_(&times), spans_(times.spans()), starts_(times.threads().size() + 1) {
  const auto thread_of = [&](const WallSpan& span) { return times.rows()[span.row].thread; };
  std::ranges::sort(spans_, [&](const WallSpan& a, const WallSpan& b) {
    return std::tuple(thread_of(a), a.end, a.begin) < std::tuple(thread_of(b), b.end, b.begin);
  });
  std::size_t at = 0;
  for (std::uint32_t thread = 0; thread < times.threads().size(); ++thread) {
    by_tid_.emplace(times.threads()[thread].tid, thread);
    starts_[thread] = at;
    while (at < spans_.size() && thread_of(spans_[at]) == thread) ++at;
  }
  starts_.back() = spans_.size();
}

std::span<const WallSpan> ThreadSpans::between(std::uint32_t thread, std::uint64_t begin,
                                               std::uint64_t end) const {
  const auto all = std::span(spans_).subspan(starts_[thread], starts_[thread + 1] - starts_[thread]);
  const auto first = std::ranges::upper_bound(all, begin, {}, &WallSpan::end);
  auto last = first;
  while (last != all.end() && last->begin < end) ++last;
  return {first, last};
}

std::optional<std::uint32_t> ThreadSpans::thread_at(std::uint32_t tid, std::uint64_t time) const {
  const auto [first, last] = by_tid_.equal_range(tid);
  std::optional<std::uint32_t> any;
  for (auto known = first; known != last; ++known) {
    const WallThread& thread = times_->threads()[known->second];
    if (thread.begin <= time && time <= thread.end) return known->second;
    any = known->second;
  }
  return any;
}

}  // namespace tacho::report
