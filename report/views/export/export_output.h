// The bytes of an export, as they come, or packed by gzip.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/result.h"
#include "report/output/text_output.h"

extern "C" {
struct z_stream_s;
}

namespace tacho::report {

class ExportOutput : public TextBuffer {
 public:
  enum class Packing : std::uint8_t { Plain, Gzip };
  // `out` must outlive it.
  static Result<ExportOutput> begin(TextOutput& out, Packing packing);

  // To be called now and then: writes the buffer when it is large.
  void piece_end() {
    if (size() >= kPiece) write();
  }
  void finish();
  // No reader, or no room: stop producing.
  bool is_done() const { return out_->is_done(); }

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };
  using Stream = std::unique_ptr<z_stream_s, End>;
  ExportOutput(TextOutput& out, Stream stream) : out_(&out), stream_(std::move(stream)) {}
  void write();
  void pack(std::string_view bytes, int flush);

  static constexpr std::size_t kPiece = std::size_t{64} << 10;  // bytes
  TextOutput* out_;
  Stream stream_;  // null: plain
  std::string packed_;
};

// Gzip for a file of such a name.
inline ExportOutput::Packing packing_of(std::string_view path) {
  return path.ends_with(".gz") ? ExportOutput::Packing::Gzip : ExportOutput::Packing::Plain;
}

}  // namespace tacho::report
