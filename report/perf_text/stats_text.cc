#include "report/perf_text/stats_text.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::report {

using namespace format;

void RecordCounts::add(const RecordView& record) {
  ++by_type_[record.type];
  if (record.type != abi::kRecordSample && record.type != abi::kRecordLostSamples) return;
  const auto event = reader_.events().event_of(record);
  if (!event) return diagnostics_.add(Damage::UnknownEvent, record.offset, "a record of no known event");
  by_event_.resize(reader_.events().size());
  const EventAttr& attr = reader_.events()[*event].attr;
  if (record.type == abi::kRecordSample)
    add_sample(record, *event, attr);
  else
    add_lost(record, *event, attr);
}

void RecordCounts::write(TextBuffer& out, Names names, Losses losses) {
  for (const auto type : {abi::kRecordCompressed, abi::kRecordCompressed2})
    if (const auto compressed = reader_.compressed_records(type); compressed != 0)
      by_type_[type] = compressed;
  std::uint64_t total = 0;
  for (const auto& [type, count] : by_type_) total += count;
  out.text("\nAggregated stats:\n");
  out.text(fmt::format("{:>16} events: {:10}\n", "TOTAL", total));
  for (const auto& [type, count] : by_type_) {
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(total);
    out.text(fmt::format("{:>16} events: {:10}  ({:4.1f}%)\n", record_name(type), count, share));
  }
  for (std::size_t i = 0; i < by_event_.size(); ++i) {
    const EventCounts& counts = by_event_[i];
    const std::uint64_t lost = losses == Losses::Shown ? counts.lost : 0;
    if (counts.samples == 0 && lost == 0) continue;
    const std::string& name = reader_.events()[i].name;
    out.text(printable(name, names) + " stats:\n");
    if (counts.samples != 0) out.text(fmt::format("{:>16} events: {:10}\n", "SAMPLE", counts.samples));
    if (lost != 0) out.text(fmt::format("{:>16} events: {:10}\n", "LOST_SAMPLES", lost));
  }
}

// A sample with counter values counts as one sample of each event of its group whose counter has changed.
void RecordCounts::add_sample(const RecordView& record, std::size_t event, const EventAttr& attr) {
  const auto sample = parse_sample(record, attr);
  if (!sample || sample->unread != 0)
    diagnostics_.add(Damage::BadRecord, record.offset, "a sample whose length is not that of its fields");
  if (!sample || !attr.samples(abi::kSampleRead)) {
    ++by_event_[event].samples;
    return;
  }
  for (std::size_t i = 0; i < sample->read.size(); ++i) {
    const auto entry = sample->read.entry(i);
    const auto member = reader_.events().find_id(entry.id);
    if (!member) continue;
    auto& last = last_value_[entry.id];
    if (entry.value != last) ++by_event_[*member].samples;
    last = entry.value;
  }
}

void RecordCounts::add_lost(const RecordView& record, std::size_t event, const EventAttr& attr) {
  const auto parsed = parse_record(record, attr);
  if (!parsed) return diagnostics_.add(Damage::BadRecord, record.offset, parsed.error().what);
  if (const auto* lost = std::get_if<LostSamplesRecord>(&*parsed)) by_event_[event].lost += lost->lost;
}

void write_stats(TextBuffer& out, CaptureReader& reader, Diagnostics& diagnostics, Names names) {
  RecordCounts counts(reader, diagnostics);
  while (const auto record = reader.next()) counts.add(*record);
  counts.write(out, names, RecordCounts::Losses::Shown);
}

}  // namespace tacho::report
