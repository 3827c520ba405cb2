// A whole capture: header, events, sections, every record and sample in time order.
#include "format/container/capture_reader.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "fuzz/memory_file.h"

using namespace tacho;
using namespace tacho::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  Diagnostics diagnostics;
  ReadOptions options;
  options.inflate.record = std::size_t{1} << 20;
  auto reader = CaptureReader::open(file.path(), diagnostics, options);
  if (!reader) return 0;
  TimeOrder order;
  while (const auto record = reader->next_record()) {
    if (record->type == abi::kRecordFinishedRound) order.finished_round();
    const auto event = reader->events().event_of(*record);
    if (!event) continue;
    const EventAttr& attr = reader->events()[*event].attr;
    if (const auto time = record_time(*record, attr)) order.push(*record, *time, reader->block());
    if (record->type == abi::kRecordSample) {
      if (const auto sample = parse_sample(*record, attr)) {
        for (std::size_t i = 0; i < sample->read.size(); ++i) sample->read.entry(i);
        for (std::size_t i = 0; i < sample->branch_count(); ++i) sample->branch(i);
      }
    } else {
      parse_sample_id(*record, attr);
      const auto parsed = parse_record(*record, attr);
      static_cast<void>(static_cast<bool>(parsed));
    }
    while (order.pop()) {
    }
  }
  order.flush();
  while (order.pop()) {
  }
  for (const Finding& finding : diagnostics.findings()) Diagnostics::finding_text(finding);
  return 0;
}
