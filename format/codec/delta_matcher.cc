#include "format/codec/delta_matcher.h"

#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_compressSequences(), which the shared library has
#include <zstd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "format/records/record_view.h"

namespace tacho::format {
namespace {

constexpr std::size_t kLeastMatch = 8;  // fewer equal bytes do not pay for a sequence
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kKinds = 256;

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The number of equal bytes at the start of two records of `size` bytes, in whole steps. Most bytes are
// equal, so the loop is written for vector instructions.
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

struct Free {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};

}  // namespace

struct DeltaMatcher::State {
  State() : context(ZSTD_createCCtx()) {
    if (context == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_blockDelimiters, ZSTD_sf_noBlockDelimiters);
    // Literals are mostly times, for which Huffman coding does not pay.
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_disable);
  }

  // The candidate to compare with: the last record with the same header, and if possible the same words
  // after it (a sample's event, instruction and thread). A bad candidate costs ratio, not correctness.
  const std::byte* candidate_for(Bytes record, const std::byte* first) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
    constexpr unsigned kShift = 64 - 8;
    static_assert(kKinds == 1 << (64 - kShift));
    const std::byte* const at = record.data();
    const std::uint64_t size_hash = word_at(at) * kFactor;
    std::uint64_t hash = size_hash;
    if (record.size() >= 4 * kWord)
      for (std::size_t i = 1; i < 4; ++i) hash = (hash ^ word_at(at + i * kWord)) * kFactor;
    std::uint32_t& of_kind = last_of_kind[hash >> kShift];
    std::uint32_t& of_size = last_of_size[size_hash >> kShift];
    const std::uint32_t before = of_kind != 0 ? of_kind : of_size;
    of_kind = of_size = static_cast<std::uint32_t>(at - first) + 1;
    return before == 0 ? nullptr : first + (before - 1);
  }

  void compare(Bytes record, const std::byte* before) {
    const std::byte* const own = record.data();
    const auto offset_of_match = static_cast<std::uint32_t>(own - before);
    if (offset_of_match != offset) {
      end_match();
      offset = offset_of_match;
    }
    const std::size_t size = record.size();
    std::size_t at = 0, equal = match_length;
    for (; at + kWord <= size; at += kWord) {
      const std::size_t steps = equal_steps(own + at, before + at, size - at);
      equal += steps;
      at += steps;
      if (at + kWord > size) break;
      const std::uint64_t bits = word_at(own + at) ^ word_at(before + at);
      if (bits == 0) {
        equal += kWord;
        continue;
      }
      const auto head = static_cast<std::size_t>(std::countr_zero(bits)) / 8;
      const auto tail = static_cast<std::size_t>(std::countl_zero(bits)) / 8;
      match_length = equal + head;
      end_match();
      literal_length += kWord - head - tail;
      equal = tail;
    }
    match_length = equal;
    if (at == size) return;
    end_match();
    literal_length += size - at;
  }

  void end_match() {
    if (match_length < kLeastMatch) {
      literal_length += match_length;
    } else {
      sequences.push_back(
          {offset, static_cast<unsigned>(literal_length), static_cast<unsigned>(match_length), 0});
      all_literals += literal_length;
      literal_length = 0;
    }
    match_length = 0;
  }

  std::unique_ptr<ZSTD_CCtx, Free> context;
  using LastPlaces = std::array<std::uint32_t, kKinds>;  // offset of the last record plus 1; 0: none
  LastPlaces last_of_kind{}, last_of_size{};
  // The open sequence: literals, then a match. `all_literals`: bytes of those in `sequences`.
  std::size_t literal_length = 0, match_length = 0, all_literals = 0;
  std::uint32_t offset = 0;
  std::vector<ZSTD_Sequence> sequences;
};

DeltaMatcher::DeltaMatcher() : state_(std::make_unique<State>()) {}
DeltaMatcher::~DeltaMatcher() = default;

std::size_t DeltaMatcher::pack(Bytes records, std::size_t most, Buffer& out) {
  State& state = *state_;
  state.last_of_kind.fill(0);
  state.last_of_size.fill(0);
  state.literal_length = state.match_length = state.all_literals = 0;
  state.offset = 0;
  state.sequences.clear();
  std::size_t at = 0;
  while (records.size() - at >= kRecordHeaderSize) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + at + 6, sizeof size);
    if (size < kRecordHeaderSize || size > records.size() - at) break;
    if (at != 0 && at + size > most) break;
    const Bytes record = records.subspan(at, size);
    if (const std::byte* before = state.candidate_for(record, records.data())) {
      state.compare(record, before);
    } else {
      state.end_match();
      state.literal_length += size;
    }
    at += size;
  }
  state.end_match();
  if (state.sequences.empty() || state.all_literals + state.literal_length > at / 2) return 0;
  const std::size_t start = out.size(), room = ZSTD_compressBound(at);
  out.resize(start + room);
  const std::size_t size =
      ZSTD_compressSequences(state.context.get(), out.data() + start, room, state.sequences.data(),
                             state.sequences.size(), records.data(), at);
  if (ZSTD_isError(size) != 0) {
    out.resize(start);
    return 0;
  }
  out.resize(start + size);
  return at;
}

}  // namespace tacho::format
