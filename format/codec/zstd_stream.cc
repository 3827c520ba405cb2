#include "format/codec/zstd_stream.h"

#include <zstd.h>

namespace tacho::format {

void ZstdStream::Free::operator()(ZSTD_CCtx_s* context) const noexcept { ZSTD_freeCCtx(context); }

Result<ZstdStream> ZstdStream::create(int level) {
  ZstdStream stream(ZSTD_createCCtx());
  if (stream.context_ == nullptr) return Error{"zstd: no memory for a compression context"};
  for (const auto& [parameter, value] :
       {std::pair(ZSTD_c_compressionLevel, level), {ZSTD_c_checksumFlag, 1}}) {
    const std::size_t set = ZSTD_CCtx_setParameter(stream.context_.get(), parameter, value);
    if (ZSTD_isError(set) != 0) return use_error(std::string("zstd: ") + ZSTD_getErrorName(set));
  }
  return stream;
}

Result<> ZstdStream::compress(std::string_view bytes, bool is_last, std::string& out) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  const std::size_t step = ZSTD_CStreamOutSize();
  for (;;) {
    const std::size_t before = out.size();
    out.resize(before + step);
    ZSTD_outBuffer packed{out.data() + before, step, 0};
    const std::size_t left =
        ZSTD_compressStream2(context_.get(), &packed, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
    out.resize(before + packed.pos);
    if (ZSTD_isError(left) != 0) return Error{std::string("zstd: ") + ZSTD_getErrorName(left)};
    if (is_last ? left == 0 : in.pos == in.size) return Done{};
  }
}

}  // namespace tacho::format
