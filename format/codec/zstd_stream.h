// Compresses a text that comes in pieces into one zstd frame.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "format/base/result.h"

struct ZSTD_CCtx_s;

namespace tacho::format {

class ZstdStream {
 public:
  static Result<ZstdStream> create(int level);
  // Appends what is compressed so far.
  Result<> add_bytes(std::string_view bytes, std::string& out) { return compress(bytes, false, out); }
  // Ends the frame. Do not add more.
  Result<> finish(std::string& out) { return compress({}, true, out); }

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  explicit ZstdStream(ZSTD_CCtx_s* context) : context_(context) {}
  Result<> compress(std::string_view bytes, bool is_last, std::string& out);
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

}  // namespace tacho::format
