#include "format/container/capture_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "format/base/output.h"
#include "format/container/file_head.h"
#include "format/container/growing_file.h"
#include "format/records/record.h"

namespace tacho::format {

namespace {

constexpr std::uint64_t kRatioOffset = 12;  // into COMPRESSED, after version, type and level

}  // namespace

Result<std::optional<RecordCompressor>> prepare_compression(const WriteOptions& options, Features& features) {
  if (options.copies_data) return std::optional<RecordCompressor>();
  drop_section(features, abi::kFeatureCompressed);
  features.environment.compression.reset();
  if (!options.compression_level) return std::optional<RecordCompressor>();
  auto created = RecordCompressor::create(*options.compression_level);
  if (!created) return std::move(created.error());
  // perf's reader reserves that much memory for the contents of one compressed record.
  features.environment.compression = CompressionInfo{
      1, static_cast<std::uint32_t>(*options.compression_level), 1, 2 * RecordCompressor::kMaxInput};
  return std::optional(std::move(*created));
}

Result<Bytes> packed_records(std::optional<RecordCompressor>& compressor, Bytes records,
                             std::vector<std::byte>& scratch) {
  if (!compressor) return records;
  scratch.clear();
  if (auto compressed = compressor->compress(records, scratch); !compressed)
    return std::move(compressed.error());
  return Bytes(scratch);
}

std::uint64_t room_for_end(const EventSet& events) {
  constexpr std::uint64_t kSections = std::uint64_t{64} << 10, kLostRecord = 128;
  std::uint64_t room = kSections;
  for (const Event& event : events) room += event.ids.size() * kLostRecord;
  return room;
}

std::uint32_t common_attr_size(const EventSet& events, const WriteOptions& options) {
  std::uint32_t size = kCompatibleAttrSize;
  for (const Event& event : events) {
    size = std::max(size, size_to_write(event.attr));
    if (options.as_given) size = std::max(size, event.attr.size);
  }
  return size;
}

Result<CaptureWriter> CaptureWriter::create(const std::string& path, const EventSet& events,
                                            Features features, WriteOptions options) {
  // The file gets its name when the header is complete, so a full disk leaves no file that cannot be read.
  auto output = WholeOutput::create(path, WholeOutput::Old::Kept);
  if (!output) return std::move(output.error());
  auto file = output->duplicate();
  if (!file) return std::move(file.error());
  auto writer = create(std::move(*file), events, std::move(features), options);
  if (!writer) return std::move(writer.error()).in(path);
  if (auto named = output->take_name(); !named) return std::move(named.error());
  return writer;
}

Result<CaptureWriter> CaptureWriter::create(Fd file, const EventSet& events, Features features,
                                            WriteOptions options) {
  auto compressor = prepare_compression(options, features);
  if (!compressor) return std::move(compressor.error());
  hold_for_writing(file.get());
  CaptureWriter writer(std::move(file), std::move(*compressor));
  writer.closing_room_ = room_for_end(events);
  if (auto written = writer.write_head(events, std::move(features), options); !written)
    return std::move(written.error());
  return writer;
}

// Layout: header, ids, attrs, feature sections, the early table, data.
Result<> CaptureWriter::write_head(const EventSet& events, Features features, const WriteOptions& options) {
  if (!options.as_given) features.event_descriptions.assign(events.begin(), events.end());
  const std::uint32_t attr_size = common_attr_size(events, options);
  ByteWriter out;
  out.zeros(FileHead::kSize);
  std::vector<FileSection> ids;
  for (const Event& event : events) {
    ids.push_back({out.size(), event.ids.size() * sizeof(std::uint64_t)});
    for (const std::uint64_t id : event.ids) out.u64(id);
  }
  attr_size_ = attr_size + FileHead::kIdsEntrySize;
  attrs_ = {out.size(), events.size() * attr_size_};
  for (std::size_t i = 0; i < events.size(); ++i) {
    write_event_attr(out, events[i].attr, attr_size);
    out.u64(ids[i].offset).u64(ids[i].size);
  }
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    const std::size_t start = out.size();
    if (!write_feature(feature, features, out)) continue;
    sections_.push_back({feature, {start, out.size() - start}});
    out.align(8);
  }
  early_ = sections_;
  for (std::uint32_t own = abi::kFirstOwnFeature; own < abi::kOwnFeaturesEnd; ++own)
    if (!is_early(own)) early_.push_back({own, {}});
  early_offset_ = out.size();
  write_early_table(out, early_, early_offset_);
  data_offset_ = out.size();
  state_offset_ = data_offset_ - EarlyTable::kTrailerSize + EarlyTable::kStateOffset;
  end_ = data_offset_;
  sound_end_ = data_offset_;
  if (auto written = write_at(file_.get(), 0, out.view()); !written) return written;
  return update_header(end_);
}

