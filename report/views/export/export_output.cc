#include "report/views/export/export_output.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace tacho::report {
namespace {

constexpr int kGzipLevel = 1;  // three times as fast as 6, and the file is a tenth larger
constexpr int kGzipWindow = MAX_WBITS + 16, kGzipMemory = 9;
constexpr std::size_t kPackedRoom = std::size_t{256} << 10;  // bytes

}  // namespace

void ExportOutput::End::operator()(z_stream_s* stream) const {
  ::deflateEnd(stream);
  delete stream;
}

Result<ExportOutput> ExportOutput::begin(TextOutput& out, Packing packing) {
  if (packing == Packing::Plain) return ExportOutput(out, nullptr);
  auto stream = std::make_unique<z_stream>();
  if (::deflateInit2(stream.get(), kGzipLevel, Z_DEFLATED, kGzipWindow, kGzipMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return Error{"zlib has no memory to pack the output"};
  return ExportOutput(out, Stream(stream.release()));
}

void ExportOutput::write() {
  if (stream_ != nullptr) {
    pack(view(), Z_NO_FLUSH);
  } else {
    out_->text(view());
    out_->line_end();
  }
  clear();
}

void ExportOutput::finish() {
  write();
  if (stream_ != nullptr) pack({}, Z_FINISH);
}

void ExportOutput::pack(std::string_view bytes, int flush) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  packed_.resize(kPackedRoom);
  do {
    const std::string_view piece = bytes.substr(0, kMost);
    bytes.remove_prefix(piece.size());
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_->avail_in = static_cast<uInt>(piece.size());
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_->avail_out = static_cast<uInt>(packed_.size());
      ::deflate(stream_.get(), flush);
      out_->text(std::string_view(packed_).substr(0, packed_.size() - stream_->avail_out));
      out_->line_end();
    } while (stream_->avail_out == 0);
  } while (!bytes.empty());
}

}  // namespace tacho::report
