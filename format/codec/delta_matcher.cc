#include "format/codec/delta_matcher.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/records/record_view.h"

namespace tacho::format {
namespace {

constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
constexpr std::size_t kFrameHead = 4 + 1 + 4;  // magic, descriptor, bytes that the frame holds
constexpr std::byte kHasSizeOfFour{0xA0};      // descriptor: a size of 4 bytes, which is the window's as well
constexpr std::size_t kBlockHead = 3;          // one bit: the last; two: compressed; 21: its bytes
constexpr std::size_t kMostBlock = 128 * 1024;  // bytes that a block inflates to, and that it has
constexpr std::size_t kLeastSame = 8;           // fewer equal bytes do not pay for a sequence
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kCopy = 2 * kWord;  // short pieces are copied by as much
constexpr std::array<std::uint32_t, 3> kFirstDistances{1, 4, 8};

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The number of equal bytes at the start of both, in whole steps; `size`: of both. Most of a record is, so
// they are compared in vectors, which the compiler makes of what the processor has.
std::size_t equal_steps(const std::byte* one, const std::byte* other, std::size_t size) {
  using Vector [[gnu::vector_size(16)]] = std::uint64_t;
  const auto vector_at = [](const std::byte* at) {
    Vector vector;
    std::memcpy(&vector, at, sizeof vector);
    return vector;
  };
  std::size_t at = 0;
  for (; at + 2 * sizeof(Vector) <= size; at += 2 * sizeof(Vector)) {
    const Vector differs = (vector_at(one + at) ^ vector_at(other + at)) |
                           (vector_at(one + at + sizeof(Vector)) ^ vector_at(other + at + sizeof(Vector)));
    if ((differs[0] | differs[1]) != 0) break;
  }
  return at;
}

// How zstd writes a length: by a code, and what it is more than the code's least in so many bits.
struct LengthCode {
  std::uint32_t least;
  std::uint8_t bits;
};

// Codes of one length each, then of as many as `widths` have bits for, then of twice as many as the one
// before.
template <std::size_t Codes, std::size_t Widths>
constexpr std::array<LengthCode, Codes> length_codes(std::uint32_t least, std::size_t single,
                                                     const std::uint8_t (&widths)[Widths]) {
  std::array<LengthCode, Codes> codes{};
  for (std::size_t code = 0; code < Codes; ++code) {
    std::uint8_t bits = 0;
    if (code >= single + Widths)
      bits = static_cast<std::uint8_t>(codes[code - 1].bits + 1);
    else if (code >= single)
      bits = widths[code - single];
    codes[code] = {least, bits};
    least += std::uint32_t{1} << bits;
  }
  return codes;
}
constexpr std::uint32_t kShortestMatch = 3;  // that zstd has a code for
constexpr auto kPlainCodes = length_codes<36>(0, 16, {1, 1, 1, 1, 2, 2, 3, 3, 4, 6});
constexpr auto kSameCodes = length_codes<53>(kShortestMatch, 32, {1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7});
static_assert(kPlainCodes[35].least == 65536 && kPlainCodes[35].bits == 16);
static_assert(kSameCodes[52].least == 65539 && kSameCodes[52].bits == 16);

// The code of a short length by a table, of others by their highest bit.
template <std::size_t Short, std::size_t Codes>
class CodeOf {
 public:
  constexpr explicit CodeOf(const std::array<LengthCode, Codes>& codes) : base_(codes[0].least) {
    std::size_t code = 0;
    for (std::size_t i = 0; i < Short; ++i) {
      while (code + 1 < Codes && codes[code + 1].least - base_ <= i) ++code;
      short_[i] = static_cast<std::uint8_t>(code);
    }
    while (codes[code + 1].least - base_ <= Short) ++code;
    long_ = static_cast<unsigned>(code) - static_cast<unsigned>(std::bit_width(Short));
  }
  constexpr std::uint8_t operator()(std::uint32_t length) const {
    const std::uint32_t more = length - base_;
    return more < Short ? short_[more]
                        : static_cast<std::uint8_t>(static_cast<unsigned>(std::bit_width(more)) + long_);
  }

