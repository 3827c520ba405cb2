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

constexpr std::size_t kLeastSame = 8;  // fewer equal bytes do not pay for a sequence
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
  const std::byte* alike_before(Bytes record, const std::byte* first) {
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
    const std::byte* const mine = record.data();
    const auto is_at = static_cast<std::uint32_t>(mine - before);
    if (is_at != distance) {
      end_same();
      distance = is_at;
    }
    const std::size_t size = record.size();
    std::size_t at = 0, equal = same;
    for (; at + kWord <= size; at += kWord) {
      const std::size_t steps = equal_steps(mine + at, before + at, size - at);
      equal += steps;
      at += steps;
      if (at + kWord > size) break;
      const std::uint64_t bits = word_at(mine + at) ^ word_at(before + at);
      if (bits == 0) {
        equal += kWord;
        continue;
      }
      const auto head = static_cast<std::size_t>(std::countr_zero(bits)) / 8;
      const auto tail = static_cast<std::size_t>(std::countl_zero(bits)) / 8;
      same = equal + head;
      end_same();
      plain += kWord - head - tail;
      equal = tail;
    }
    same = equal;
    if (at == size) return;
    end_same();
    plain += size - at;
  }

  void end_same() {
    if (same < kLeastSame) {
      plain += same;
    } else {
      sequences.push_back({distance, static_cast<unsigned>(plain), static_cast<unsigned>(same), 0});
      literals += plain;
      plain = 0;
    }
    same = 0;
  }

  std::unique_ptr<ZSTD_CCtx, Free> context;
  using LastPlaces = std::array<std::uint32_t, kKinds>;  // offset of the last record plus 1; 0: none
  LastPlaces last_of_kind{}, last_of_size{};
  // The open sequence: `plain` literals, then a match of `same` bytes at offset `distance`.
  std::size_t plain = 0, same = 0, literals = 0;
  std::uint32_t distance = 0;
  std::vector<ZSTD_Sequence> sequences;
};

DeltaMatcher::DeltaMatcher() : state_(std::make_unique<State>()) {}
DeltaMatcher::~DeltaMatcher() = default;

std::size_t DeltaMatcher::pack(Bytes records, std::size_t most, Buffer& out) {
  State& state = *state_;
  state.last_of_kind.fill(0);
  state.last_of_size.fill(0);
  state.plain = state.same = state.literals = 0;
  state.distance = 0;
  state.sequences.clear();
  std::size_t at = 0;
  while (records.size() - at >= kRecordHeaderSize) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + at + 6, sizeof size);
    if (size < kRecordHeaderSize || size > records.size() - at) break;
    if (at != 0 && at + size > most) break;
    const Bytes record = records.subspan(at, size);
    if (const std::byte* before = state.alike_before(record, records.data())) {
      state.compare(record, before);
    } else {
      state.end_same();
      state.plain += size;
    }
    at += size;
  }
  state.end_same();
  if (state.sequences.empty() || state.literals + state.plain > at / 2) return 0;
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