bool CaptureWriter::is_early(std::uint32_t feature) const {
  return feature >= abi::kFirstOwnFeature &&
         std::ranges::find(early_, feature, &FeatureSection::feature) != early_.end();
}

std::uint64_t CaptureWriter::table_size() const {
  const auto in_table = [&](const FeatureSection& section) { return !is_early(section.feature); };
  return static_cast<std::uint64_t>(std::ranges::count_if(sections_, in_table)) * 16;
}

Result<> CaptureWriter::append(Bytes bytes) {
  if (auto written = write_at(file_.get(), end_, bytes); !written) return written;
  end_ += bytes.size();
  return Done{};
}

// copy_file_range() copies in the kernel, or shares the blocks where the file system can.
Result<> CaptureWriter::copy_data(int from, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
  while (size > 0) {
    auto in = static_cast<off_t>(offset), out = static_cast<off_t>(end_);
    ssize_t copied = ::copy_file_range(from, &in, file_.get(), &out, static_cast<std::size_t>(size), 0);
    if (copied <= 0) {
      const auto piece = read_at(from, offset, static_cast<std::size_t>(std::min(size, kPiece)));
      if (!piece) return piece.error();
      if (piece->empty()) return Error{"the data ends before its size"};
      if (auto written = write_at(file_.get(), end_, *piece); !written) return written;
      copied = static_cast<ssize_t>(piece->size());
    }
    const auto done = static_cast<std::uint64_t>(copied);
    offset += done;
    end_ += done;
    size -= done;
  }
  return Done{};
}

Result<> CaptureWriter::write_plain(Bytes records) { return append(records); }

Result<> CaptureWriter::append_records(Bytes packed, std::uint64_t inflated) {
  if (auto written = append(packed); !written) return written;
  if (!compressor_) return Done{};
  packed_bytes_ += packed.size();
  inflated_ += inflated;
  return Done{};
}

Result<> CaptureWriter::write_records(Bytes records) {
  const auto bytes = packed_records(compressor_, records, packed_);
  return bytes ? append_records(*bytes, records.size()) : bytes.error();
}

Result<bool> CaptureWriter::write_records_within(Bytes records, std::uint64_t most_bytes) {
  const auto bytes = packed_records(compressor_, records, packed_);
  if (!bytes) return bytes.error();
  if (end_ + table_size() + bytes->size() + closing_room_ > most_bytes) return false;
  if (auto written = append_records(*bytes, records.size()); !written) return std::move(written.error());
  return true;
}

Result<> CaptureWriter::finish_round() {
  ByteWriter mark;
  write_mark(mark, abi::kRecordFinishedRound);
  if (auto written = append(mark.view()); !written) return written;
  return update_header(end_);
}

// Writes the table after the data before the header's data size. After a kill between the two writes the
// header has the old size, and readers use the table in front of the data.
Result<> CaptureWriter::update_header(std::uint64_t data_end) {
  ByteWriter table;
  FileHead head;
  for (const FeatureSection& section : sections_) {
    if (is_early(section.feature)) continue;
    table.u64(section.place.offset).u64(section.place.size);
    head.features.set(section.feature);
  }
  if (auto written = write_at(file_.get(), data_end, table.view()); !written) return written;
  head.attr_size = attr_size_;
  head.attrs = attrs_;
  head.data = {data_offset_, data_end - data_offset_};
  ByteWriter start;
  write_file_head(start, head);
  if (auto written = write_at(file_.get(), 0, start.view()); !written) return written;
  sound_end_ = data_end;
  return Done{};
}

