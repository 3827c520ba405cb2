#include "format/container/feature_sections.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/file.h"
#include "format/container/features.h"
#include "format/container/header_check.h"
#include "format/records/perf_abi.h"

namespace tacho::format {

namespace {

constexpr std::size_t kEntrySize = 16;  // {u64 offset, u64 size}

std::uint64_t end_of(const FileSection& place) { return place.offset + place.size; }

bool lies_inside(const FileSection& place, std::uint64_t file_size) {
  return place.offset <= file_size && place.size <= file_size - place.offset;
}

bool has(const std::vector<FeatureSection>& sections, std::uint32_t feature) {
  return std::ranges::find(sections, feature, &FeatureSection::feature) != sections.end();
}

class TableFinder {
 public:
  TableFinder(int fd, const FileHead& head, std::uint64_t file_size, Diagnostics& diagnostics)
      : fd_(fd),
        head_(head),
        file_size_(file_size),
        diagnostics_(diagnostics),
        place_{end_of(head.data), head.features.count() * kEntrySize} {}

  FeatureTable find();

 private:
  std::vector<FeatureSection> entries_in(Bytes table) const;
  bool is_inside(const std::vector<FeatureSection>& sections, std::uint64_t file_size) const;
  void read_early();
  bool read_table();
  bool table_is_data() const;
  bool fits_whole_file(const std::vector<FeatureSection>& sections, std::uint64_t missing) const;
  bool find_moved_table();
  void add_own_sections();

