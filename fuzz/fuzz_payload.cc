// A payload by a schema that the input chooses as well: the first half is the section of schemas and
// also a tracepoint's format file, the second half the payload.
#include <algorithm>

#include "format/base/file.h"
#include "report/decode/payload.h"

using namespace tacho;
using namespace tacho::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const std::size_t cut = size / 2;
  const auto schemas = format::parse_payload_schemas(format::Cursor(bytes.first(cut)));
  const Bytes payload = bytes.subspan(cut);
  const auto try_schema = [&](const PayloadSchema& schema) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      show_payload(schema, payload.first(std::min<std::size_t>(payload.size(), 65536)), order, Names::Safe);
      for (const PayloadField& field : schema.fields) read_number(field, payload, order);
    }
  };
  if (schemas) std::ranges::for_each(*schemas, try_schema);
  try_schema(tracepoint_schema("event", format::as_text(bytes.first(cut))));
  return 0;
}
