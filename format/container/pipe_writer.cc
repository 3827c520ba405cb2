#include "format/container/pipe_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "format/container/feature_sections.h"
#include "format/container/file_head.h"
#include "format/records/record.h"

namespace tacho::format {

namespace {

constexpr std::size_t kMostInRecord = 65535;  // a record's size field is 16 bits wide

// Begins a record; `finish` sets its size. Records of a pipe's header need no size that is a multiple of 8.
std::size_t begin_record(ByteWriter& out, std::uint32_t type) {
  const std::size_t start = out.size();
  out.u32(type).u16(0).u16(0);
  return start;
}

void finish_record(ByteWriter& out, std::size_t start) {
  out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
}

// perf 6.1 refuses HEADER_FEATURE records with this number and above. perf itself ends the sections with an
// empty record of the first number that it does not know, which a later perf reads as a truncated section.
// tacho does not write that record, and every perf accepts it.
constexpr std::uint32_t kFirstUnknown = 32;
bool fits_feature_record(std::uint32_t feature, Bytes section) {
  return feature < kFirstUnknown &&
         section.size() <= kMostInRecord - kRecordHeaderSize - sizeof(std::uint64_t);
}

void write_section_records(ByteWriter& out, std::uint32_t feature, Bytes section) {
  if (!fits_feature_record(feature, section)) return write_section_pieces(out, feature, section);
  const std::size_t start = begin_record(out, abi::kRecordHeaderFeature);
  out.u64(feature).bytes(section);
  finish_record(out, start);
}

void write_tracing_record(ByteWriter& out, Bytes section) {
  const std::size_t padded = (section.size() + 7) / 8 * 8;
  const std::size_t start = begin_record(out, abi::kRecordTracingData);
  out.u32(static_cast<std::uint32_t>(padded));
  finish_record(out, start);
  out.bytes(section).zeros(padded - section.size());
}

// The section already consists of records: set their type, and pad to a multiple of 8 bytes.
void write_build_id_records(ByteWriter& out, Bytes section) {
  while (section.size() >= kRecordHeaderSize) {
    Cursor header(section);
    header.skip(6);
    const std::size_t size = header.u16();
    if (size < kRecordHeaderSize || size > section.size()) return;
    const std::size_t start = out.size();
    out.bytes(section.first(size)).zeros((8 - size % 8) % 8);
    out.patch<std::uint32_t>(start, abi::kRecordBuildId);
    finish_record(out, start);
    section = section.subspan(size);
  }
}

// Sections that are records of their own type in a pipe, or that are meaningless without file offsets.
using WriteSection = void (*)(ByteWriter& out, Bytes section);
struct OwnRecordRow {
  std::uint32_t feature;
  WriteSection write;
};
constexpr OwnRecordRow kOwnRecords[] = {
    {abi::kFeatureTracingData, write_tracing_record},
    {abi::kFeatureBuildId, write_build_id_records},
    {abi::kFeatureAuxtrace, [](ByteWriter&, Bytes) {}},
};
// False: the section is none of these.
bool write_own_records(ByteWriter& out, std::uint32_t feature, Bytes section) {
  const auto own = std::ranges::find(kOwnRecords, feature, &OwnRecordRow::feature);
  if (own == std::end(kOwnRecords)) return false;
  own->write(out, section);
  return true;
}

Result<> write_attr_record(ByteWriter& out, const Event& event, std::uint32_t attr_size) {
  const std::size_t room = kMostInRecord - kRecordHeaderSize - attr_size;
  if (event.ids.size() > room / sizeof(std::uint64_t))
    return output_error("the event '" + event.name + "' has " + std::to_string(event.ids.size()) +
                        " ids, a pipe can carry " + std::to_string(room / sizeof(std::uint64_t)) +
                        "; write a file instead");
  const std::size_t start = begin_record(out, abi::kRecordHeaderAttr);
  write_event_attr(out, event.attr, attr_size);
  for (const std::uint64_t id : event.ids) out.u64(id);
  finish_record(out, start);
  return Done{};
}

void write_name_record(ByteWriter& out, const Event& event) {
  constexpr std::uint64_t kName = 2;
  if (event.name.empty() || event.name_is_made) return;  // readers make the same name from the attributes
  const std::size_t start = begin_record(out, abi::kRecordEventUpdate);
  // An event without ids is the only one: any id refers to it.
  out.u64(kName).u64(event.ids.empty() ? 0 : event.ids.front());
  out.padded_text(std::string_view(event.name).substr(0, 4095), 8);
  finish_record(out, start);
}

}  // namespace

Result<PipeWriter> PipeWriter::create(Fd out, const EventSet& events, Features features, WriteOptions options,
                                      PipeNames names) {
  return begin_stream(PipeWriter(std::move(out), {}), events, std::move(features), options, names);
}

Result<PipeWriter> PipeWriter::create(Write write, const EventSet& events, Features features,
                                      WriteOptions options, PipeNames names) {
  return begin_stream(PipeWriter({}, std::move(write)), events, std::move(features), options, names);
}

Result<PipeWriter> PipeWriter::begin_stream(PipeWriter writer, const EventSet& events, Features features,
                                            const WriteOptions& options, PipeNames names) {
  auto compressor = prepare_compression(options, features);
  if (!compressor) return std::move(compressor.error());
  writer.compressor_ = std::move(*compressor);
  writer.closing_room_ = room_for_end(events);
  const std::uint32_t attr_size = common_attr_size(events, options);
  if (!options.as_given) features.event_descriptions.assign(events.begin(), events.end());
  if (auto written = writer.write_head(events, features, attr_size, names); !written)
    return std::move(written.error());
  return writer;
}

// perf's order: attrs, sections, tracepoint formats, names.
Result<> PipeWriter::write_head(const EventSet& events, const Features& features, std::uint32_t attr_size,
                                PipeNames names) {
  ByteWriter out, own_records;
  out.u64(abi::kMagic).u64(FileHead::kPipeSize);
  for (const Event& event : events)
    if (auto written = write_attr_record(out, event, attr_size); !written) return written;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    ByteWriter section;
    if (!write_feature(feature, features, section)) continue;
    if (!write_own_records(own_records, feature, section.view()))
      write_section_records(out, feature, section.view());
  }
  out.bytes(own_records.view());
  if (names == PipeNames::Write)
    for (const Event& event : events) write_name_record(out, event);
  return write_plain(out.view());
}

