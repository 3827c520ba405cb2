// One header section: the first byte says which, the second the byte order. What was read is written and read
// again.
#include <cstdlib>

#include "format/container/features.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Bytes body = std::as_bytes(std::span(data + 2, size - 2));
  const std::uint32_t feature = data[0];
  Features features;
  features.environment.cpus_available = 4;
  if (!read_feature(feature, Cursor(body, data[1] % 2 == 0 ? std::endian::little : std::endian::big),
                    features))
    return 0;
  ByteWriter out;
  if (!write_feature(feature, features, out)) return 0;
  Features again;
  again.environment.cpus_available = 4;
  if (feature != abi::kFeatureTracingData && !read_feature(feature, Cursor(out.view()), again)) std::abort();
  for (const Attachment& attachment : again.attachments)
    static_cast<void>(static_cast<bool>(unpack_attachment(attachment, std::uint64_t{1} << 20)));
  return 0;
}