  int fd_;
  const FileHead& head_;
  std::uint64_t file_size_;
  Diagnostics& diagnostics_;
  FileSection place_;  // where the header says that the table after the data is
  std::optional<EarlyTable> early_;
  std::vector<FeatureSection> early_sections_;
  FeatureTable found_;
};

std::vector<FeatureSection> TableFinder::entries_in(Bytes table) const {
  std::vector<FeatureSection> sections;
  Cursor in(table, head_.order);
  for (std::uint32_t feature = 0; feature < abi::kFeatureCount; ++feature)
    if (head_.features[feature]) sections.push_back({feature, {in.u64(), in.u64()}});
  return sections;
}

bool TableFinder::is_inside(const std::vector<FeatureSection>& sections, std::uint64_t file_size) const {
  return std::ranges::all_of(
      sections, [&](const FeatureSection& section) { return lies_inside(section.place, file_size); });
}

void TableFinder::read_early() {
  if (head_.data.offset < FileHead::kSize + EarlyTable::kTrailerSize) return;
  const auto trailer = read_at(fd_, head_.data.offset - EarlyTable::kTrailerSize, EarlyTable::kTrailerSize);
  if (trailer) early_ = parse_early_trailer(*trailer, head_.order);
  if (!early_ || early_->offset > head_.data.offset ||
      early_->entries > (head_.data.offset - early_->offset) / EarlyTable::kEntrySize)
    return;
  const auto entries = read_at(fd_, early_->offset, early_->entries * EarlyTable::kEntrySize);
  if (entries) early_sections_ = parse_early_entries(*entries, head_.order);
}

// Reads the table after the data. False: its offsets are impossible, so the recorder was killed before it
// wrote the table.
bool TableFinder::read_table() {
  if (!lies_inside(place_, file_size_)) return false;
  const auto bytes = read_at(fd_, place_.offset, static_cast<std::size_t>(place_.size));
  if (!bytes) return false;
  found_.sections = entries_in(*bytes);
  return is_inside(found_.sections, file_size_);
}

// perf writes data size 0 until it closes the file: then data is where the table would be.
bool TableFinder::table_is_data() const {
  return head_.data.size == 0 && std::ranges::any_of(found_.sections, [&](const FeatureSection& section) {
           return section.place.size != 0 && section.place.offset < head_.data.offset;
         });
}

// Whether the sections would fill the file without gaps, from the end of the table to the end of the file, if
// the file had `missing` more bytes.
bool TableFinder::fits_whole_file(const std::vector<FeatureSection>& sections, std::uint64_t missing) const {
  constexpr std::uint64_t kPadding = 8;  // a section may be followed by less than this many bytes
  if (!is_inside(sections, file_size_ + missing)) return false;
  std::vector<FileSection> after_table;
  const auto add = [&](const FeatureSection& section) {
    if (section.place.offset >= head_.data.offset && section.place.size != 0)
      after_table.push_back(section.place);
  };
  const auto is_listed_early = [&](const FeatureSection& section) {
    const auto twin = std::ranges::find(early_sections_, section.feature, &FeatureSection::feature);
    return twin != early_sections_.end() && twin->place == section.place;
  };
  for (const FeatureSection& section : sections) {
    if (section.place.offset < head_.data.offset && !is_listed_early(section)) return false;
    add(section);
  }
  for (const FeatureSection& own : early_sections_)
    if (own.feature >= abi::kFirstOwnFeature && !has(sections, own.feature)) add(own);
  std::ranges::sort(after_table, {}, &FileSection::offset);
  after_table.push_back({file_size_ + missing, 0});
  // perf keeps table entries for sections that it could not write.
  constexpr std::uint64_t kMostRoom = 32 * kEntrySize;
  std::uint64_t end = end_of(place_);
  const std::uint64_t room = after_table.front().offset - std::min(after_table.front().offset, end);
  if (room % kEntrySize == 0 && room <= kMostRoom) end += room;
  for (const FileSection& place : after_table) {
    if (place.offset < end || place.offset - end >= kPadding) return false;
    end = end_of(place);
  }
  return true;
}

// Finds the table when bytes are missing from the data: it is nearer to the file's start, at the offset where
// its sections fill the rest of the file.
bool TableFinder::find_moved_table() {
  constexpr std::uint64_t kMostMissing = 4096;
  const std::uint64_t most = std::min(kMostMissing, head_.data.size);
  if (place_.size == 0 || !lies_inside({place_.offset - most, place_.size}, file_size_)) return false;
  const std::uint64_t wanted = std::min(most + place_.size, file_size_ - (place_.offset - most));
  const auto bytes = read_at(fd_, place_.offset - most, static_cast<std::size_t>(wanted));
  if (!bytes) return false;
  for (std::uint64_t missing = 1; missing <= most; ++missing) {
    const auto at = static_cast<std::size_t>(most - missing);
    if (at + place_.size > bytes->size()) continue;
    auto sections = entries_in(Bytes(*bytes).subspan(at, static_cast<std::size_t>(place_.size)));
    if (!fits_whole_file(sections, missing)) continue;
    for (FeatureSection& section : sections)
      if (section.place.offset >= place_.offset) section.place.offset -= missing;
    found_.sections = std::move(sections);
    found_.missing = missing;
    return true;
  }
  return false;
}

// Adds tacho's own sections, which only the early table lists.
void TableFinder::add_own_sections() {
  for (const FeatureSection& own : early_sections_) {
    if (own.feature < abi::kFirstOwnFeature || has(found_.sections, own.feature)) continue;
    FeatureSection section = own;
    if (section.place.offset >= place_.offset) section.place.offset -= found_.missing;
    found_.sections.push_back(section);
  }
}

FeatureTable TableFinder::find() {
  read_early();
  const bool has_table = read_table();
  found_.is_closed = early_ ? early_->is_closed : head_.data.size != 0 || (has_table && !table_is_data());
  const bool is_moved =
      found_.is_closed && !(has_table && fits_whole_file(found_.sections, 0)) && find_moved_table();
  const bool use_early = early_ && (!early_->is_closed || !(has_table || is_moved));
  if (is_moved) {
    diagnostics_.add_finding(Damage::CutShort, place_.offset - found_.missing,
                             std::to_string(found_.missing) + " bytes of the data are missing");
    add_own_sections();
  } else if (use_early) {
    // If the data is truncated, only that is reported: everything after it is missing too.
    if (early_->is_closed && place_.offset <= file_size_)
      diagnostics_.add_finding(
          Damage::CutShort, place_.offset,
          "the header sections after the data are missing; those before the data are used");
    found_.sections = early_sections_;
  } else if (!found_.is_closed) {
    found_.sections.clear();
  } else {
    if (!has_table)
      diagnostics_.add_finding(Damage::BadFeature, place_.offset,
                               "the table of header sections is missing or points outside the file");
    add_own_sections();
    if (has_table) {
      check_sections(place_, found_.sections, file_size_, diagnostics_);
      if (early_) check_early_table(early_sections_, found_.sections, head_.data.offset, diagnostics_);
    }
  }
  std::erase_if(found_.sections,
                [&](const FeatureSection& section) { return !lies_inside(section.place, file_size_); });
  return std::move(found_);
}

}  // namespace

FeatureTable find_feature_sections(int fd, const FileHead& head, std::uint64_t file_size,
                                   Diagnostics& diagnostics) {
  return TableFinder(fd, head, file_size, diagnostics).find();
}

namespace {

constexpr std::size_t kPiece = 65024;  // bytes of a section in one record, whose size field is 16 bits wide
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace

// Layout: u64 kind, u64 id 0 (for perf the first event's id), u32 feature, u32 0, u64 size of the section,
// u64 offset of the piece in it, bytes, zeros up to a multiple of 8.
void write_section_pieces(ByteWriter& out, std::uint32_t feature, Bytes section) {
  std::size_t offset = 0;
  do {
    const Bytes piece = section.subspan(offset, std::min(kPiece, section.size() - offset));
    const std::size_t start = out.size();
    out.u32(abi::kRecordEventUpdate).u16(0).u16(0).u64(kSectionPiece).u64(0);
    out.u32(feature).u32(0).u64(section.size()).u64(offset).bytes(piece);
    out.zeros((8 - piece.size() % 8) % 8);
    out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
    offset += piece.size();
  } while (offset < section.size());
}

Result<std::optional<SectionPieces::Section>> SectionPieces::add_piece(const EventUpdateRecord& update,
                                                                       std::endian order) {
  Cursor in(update.data, order);
  const std::uint32_t feature = in.u32();
  in.u32();
  const std::uint64_t total = in.u64();
  const std::uint64_t offset = in.u64();
  if (in.failed() || total > kMostBytes || offset > total) return Error{"a piece of a section is cut short"};
  if (offset == 0) {
    section_ = {feature, {}};
    total_ = total;
  } else if (feature != section_.feature || total != total_ || offset != section_.bytes.size()) {
    total_ = 0;
    return Error{"a piece of section " + std::to_string(feature) + " is missing before byte " +
                 std::to_string(offset)};
  }
  const Bytes piece = in.take_bytes(std::min<std::uint64_t>(in.left(), total - offset));
  section_.bytes.insert(section_.bytes.end(), piece.begin(), piece.end());
  if (section_.bytes.size() < total) return std::optional<Section>();
  total_ = 0;
  return std::optional(std::exchange(section_, {}));
}

namespace {

// Sections that a recorder writes again at the end, with more in them (record/session/capture_series.cc). No
// view keeps pointers into them.
bool may_come_again(std::uint32_t feature) {
  return feature == abi::kFeatureEventDesc || feature == abi::kFeatureAttachedPrograms ||
         feature == abi::kFeatureUserStacks;
}

std::size_t digest_of(Bytes bytes) { return std::hash<std::string_view>()(as_text(bytes)); }

}  // namespace

bool SeenFeatures::is_duplicate(std::uint32_t feature, Bytes bytes, std::uint64_t offset,
                                Diagnostics& diagnostics) const {
  const auto taken = digests_.find(feature);
  if (taken == digests_.end() || may_come_again(feature)) return false;
  if (taken->second == digest_of(bytes)) return true;
  const std::string_view name = feature_name(feature);
  diagnostics.add_finding(Damage::BadFeature, offset,
                          (name.empty() ? "section " + std::to_string(feature) : std::string(name)) +
                              " comes a second time and differs from the first: ignored");
  return true;
}

void SeenFeatures::add_section(std::uint32_t feature, Bytes bytes) {
  digests_.insert_or_assign(feature, digest_of(bytes));
}

}  // namespace tacho::format