 private:
  std::array<std::uint8_t, Short> short_{};
  std::uint32_t base_;
  unsigned long_ = 0;  // added to the highest bit
};
constexpr CodeOf<64, 36> kPlainCodeOf(kPlainCodes);
constexpr CodeOf<128, 53> kSameCodeOf(kSameCodes);
static_assert(kPlainCodeOf(16) == 16 && kPlainCodeOf(63) == 24 && kPlainCodeOf(64) == 25 &&
              kPlainCodeOf(65536) == 35);
static_assert(kSameCodeOf(3) == 0 && kSameCodeOf(130) == 42 && kSameCodeOf(131) == 43 &&
              kSameCodeOf(65539) == 52);

template <class Number>
std::byte* put(std::byte* out, Number number, std::size_t size = sizeof(Number)) {
  std::memcpy(out, &number, size);
  return out + size;
}

}  // namespace

std::size_t DeltaMatcher::pack(Bytes records, std::size_t most, Buffer& out) {
  const std::size_t start = out.size();
  out.resize(start + kFrameHead);
  begin_frame();
  std::size_t at = 0, block = 0;
  bool is_alike = true;
  while (is_alike && records.size() - at >= kRecordHeaderSize) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + at + 6, sizeof size);
    if (size < kRecordHeaderSize || size > records.size() - at) break;
    if (at != 0 && at + size > most) break;
    if (at + size - block > kMostBlock) {
      is_alike = end_block(records.data() + at, at - block, false, out);
      block = at;
    }
    const Bytes record = records.subspan(at, size);
    if (const std::byte* before = alike_before(record, records.data())) {
      compare(record, before);
    } else {
      end_same(record.data());
      plain_ += size;
    }
    at += size;
  }
  is_alike = is_alike && at != 0 && end_block(records.data() + at, at - block, true, out);
  if (!is_alike) {
    out.resize(start);
    return 0;
  }
  std::byte* head = put(out.data() + start, kFrameMagic);
  *head++ = kHasSizeOfFour;
  put(head, static_cast<std::uint32_t>(at));
  return at;
}

void DeltaMatcher::begin_frame() {
  last_of_kind_.fill(0);
  last_of_size_.fill(0);
  used_distances_ = kFirstDistances;
  plain_ = same_ = 0;
  distance_ = 0;
  literals_.resize(kMostBlock + kCopy);
  begin_block();
}

void DeltaMatcher::begin_block() {
  sequences_.clear();
  literals_size_ = 0;
  plain_counts_.fill(0);
  same_counts_.fill(0);
  distance_counts_.fill(0);
}

// The last record before with the same head, and, when there is one, with the same words behind: a sample's
// event, instruction and thread. Whatever it is, it is only compared.
const std::byte* DeltaMatcher::alike_before(Bytes record, const std::byte* first) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  constexpr unsigned kShift = 64 - 8;
  static_assert(kKinds == 1 << (64 - kShift));
  const std::byte* const at = record.data();
  const std::uint64_t size_hash = word_at(at) * kFactor;
  std::uint64_t hash = size_hash;
  if (record.size() >= 4 * kWord)
    for (std::size_t i = 1; i < 4; ++i) hash = (hash ^ word_at(at + i * kWord)) * kFactor;
  std::uint32_t& of_kind = last_of_kind_[hash >> kShift];
  std::uint32_t& of_size = last_of_size_[size_hash >> kShift];
  const std::uint32_t before = of_kind != 0 ? of_kind : of_size;
  of_kind = of_size = static_cast<std::uint32_t>(at - first) + 1;
  return before == 0 ? nullptr : first + (before - 1);
}

void DeltaMatcher::compare(Bytes record, const std::byte* before) {
  const auto distance = static_cast<std::uint32_t>(record.data() - before);
  if (distance != distance_) {
    end_same(record.data());
    distance_ = distance;
  }
  const std::byte* const mine = record.data();
  const std::size_t size = record.size();
  std::size_t at = 0, same = same_;
  for (; at + kWord <= size; at += kWord) {
    const std::size_t equal = equal_steps(mine + at, before + at, size - at);
    same += equal;
    at += equal;
    if (at + kWord > size) break;
    const std::uint64_t bits = word_at(mine + at) ^ word_at(before + at);
    if (bits == 0) {
      same += kWord;
      continue;
    }
    const auto head = static_cast<std::size_t>(std::countr_zero(bits)) / 8;
    const auto tail = static_cast<std::size_t>(std::countl_zero(bits)) / 8;
    same_ = same + head;
    end_same(mine + at + head);
    plain_ += kWord - head - tail;
    same = tail;
  }
  same_ = same;
  if (at == size) return;
  end_same(mine + at);
  plain_ += size - at;
}

// The equal bytes end before `end`.
void DeltaMatcher::end_same(const std::byte* end) {
  if (same_ < kLeastSame) {
    plain_ += same_;
    same_ = 0;
    return;
  }
  // What stands behind the plain bytes lets short pieces be copied whole.
  const std::byte* const from = end - same_ - plain_;
  std::byte* const to = literals_.data() + literals_size_;
  if (plain_ <= kWord)
    std::memcpy(to, from, kWord);
  else if (plain_ <= kCopy)
    std::memcpy(to, from, kCopy);
  else
    std::memcpy(to, from, plain_);
  literals_size_ += plain_;

  Sequence sequence;
  sequence.plain = static_cast<std::uint32_t>(plain_);
  sequence.same = static_cast<std::uint32_t>(same_);
  sequence.distance = name_distance(distance_, plain_ != 0);
  sequence.plain_code = kPlainCodeOf(sequence.plain);
  sequence.same_code = kSameCodeOf(sequence.same);
  sequence.distance_code = static_cast<std::uint8_t>(std::bit_width(sequence.distance) - 1);
  ++plain_counts_[sequence.plain_code];
  ++same_counts_[sequence.same_code];
  ++distance_counts_[sequence.distance_code];
  sequences_.push_back(sequence);
  plain_ = same_ = 0;
}

