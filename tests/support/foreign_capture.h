// A capture as a machine of the other byte order would have written it: the inverse of what reading one does.
// perf reads the result as well as we do, which is what says that it is right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/capture_reader.h"
#include "format/container/file_head.h"
#include "format/records/byte_swap.h"
#include "format/records/record.h"

namespace tacho::test {

class ForeignCapture {
 public:
  // `file`: a capture of this machine's byte order, plain (not compressed), as a file or a pipe. Its bytes,
  // or none when it cannot be turned.
  static std::vector<std::byte> of(const std::string& path, format::Bytes file) {
    ForeignCapture turned(file);
    return turned.turn(path) ? turned.out_ : std::vector<std::byte>{};
  }

 private:
  explicit ForeignCapture(format::Bytes file) : in_(file), out_(file.begin(), file.end()) {}

  bool turn(const std::string& path) {
    format::Diagnostics diagnostics;
    auto reader = format::CaptureReader::open(path, diagnostics);
    const auto head = format::parse_file_head(in_);
    if (!reader || !head) return false;
    while (reader->next_record()) {  // a pipe's events come with its records
    }
    const format::EventSet& events = reader->events();
    if (head->is_pipe) {
      words(0, 2);
      return records(events, format::FileHead::kPipeSize, in_.size());
    }
    words(0, format::FileHead::kSize / 8);
    attrs(*head);
    sections(*head);
    early_table(*head);
    return records(events, head->data.offset, head->data.offset + head->data.size);
  }

  void words(std::size_t at, std::size_t count) {
    format::FieldLog log;
    log.add_fields(in_.data() + at, count, 8);
    turn_logged(log);
  }
  void turn_logged(const format::FieldLog& log) { format::swap_fields(out_, in_, log, std::endian::native); }

  void attrs(const format::FileHead& head) {
    for (std::uint64_t at = head.attrs.offset; at < head.attrs.offset + head.attrs.size;
         at += head.attr_size) {
      const std::size_t size = head.attr_size - 16;
      format::FieldLog log;
      (void)format::parse_event_attr(format::Cursor(in_.subspan(at, size), std::endian::native, &log));
      turn_logged(log);
      words(at + size, 2);
      format::Cursor ids(in_.subspan(at + size, 16));
      const std::uint64_t offset = ids.u64();
      words(offset, ids.u64() / 8);
    }
  }

  void section(std::uint32_t feature, format::Bytes bytes, format::Features& seen) {
    if (feature == format::abi::kFeatureTracingData) return;  // says its byte order itself
    format::FieldLog log;
    (void)format::read_feature(feature, format::Cursor(bytes, std::endian::native, &log), seen);
    turn_logged(log);
  }

  void sections(const format::FileHead& head) {
    std::uint64_t at = head.data.offset + head.data.size;
    format::Features seen;
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      if (!head.features[feature]) continue;
      format::Cursor place(in_.subspan(at, 16));
      const std::uint64_t offset = place.u64();
      section(feature, in_.subspan(offset, place.u64()), seen);
      words(at, 2);
      at += 16;
    }
  }

  // Sections of our own stand in the table before the data alone.
  void early_table(const format::FileHead& head) {
    using Table = format::EarlyTable;
    if (head.data.offset < Table::kTrailerSize) return;
    const std::uint64_t trailer = head.data.offset - Table::kTrailerSize;
    const auto table =
        format::parse_early_trailer(in_.subspan(trailer, Table::kTrailerSize), std::endian::native);
    if (!table) return;
    const std::size_t size = table->entries * Table::kEntrySize;
    format::Features seen;
    for (const auto& entry :
         format::parse_early_entries(in_.subspan(table->offset, size), std::endian::native)) {
      const bool is_own = entry.feature >= format::abi::kFirstOwnFeature;
      if (is_own) section(entry.feature, in_.subspan(entry.place.offset, entry.place.size), seen);
    }
    words(table->offset, size / 8);
    words(trailer, 1);
    format::FieldLog log;
    log.add_fields(in_.data() + trailer + 8, 2, 4);
    turn_logged(log);
    words(trailer + 16, 1);
  }

  bool records(const format::EventSet& events, std::size_t at, std::size_t end) {
    format::Features seen;
    while (at + format::kRecordHeaderSize <= end) {
      format::Cursor header(in_.subspan(at, format::kRecordHeaderSize));
      format::RecordView record;
      record.type = header.u32();
      record.misc = header.u16();
      record.bytes = in_.subspan(at, header.u16());
      format::Cursor body = record.body();
      std::uint64_t payload = 0;
      if (record.type == format::abi::kRecordTracingData) payload = body.u32();
      if (record.type == format::abi::kRecordAuxtrace) payload = body.u64();
      if (!turn_one(events, record, at, seen)) return false;
      at += record.bytes.size() + payload;
    }
    return true;
  }

  bool turn_one(const format::EventSet& events, const format::RecordView& record, std::size_t at,
                format::Features& seen) {
    if (record.type == format::abi::kRecordHeaderFeature) {
      format::FieldLog log;
      format::Cursor header(record.bytes, std::endian::native, &log);
      header.u32();
      header.u16();
      header.u16();
      const auto feature = static_cast<std::uint32_t>(header.u64());
      turn_logged(log);
      if (!header.rest().empty()) section(feature, header.rest(), seen);
      return true;
    }
    const auto event = events.event_of(record);
    format::ByteWriter turned;
    if (!event || !format::swap_record(record, events[*event].attr, turned)) return false;
    std::ranges::copy(turned.view(), out_.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }

  format::Bytes in_;
  std::vector<std::byte> out_;
};

}  // namespace tacho::test
