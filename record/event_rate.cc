#include "record/event_rate.h"

namespace tacho::record {

bool RateLimit::passes(std::uint64_t time) {
  if (rate_.one_in > 1 && seen_++ % rate_.one_in != 0) return false;
  if (rate_.most_a_second == 0) return true;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  // Late events of the second before count in this one: there are never more than allowed.
  if (const std::uint64_t second = time / kSecond; second > second_) {
    second_ = second;
    in_second_ = 0;
  }
  if (in_second_ < rate_.most_a_second) {
    ++in_second_;
    return true;
  }
  ++over_;
  return false;
}

}  // namespace tacho::record
