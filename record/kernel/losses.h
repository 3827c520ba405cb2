// What was lost of an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacho::record {

struct Losses {
  std::size_t event = 0;  // index in the plan
  std::uint64_t id = 0;
  std::uint64_t lost = 0;
  std::uint64_t cgroup = 0;                           // the kernel's number; 0: not told
  std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ns; first above last: not told
  int cpu = -1;                                       // where `id` does not say
};

// To `all`, where what several sources lost of the same stands once. Nothing lost adds nothing.
void add_loss(std::vector<Losses>& all, const Losses& loss);

}  // namespace tacho::record