// close_after_failure() must not see sections that were not written.
Result<> CaptureWriter::close_file(const Features& late) {
  std::vector<FeatureSection> before = sections_;
  auto added = add_late(late);
  if (!added) sections_ = std::move(before);
  return added;
}

Result<> CaptureWriter::add_late(const Features& late) {
  // New sections are after the table: their number decides its length.
  ByteWriter bodies;
  std::vector<FeatureSection> added;
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature) {
    if (feature == abi::kFeatureCompressed) continue;
    const std::size_t start = bodies.size();
    if (!write_feature(feature, late, bodies)) continue;
    added.push_back({feature, {start, bodies.size() - start}});
    bodies.align(8);
  }
  for (const FeatureSection& section : added) {
    std::erase_if(sections_, [&](const FeatureSection& old) { return old.feature == section.feature; });
    sections_.push_back(section);
  }
  std::ranges::sort(sections_, {}, &FeatureSection::feature);
  const std::uint64_t bodies_at = end_ + table_size();
  for (FeatureSection& section : sections_)
    if (std::ranges::find(added, section.feature, &FeatureSection::feature) != added.end())
      section.place.offset += bodies_at;
  if (auto written = write_at(file_.get(), bodies_at, bodies.view()); !written) return written;
  file_end_ = bodies_at + bodies.size();
  if (auto written = write_early_entries(); !written) return written;
  if (auto made = update_header(end_); !made) return made;
  return seal();
}

// Fills the entries that were reserved in the early table for tacho's late sections.
Result<> CaptureWriter::write_early_entries() {
  for (std::size_t i = 0; i < early_.size(); ++i) {
    const auto section = std::ranges::find(sections_, early_[i].feature, &FeatureSection::feature);
    if (!is_early(early_[i].feature) || section == sections_.end()) continue;
    ByteWriter entry;
    entry.u64(section->feature).u64(section->place.offset).u64(section->place.size);
    const std::uint64_t at = early_offset_ + i * EarlyTable::kEntrySize;
    if (auto written = write_at(file_.get(), at, entry.view()); !written) return written;
  }
  return Done{};
}

// Writes the compression ratio, rounded, into section COMPRESSED, which was written with ratio 1.
Result<> CaptureWriter::write_ratio() {
  const auto section = std::ranges::find(sections_, abi::kFeatureCompressed, &FeatureSection::feature);
  if (packed_bytes_ == 0 || section == sections_.end()) return Done{};
  ByteWriter ratio;
  ratio.u32(static_cast<std::uint32_t>(
      std::max((inflated_ + packed_bytes_ / 2) / packed_bytes_, std::uint64_t{1})));
  return write_at(file_.get(), section->place.offset + kRatioOffset, ratio.view());
}

// Marks the file as closed in its state word, truncates it after its last section, and makes it durable.
Result<> CaptureWriter::seal() {
  if (auto written = write_ratio(); !written) return written;
  ByteWriter state;
  state.u32(1);
  if (auto written = write_at(file_.get(), state_offset_, state.view()); !written) return written;
  if (::ftruncate(file_.get(), static_cast<off_t>(file_end_)) != 0)
    return output_error(system_error("truncate", errno).what, errno);
  // Some file systems (FUSE, 9p) do not know fdatasync; the data is written all the same.
  if (::fdatasync(file_.get()) != 0 && errno != EINVAL && errno != ENOSYS)
    return output_error(system_error("fdatasync", errno).what, errno);
  return Done{};
}

Result<> CaptureWriter::close_after_failure() {
  end_ = sound_end_;
  file_end_ = end_ + table_size();
  // Truncates an incomplete round first, so that there is room for the table.
  if (::ftruncate(file_.get(), static_cast<off_t>(file_end_)) != 0)
    return output_error(system_error("truncate", errno).what, errno);
  if (auto made = update_header(end_); !made) return made;
  return seal();
}

std::uint64_t CaptureWriter::file_bytes() const { return std::max(file_end_, end_ + table_size()); }

}  // namespace tacho::format
