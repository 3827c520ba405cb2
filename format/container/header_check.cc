#include "format/container/header_check.h"

#include <algorithm>
#include <string>

#include "format/records/perf_abi.h"

namespace tacho::format {

namespace {

constexpr std::uint64_t kPadding = 8;  // a body may be followed by less than this many bytes

// attr.size may differ: a recorder that is older than the kernel has the kernel's size in one of the copies.
bool is_same(const EventAttr& one, const EventAttr& other) {
  EventAttr copy = other;
  copy.size = one.size;
  copy.tail = one.tail;
  return one == copy;
}

}  // namespace

void check_sections(const FileSection& table, const std::vector<FeatureSection>& sections,
                    std::uint64_t file_size, Diagnostics& diagnostics) {
  const auto damaged = [&](std::uint64_t offset, std::string what) {
    diagnostics.add_finding(Damage::BadFeature, offset, std::move(what));
  };
  std::vector<FileSection> after_table;
  const std::uint64_t table_end = table.offset + table.size;
  for (const FeatureSection& section : sections) {
    const FileSection& place = section.place;
    const std::string name = "section " + std::to_string(section.feature);
    if (place.offset < FileHead::kSize)
      damaged(table.offset, name + " points into the file's header, at " + std::to_string(place.offset));
    else if (place.offset + place.size > table.offset && place.offset < table_end)
      damaged(place.offset, name + " overlaps the table of sections");
    else if (place.offset >= table_end)
      after_table.push_back(place);
  }
  std::ranges::sort(after_table, {},
                    [](const FileSection& place) { return std::pair(place.offset, place.size); });
  // The table may have unused entries: perf leaves one for a section that it could not write.
  std::uint64_t end = after_table.empty() ? table_end : after_table.front().offset;
  after_table.push_back({file_size, 0});
  for (const FileSection& place : after_table) {
    if (place.offset < end) return damaged(place.offset, "two sections overlap");
    const bool is_trailing = place.offset == file_size && !sections.empty();
    const std::uint64_t unowned = place.offset - end;
    if (unowned >= kPadding && is_trailing)
      return diagnostics.add_finding(
          Damage::Note, end,
          std::to_string(unowned) + " bytes after the last feature section are not part of the capture");
    if (unowned >= kPadding) return damaged(end, std::to_string(unowned) + " bytes belong to no section");
    end = place.offset + place.size;
  }
}

void check_early_table(const std::vector<FeatureSection>& early, const std::vector<FeatureSection>& sections,
                       std::uint64_t data_offset, Diagnostics& diagnostics) {
  for (const FeatureSection& section : sections) {
    if (section.place.offset >= data_offset) continue;  // replaced when the file was closed
    const auto twin = std::ranges::find(early, section.feature, &FeatureSection::feature);
    if (twin != early.end() && twin->place == section.place) continue;
    diagnostics.add_finding(Damage::BadFeature, section.place.offset,
                            "section " + std::to_string(section.feature) +
                                " has different offsets in the tables before and after the data");
  }
}

void check_ids(const FileSection& ids, const FileSection& attrs, Diagnostics& diagnostics) {
  if (ids.size == 0) return;
  const bool overlaps = ids.offset < attrs.offset + attrs.size && attrs.offset < ids.offset + ids.size;
  if (ids.offset < FileHead::kSizeWithoutFeatures || overlaps || ids.size % 8 != 0)
    diagnostics.add_finding(
        Damage::BadFeature, ids.offset,
        "the ids of an event, " + std::to_string(ids.size) + " bytes, overlap the header or the events");
}

void check_descriptions(const EventSet& events, const Features& features, std::uint64_t attr_room,
                        Diagnostics& diagnostics) {
  const auto& described = features.event_descriptions;
  if (described.empty()) return;
  const auto damaged = [&](std::string what) {
    diagnostics.add_finding(Damage::BadFeature, Diagnostics::kNoOffset,
                            std::move(what) + "; one of them is damaged, the table of events is used");
  };
  if (described.size() != events.size())
    return damaged("EVENT_DESC describes " + std::to_string(described.size()) + " events, the table has " +
                   std::to_string(events.size()));
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::string event = "event " + std::to_string(i) + ": ";
    const std::uint32_t size = events[i].attr.size;
    const bool is_shorter = size < attr_room && described[i].attr.size == attr_room;
    if (is_shorter || !is_same(events[i].attr, described[i].attr))
      damaged(event + "EVENT_DESC and the table differ");
    if (events[i].ids != described[i].ids) damaged(event + "its ids differ in EVENT_DESC and the table");
  }
}

void check_known(const EventAttr& attr, std::size_t event, Diagnostics& diagnostics) {
  const auto unknown = [&](std::string_view field, std::uint64_t bits) {
    if (bits == 0) return;
    diagnostics.add_finding(Damage::BadFeature, Diagnostics::kNoOffset,
                            "event " + std::to_string(event) + " has bits in " + std::string(field) +
                                " that this program does not know: its samples may be misread");
  };
  unknown("sample_type", attr.sample_type & ~abi::kKnownSampleTypes);
  unknown("read_format", attr.read_format & ~abi::kKnownReadFormats);
  if (attr.size % 8 != 0)
    diagnostics.add_finding(Damage::BadFeature, Diagnostics::kNoOffset,
                            "event " + std::to_string(event) + " has an attribute of " +
                                std::to_string(attr.size) + " bytes, a multiple of 8 was expected");
}

}  // namespace tacho::format
