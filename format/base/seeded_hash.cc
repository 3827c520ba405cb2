#include "format/base/seeded_hash.h"

#include <sys/random.h>

#include <chrono>

namespace tacho::format {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (::getrandom(&word, sizeof word, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof word)) return word;
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return fold_product(now ^ reinterpret_cast<std::uintptr_t>(&word), 0x9fb21c651e98df25);
}

}  // namespace tacho::format
