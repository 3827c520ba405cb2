#include "report/views/import/import_input.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include "format/base/file.h"
#include "format/base/printable.h"

namespace tacho::report {
namespace {

constexpr std::size_t kInputStep = std::size_t{256} << 10;  // bytes

Error larger_than(std::size_t most) {
  return Error{"more than " + std::to_string(most >> 20) + " MiB, which is the most that is imported"};
}

Result<std::vector<std::byte>> read_whole_input(int fd, std::size_t most) {
  std::vector<std::byte> bytes;
  for (;;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kInputStep);
    const ssize_t got = ::read(fd, bytes.data() + before, kInputStep);
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", errno);
    if (got == 0) return bytes;
    if (bytes.size() > most) return larger_than(most);
  }
}

bool has_gzip_magic(format::Bytes bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

struct EndInflation {
  void operator()(z_stream* stream) const {
    ::inflateEnd(stream);
    delete stream;
  }
};

}  // namespace

Result<std::vector<std::byte>> unpack_gzip(std::vector<std::byte> bytes, std::size_t most) {
  if (!has_gzip_magic(bytes)) return bytes;
  constexpr int kGzipWindow = MAX_WBITS + 16;
  auto begun = std::make_unique<z_stream>();
  if (::inflateInit2(begun.get(), kGzipWindow) != Z_OK)
    return Error{"zlib has no memory to unpack the input"};
  const std::unique_ptr<z_stream, EndInflation> stream(begun.release());
  std::vector<std::byte> out;
  std::size_t used = 0, filled = 0;
  for (int state = Z_OK;;) {
    // A further member, as gzip appends them.
    if (state == Z_STREAM_END) {
      if (!has_gzip_magic(format::Bytes(bytes).subspan(used)) || ::inflateReset(stream.get()) != Z_OK) break;
    }
    if (out.size() - filled < kInputStep) out.resize(std::max(out.size() * 2, filled + kInputStep));
    const std::size_t piece = std::min<std::size_t>(bytes.size() - used, std::numeric_limits<uInt>::max());
    const std::size_t room = std::min<std::size_t>(out.size() - filled, std::numeric_limits<uInt>::max());
    stream->next_in = reinterpret_cast<Bytef*>(bytes.data() + used);
    stream->avail_in = static_cast<uInt>(piece);
    stream->next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream->avail_out = static_cast<uInt>(room);
    state = ::inflate(stream.get(), Z_NO_FLUSH);
    used += piece - stream->avail_in;
    filled += room - stream->avail_out;
    if (filled > most) return larger_than(most);
    if (state == Z_BUF_ERROR || (state == Z_OK && used == bytes.size() && stream->avail_out > 0))
      return Error{"the gzip file is cut short after " + std::to_string(used) + " bytes"};
    if (state != Z_OK && state != Z_STREAM_END)
      return Error{"the gzip file is damaged at byte " + std::to_string(used)};
  }
  out.resize(filled);
  return out;
}

Result<std::vector<std::byte>> read_import_input(const std::string& path, std::size_t most) {
  format::Fd file;
  if (path != "-") {
    auto opened = format::open_input(path, format::Streams::Allow);
    if (!opened) return std::move(opened.error());
    file = std::move(*opened);
  }
  auto bytes = read_whole_input(path == "-" ? STDIN_FILENO : file.get(), most);
  auto content = bytes ? unpack_gzip(std::move(*bytes), most) : std::move(bytes);
  if (!content)
    return std::move(content.error()).in(path == "-" ? "standard input" : format::printable(path));
  return content;
}

}  // namespace tacho::report