// zstd's repeat offsets: the distances used last have codes of their own. Without a literal in between the
// codes start at the second distance, since the first one would only have extended the match.
std::uint32_t DeltaMatcher::name_distance(std::uint32_t distance, bool is_behind_plain) {
  auto& used = used_distances_;
  const std::uint32_t skipped = is_behind_plain ? 0 : 1;
  if (is_behind_plain && distance == used[0]) return 1;
  std::uint32_t name = distance + 3;
  std::size_t place = 2;  // that is given up
  for (std::uint32_t i = 1; i < used.size(); ++i) {
    if (distance != used[i]) continue;
    name = i + 1 - skipped;
    place = i;
    break;
  }
  std::copy_backward(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(place),
                     used.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  used[0] = distance;
  return name;
}

// False: too little is alike, or it takes more bytes than a block may have.
bool DeltaMatcher::end_block(const std::byte* end, std::size_t content, bool is_last, Buffer& out) {
  constexpr std::size_t kMostOfSequence = 16, kHeads = 256;
  constexpr std::size_t kMostSequences = 0x7F00;
  end_same(end);
  std::memcpy(literals_.data() + literals_size_, end - plain_, plain_);
  literals_size_ += plain_;
  plain_ = 0;
  if (literals_size_ > content / 2 || sequences_.empty() || sequences_.size() >= kMostSequences) return false;
  const std::size_t start = out.size();
  out.resize(start + literals_size_ + sequences_.size() * kMostOfSequence + kHeads);
  std::byte* const body = out.data() + start + kBlockHead;
  const auto size = static_cast<std::size_t>(write_sequences(write_literals(body)) - body);
  if (size >= content) return false;
  const auto head = static_cast<std::uint32_t>(size << 3 | 2u << 1 | (is_last ? 1 : 0));
  put(out.data() + start, head, kBlockHead);
  out.resize(start + kBlockHead + size);
  begin_block();
  return true;
}

// As they are, behind their number in 5, 12 or 20 bits.
std::byte* DeltaMatcher::write_literals(std::byte* out) const {
  const auto size = static_cast<std::uint32_t>(literals_size_);
  if (size < 1u << 5)
    out = put(out, size << 3, 1);
  else if (size < 1u << 12)
    out = put(out, size << 4 | 1u << 2, 2);
  else
    out = put(out, size << 4 | 3u << 2, 3);
  std::memcpy(out, literals_.data(), size);
  return out + size;
}

// Their number, the tables of their codes, and they themselves from the last one to the first.
std::byte* DeltaMatcher::write_sequences(std::byte* out) {
  constexpr unsigned kOneSymbol = 1, kTable = 2;
  const auto count = static_cast<std::uint32_t>(sequences_.size());
  if (count < 128) {
    out = put(out, count, 1);
  } else {
    out = put(out, (count >> 8) + 128, 1);
    out = put(out, count, 1);
  }
  std::byte* const modes = out++;
  const auto describe = [&](FseTable& table, const Counts& counts) {
    table.build(counts);
    out = table.describe(out);
    return table.has_one_symbol() ? kOneSymbol : kTable;
  };
  unsigned mode = describe(plain_table_, plain_counts_) << 6;
  mode |= describe(distance_table_, distance_counts_) << 4;
  mode |= describe(same_table_, same_counts_) << 2;
  *modes = static_cast<std::byte>(mode);

  BitWriter bits(out);
  const auto add_rest = [&bits](const Sequence& sequence) {
    const LengthCode plain = kPlainCodes[sequence.plain_code], same = kSameCodes[sequence.same_code];
    bits.add(sequence.plain - plain.least, plain.bits);
    bits.add(sequence.same - same.least, same.bits);
    bits.flush();
    bits.add(sequence.distance - (1u << sequence.distance_code), sequence.distance_code);
    bits.flush();
  };
  const Sequence& last = sequences_.back();
  std::uint32_t same = same_table_.begin(last.same_code), plain = plain_table_.begin(last.plain_code),
                distance = distance_table_.begin(last.distance_code);
  add_rest(last);
  for (std::size_t i = count - 1; i-- > 0;) {
    const Sequence& sequence = sequences_[i];
    distance_table_.add(bits, distance, sequence.distance_code);
    same_table_.add(bits, same, sequence.same_code);
    plain_table_.add(bits, plain, sequence.plain_code);
    add_rest(sequence);
  }
  same_table_.end(bits, same);
  distance_table_.end(bits, distance);
  plain_table_.end(bits, plain);
  bits.add(1, 1);  // by which the decoder finds the end
  return bits.end();
}

}  // namespace tacho::format
