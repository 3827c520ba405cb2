// The waits and samples of each thread, in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/wall_times.h"

namespace tacho::report {

// Threads of a pool have one name with numbers: "worker-12" is "worker-*".
std::string family_of(std::string_view comm);

// Names of threads of which those of one family have one. Where only one of them occurs, it is no family.
class NameFamilies {
 public:
  void add_name(std::string_view comm);
  // After all names: "worker-*", "python3".
  std::string shown_name(std::string_view comm) const;

 private:
  std::map<std::string, std::string_view> names_;  // by family: the only one; empty: there are several
};

struct WaitTime {
  std::uint64_t duration = 0;  // ns
  std::uint32_t waits = 1;     // with such a duration
  bool operator<(const WaitTime& other) const { return duration < other.duration; }
};
// The duration that half of the waits do not reach, ns; 0: there are none. Sorts them.
std::uint64_t median_of(std::vector<WaitTime>& waits);

class ThreadSpans {
 public:
  // After WallTimes::finish(); it must outlive this.
  explicit ThreadSpans(const WallTimes& times);

  // The spans of a thread that overlap a time, in order.
  std::span<const WallSpan> between(std::uint32_t thread, std::uint64_t begin, std::uint64_t end) const;
  // The number of the thread with this tid that lived then; nullopt: none.
  std::optional<std::uint32_t> thread_at(std::uint32_t tid, std::uint64_t time) const;

 private:
  const WallTimes* times_;
  std::vector<WallSpan> spans_;      // by thread, then by end
  std::vector<std::size_t> starts_;  // of each thread, and the end
  std::unordered_multimap<std::uint32_t, std::uint32_t> by_tid_;
};

}  // namespace tacho::report
