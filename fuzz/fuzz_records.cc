// Single records against an attribute that the input chooses: 128 bytes of attr, then one record.
#include "format/records/record.h"
#include "format/records/sample.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (size < kCompatibleAttrSize + kRecordHeaderSize) return 0;
  const auto attr = parse_event_attr(Cursor(bytes.first(kCompatibleAttrSize)));
  if (!attr) return 0;
  RecordView record;
  record.bytes = bytes.subspan(kCompatibleAttrSize);
  Cursor in(record.bytes);
  record.type = in.u32() % 128;
  record.misc = in.u16();
  record.order = size % 2 == 0 ? std::endian::little : std::endian::big;
  if (const auto sample = parse_sample(record, *attr)) {
    for (std::size_t i = 0; i < sample->read.size(); ++i) sample->read.entry(i);
    for (std::size_t i = 0; i < sample->branch_count(); ++i) sample->branch(i);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sample->callchain.size(); ++i) sum += sample->callchain[i];
    for (std::size_t i = 0; i < sample->user_registers.values.size(); ++i)
      sum += sample->user_registers.values[i];
    volatile std::uint64_t sink = sum;
    static_cast<void>(sink);
  }
  parse_sample_id(record, *attr);
  record_time(record, *attr);
  const auto parsed = parse_record(record, *attr);
  if (parsed && std::holds_alternative<ReadRecord>(*parsed)) {
    const ReadValues& values = std::get<ReadRecord>(*parsed).values;
    for (std::size_t i = 0; i < values.size(); ++i) values.entry(i);
  }
  return 0;
}