Result<> PipeWriter::write_plain(Bytes records) {
  if (write_) {
    auto written = write_(records);
    if (written) written_ += records.size();
    return written;
  }
  while (!records.empty()) {
    const ssize_t count = ::write(out_.get(), records.data(), records.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return output_error(system_error("write", errno).what, errno);
    written_ += static_cast<std::size_t>(count);
    records = records.subspan(static_cast<std::size_t>(count));
  }
  return Done{};
}

Result<> PipeWriter::write_records(Bytes records) {
  const auto bytes = packed_records(compressor_, records, packed_);
  return bytes ? write_plain(*bytes) : bytes.error();
}

Result<bool> PipeWriter::write_records_within(Bytes records, std::uint64_t most_bytes) {
  const auto bytes = packed_records(compressor_, records, packed_);
  if (!bytes) return bytes.error();
  if (written_ + bytes->size() + closing_room_ > most_bytes) return false;
  if (auto written = write_plain(*bytes); !written) return std::move(written.error());
  return true;
}

Result<> PipeWriter::finish_round() {
  ByteWriter mark;
  write_mark(mark, abi::kRecordFinishedRound);
  return write_plain(mark.view());
}

Result<> PipeWriter::write_section(std::uint32_t feature, Bytes section) {
  ByteWriter out;
  if (!write_own_records(out, feature, section)) write_section_records(out, feature, section);
  return write_plain(out.view());
}

}  // namespace tacho::format
