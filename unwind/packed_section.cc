#include "unwind/packed_section.h"

#include <elf.h>
#include <libdeflate.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "format/codec/compression.h"

namespace tacho::unwind {
namespace {

constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, which Debian 12's elf.h lacks
// The largest ratio of decompressed to compressed bytes. zlib's is 1032; zstd's is near this limit, for
// blocks that repeat one byte.
constexpr std::uint64_t kMostGrowth = 1 << 15;
constexpr std::size_t kOldMagicSize = 4;

// Fills `unpacked`, which has the size in the header. False: the contents have another size.
bool inflate_zlib(format::Bytes packed, std::span<std::byte> unpacked) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (decompressor == nullptr) throw std::bad_alloc();
  // Without a pointer for the size, the contents must have the size of `unpacked`.
  return libdeflate_zlib_decompress_ex(decompressor.get(), packed.data(), packed.size(), unpacked.data(),
                                       unpacked.size(), nullptr, nullptr) == LIBDEFLATE_SUCCESS;
}

bool inflate_zstd(format::Bytes packed, std::span<std::byte> unpacked) {
  return static_cast<bool>(format::inflate_into(packed, unpacked));
}

struct PackingRow {
  std::uint32_t type;
  bool (*inflate)(format::Bytes packed, std::span<std::byte> unpacked);
};
constexpr PackingRow kPackings[] = {{ELFCOMPRESS_ZLIB, inflate_zlib}, {kZstd, inflate_zstd}};

}  // namespace

bool can_hold(std::uint64_t packed_size, std::uint64_t size) { return size / kMostGrowth <= packed_size; }

Result<std::vector<std::byte>> unpack_section(std::uint32_t type, format::Bytes packed, std::uint64_t size,
                                              std::uint64_t limit) {
  if (!can_hold(packed.size(), size)) return Error{"a compressed section has an impossible size"};
  if (size > limit) return Error{"a compressed section has an impossible size", EFBIG};
  std::vector<std::byte> unpacked(static_cast<std::size_t>(size));
  if (auto done = unpack_section_into(type, packed, unpacked); !done) return std::move(done.error());
  return unpacked;
}

Result<> unpack_section_into(std::uint32_t type, format::Bytes packed, std::span<std::byte> out) {
  const auto row = std::ranges::find(kPackings, type, &PackingRow::type);
  if (row == std::end(kPackings)) {
    return Error{"a compressed section is of type " + std::to_string(type) +
                 ", which is neither zlib nor zstd"};
  }
  if (!row->inflate(packed, out)) return Error{"a compressed section cannot be decompressed"};
  return Done{};
}

Result<std::vector<std::byte>> unpack_shf_compressed(format::Bytes section, std::endian order,
                                                     std::uint64_t limit, std::uint8_t address_size) {
  format::Cursor in(section, order);
  const std::uint32_t type = in.u32();
  std::uint64_t size = 0;
  if (address_size == 4) {
    size = in.u32();
    in.u32();  // alignment
  } else {
    in.u32();  // reserved
    size = in.u64();
    in.u64();  // alignment
  }
  if (in.failed()) return Error{"a compressed section has no header"};
  return unpack_section(type, section.last(in.left()), size, limit);
}

Result<std::vector<std::byte>> unpack_zdebug(format::Bytes section, std::uint64_t limit) {
  format::Cursor in(section, std::endian::big);
  const bool is_zlib = in.text(kOldMagicSize) == "ZLIB";
  const std::uint64_t size = in.u64();
  if (in.failed() || !is_zlib) return Error{"a compressed section has no header"};
  return unpack_section(ELFCOMPRESS_ZLIB, section.last(in.left()), size, limit);
}

std::optional<ElfImage::Section> debug_frame_of(const ElfImage& image) {
  const std::uint64_t limit = max_decompressed(image.file_size());
  auto frames = image.section(".debug_frame");
  if (frames && !frames->is_packed) return frames;
  const auto packed = frames ? std::move(frames) : image.section(".zdebug_frame");
  if (!packed) return std::nullopt;
  auto unpacked = packed->is_packed
                      ? unpack_shf_compressed(packed->bytes, image.order(), limit, image.address_size())
                      : unpack_zdebug(packed->bytes, limit);
  if (!unpacked) return std::nullopt;
  return ElfImage::Section{packed->address, std::move(*unpacked), false};
}

}  // namespace tacho::unwind
