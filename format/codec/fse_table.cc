#include "format/codec/fse_table.h"

#include <algorithm>
#include <numeric>

namespace tacho::format {

void FseTable::build(std::span<const std::uint32_t> counts) {
  symbols_ = counts.size();
  while (symbols_ > 1 && counts[symbols_ - 1] == 0) --symbols_;
  has_one_symbol_ = std::ranges::count_if(counts, [](std::uint32_t count) { return count != 0; }) == 1;
  if (has_one_symbol_) return;
  share_states(counts.first(symbols_));
  order_states();
}

// In proportion to how often each occurs, but at least one.
void FseTable::share_states(std::span<const std::uint32_t> counts) {
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::size_t given = 0;
  for (std::size_t i = 0; i < symbols_; ++i) {
    shares_[i] = counts[i] == 0 ? std::uint16_t{0}
                                : static_cast<std::uint16_t>(std::max<std::uint64_t>(
                                      1, (counts[i] * std::uint64_t{kStates} + total / 2) / total));
    given += shares_[i];
  }
  const auto shares = std::span(shares_).first(symbols_);
  for (; given > kStates; --given) --*std::ranges::max_element(shares);
  *std::ranges::max_element(shares) += static_cast<std::uint16_t>(kStates - given);
}

// The states of each symbol are spread over all, as the standard says, so that any state has one of a
// frequent symbol near it.
void FseTable::order_states() {
  constexpr std::size_t kStride = kStates / 2 + kStates / 8 + 3;
  std::array<std::uint8_t, kStates> symbol_of{};
  std::array<std::uint16_t, kMostSymbols> place{};
  std::size_t at = 0;
  std::uint32_t before = 0;  // states of lower symbols
  for (std::size_t symbol = 0; symbol < symbols_; ++symbol) {
    const std::uint32_t share = shares_[symbol];
    place[symbol] = static_cast<std::uint16_t>(before);
    for (std::uint32_t i = 0; i < share; ++i) {
      symbol_of[at] = static_cast<std::uint8_t>(symbol);
      at = (at + kStride) % kStates;
    }
    if (share == 0) continue;
    // A state gives as many bits as leave one of [share, 2 * share).
    const std::uint32_t most_bits = kLog - (static_cast<std::uint32_t>(std::bit_width(share - 1)) - 1);
    steps_[symbol] = share == 1 ? Step{(kLog << 16) - static_cast<std::uint32_t>(kStates),
                                       static_cast<std::int32_t>(before) - 1}
                                : Step{(most_bits << 16) - (share << most_bits),
                                       static_cast<std::int32_t>(before) - static_cast<std::int32_t>(share)};
    before += share;
  }
  for (std::size_t state = 0; state < kStates; ++state)
    next_[place[symbol_of[state]]++] = static_cast<std::uint16_t>(kStates + state);
}

std::byte* FseTable::describe(std::byte* out) const {
  if (has_one_symbol_) {
    *out = static_cast<std::byte>(symbols_ - 1);
    return out + 1;
  }
  constexpr unsigned kLeastLog = 5;
  BitWriter bits(out);
  bits.add(kLog - kLeastLog, 4);
  std::uint32_t left = kStates + 1, threshold = kStates;
  unsigned width = kLog + 1;
  bool is_behind_zero = false;
  for (std::size_t symbol = 0; left > 1;) {
    if (is_behind_zero) {
      std::size_t zeros = 0;
      for (; shares_[symbol] == 0; ++symbol) ++zeros;
      for (; zeros >= 3; zeros -= 3) {
        bits.add(3, 2);
        bits.flush();
      }
      bits.add(zeros, 2);
    }
    const std::uint32_t share = shares_[symbol++];
    // Values below `spare` need a bit less.
    const std::uint32_t spare = 2 * threshold - 1 - left;
    std::uint32_t value = share + 1;
    if (value >= threshold) value += spare;
    bits.add(value, width - (value < spare ? 1 : 0));
    bits.flush();
    left -= share;
    is_behind_zero = share == 0;
    for (; left < threshold; threshold /= 2) --width;
  }
  return bits.end();
}

}  // namespace tacho::format
