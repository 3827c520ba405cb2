// Finite state entropy coding as zstd's sequences have it (RFC 8878, sections 4.1 and 3.1.1.3.2): symbols
// that are frequent cost a fraction of a bit. The coder starts with the last symbol, the decoder reads
// backwards.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tacho::format {

static_assert(std::endian::native == std::endian::little, "bits are stored by whole words");

// Appends numbers of some bits to memory that has room for them, and for 8 bytes behind them.
class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}
  // `value` has no bits above `bits`; at most 56 bits between two calls of flush().
  void add(std::uint64_t value, unsigned bits) {
    held_ |= value << count_;
    count_ += bits;
  }
  void flush() {
    std::memcpy(at_, &held_, sizeof held_);
    at_ += count_ / 8;
    held_ >>= count_ & ~7u;
    count_ &= 7;
  }
  // One past the last byte written.
  std::byte* end() {
    flush();
    return at_ + (count_ != 0 ? 1 : 0);
  }

 private:
  std::byte* at_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;  // bits in held_
};

class FseTable {
 public:
  static constexpr unsigned kLog = 7;  // of the number of states; what more would save is less than it costs
  static constexpr std::size_t kStates = std::size_t{1} << kLog;
  static constexpr std::size_t kMostSymbols = 64;

  // For symbols that occur so often each. At least one occurs.
  void build(std::span<const std::uint32_t> counts);
  // One symbol alone occurs: it needs no bits, and its table is its number.
  bool has_one_symbol() const { return has_one_symbol_; }
  // The table as its decoder wants it: at most 64 bytes. The byte behind it.
  std::byte* describe(std::byte* out) const;

  // State of the coder once it has its first symbol, which is the last one of all.
  std::uint32_t begin(unsigned symbol) const {
    if (has_one_symbol_) return 0;
    const Step& step = steps_[symbol];
    const std::uint32_t bits = (step.bits_from + (1u << 15)) >> 16;
    const std::uint32_t state = (bits << 16) - step.bits_from;
    return next_[static_cast<std::size_t>(static_cast<std::int32_t>(state >> bits) + step.first)];
  }
  // The decoder reads this symbol before the symbols that were coded earlier. At most kLog bits.
  void add(BitWriter& out, std::uint32_t& state, unsigned symbol) const {
    if (has_one_symbol_) return;
    const Step& step = steps_[symbol];
    const std::uint32_t bits = (state + step.bits_from) >> 16;
    out.add(state & ((1u << bits) - 1), bits);
    state = next_[static_cast<std::size_t>(static_cast<std::int32_t>(state >> bits) + step.first)];
  }
  void end(BitWriter& out, std::uint32_t state) const {
    if (!has_one_symbol_) out.add(state & (kStates - 1), kLog);
  }

 private:
  void share_states(std::span<const std::uint32_t> counts);
  void order_states();

  struct Step {
    std::uint32_t bits_from = 0;  // added to a state, its upper half is the number of bits to put out
    std::int32_t first = 0;       // where its next states begin, less the states of lower value
  };
  std::array<std::uint16_t, kMostSymbols> shares_{};  // of the states, by symbol
  std::array<Step, kMostSymbols> steps_{};
  std::array<std::uint16_t, kStates> next_{};  // states, sorted by symbol
  std::size_t symbols_ = 0;                    // up to the highest that occurs
  bool has_one_symbol_ = false;
};

}  // namespace tacho::format
