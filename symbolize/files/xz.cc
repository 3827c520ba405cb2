#include "symbolize/files/xz.h"

#include <lzma.h>

#include <algorithm>
#include <cerrno>

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 28;  // bytes of the unpacker's own
constexpr std::size_t kPiece = std::size_t{1} << 18;           // bytes unpacked at a time

struct Stream {
  lzma_stream state = LZMA_STREAM_INIT;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { lzma_end(&state); }
};

}  // namespace

Result<std::vector<std::byte>> unpack_xz(format::Bytes packed, std::uint64_t limit) {
  Stream stream;
  if (lzma_stream_decoder(&stream.state, kMostMemory, 0) != LZMA_OK) return Error{"xz could not be started"};
  stream.state.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.state.avail_in = packed.size();
  std::vector<std::byte> unpacked;
  for (lzma_ret state = LZMA_OK; state == LZMA_OK;) {
    const std::size_t done = unpacked.size();
    if (done > limit) {
      return Error{"its xz part unpacks to more than " + std::to_string(limit) + " bytes", EFBIG};
    }
    unpacked.resize(done + kPiece);
    stream.state.next_out = reinterpret_cast<std::uint8_t*>(unpacked.data() + done);
    stream.state.avail_out = kPiece;
    state = lzma_code(&stream.state, LZMA_FINISH);
    unpacked.resize(unpacked.size() - stream.state.avail_out);
    if (state != LZMA_OK && state != LZMA_STREAM_END) return Error{"its xz part is damaged"};
  }
  return unpacked;
}

std::uint32_t crc32(format::Bytes bytes, std::uint32_t before) {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), before);
}

}  // namespace tacho::symbolize
