#include "report/views/convert/convert_selection.h"

#include <algorithm>
#include <utility>

#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/samples/event_choice.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::EventAttr;
using format::EventSet;
using format::RecordView;

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Records about their event itself: without it they mean nothing.
constexpr std::uint32_t kOfTheEventAlone[] = {
    abi::kRecordSample,      abi::kRecordRead, abi::kRecordThrottle,    abi::kRecordUnthrottle,
    abi::kRecordLostSamples, abi::kRecordAux,  abi::kRecordItraceStart, abi::kRecordAuxOutputHwId,
};

bool has_sample_ids(const EventAttr& attr) {
  return attr.samples(abi::kSampleIdentifier) || attr.samples(abi::kSampleId);
}

RecordView view_of(format::ByteWriter& scratch, const RecordView& record) {
  scratch.patch<std::uint16_t>(6, static_cast<std::uint16_t>(scratch.size()));
  RecordView view = record;
  view.bytes = scratch.view();
  view.order = std::endian::native;
  return view;
}

// User records that name an event's id at this place of their body.
struct IdPlaceRow {
  std::uint32_t type;
  std::size_t offset;  // bytes
};
constexpr IdPlaceRow kIdPlaces[] = {{abi::kRecordEventUpdate, 8}, {abi::kRecordStat, 0}};

}  // namespace

Result<ConvertSelection> ConvertSelection::create(const std::vector<std::string>& names,
                                                  const std::string& times, const EventSet& events,
                                                  const format::Features& features) {
  ConvertSelection selection(events);
  if (!names.empty())
    if (auto chosen = selection.choose(names, features); !chosen) return std::move(chosen.error());
  if (!times.empty())
    if (auto chosen = selection.choose_times(times, features); !chosen) return std::move(chosen.error());
  return selection;
}

Result<> ConvertSelection::choose(const std::vector<std::string>& names, const format::Features& features) {
  std::vector<std::string> all;
  for (const auto& event : *all_) all.push_back(event.name);
  EventChoice choice = choose_events(names, all);
  if (choice.unknown) return not_one_event("--events", *choice.unknown, all);
  kept_ = std::move(choice.chosen);
  const auto has_none = [](const format::Event& event) { return !has_sample_ids(event.attr); };
  if (all_->size() > 1 && std::ranges::any_of(*all_, has_none))
    return use_error("--events: the samples of this capture do not say which event they belong to");
  keep_groups_whole(features);
  heir_ = static_cast<std::size_t>(std::ranges::find(kept_, true) - kept_.begin());
  return Done{};
}

// The leader's samples hold the values of all members: choosing one chooses the group.
void ConvertSelection::keep_groups_whole(const format::Features& features) {
  for (const format::EventGroup& group : features.environment.groups) {
    if (group.leader >= kept_.size() || group.members > kept_.size() - group.leader) continue;
    const EventAttr& leader = (*all_)[group.leader].attr;
    if (!leader.samples(abi::kSampleRead) || (leader.read_format & abi::kReadGroup) == 0) continue;
    const auto first = kept_.begin() + group.leader;
    if (std::find(first, first + group.members, true) != first + group.members)
      std::fill(first, first + group.members, true);
  }
}

Result<> ConvertSelection::choose_times(const std::string& times, const format::Features& features) {
  auto ranges = parse_times(times, features.environment);
  if (!ranges) return std::move(ranges.error());
  filter_.times = std::move(*ranges);
  for (std::size_t i = 0; i < all_->size(); ++i)
    if (keeps(i) && !(*all_)[i].attr.samples(abi::kSampleTime))
      return use_error("--time: samples of the event '" + (*all_)[i].name + "' have no time");
  return Done{};
}

const EventSet& ConvertSelection::events(EventSet& scratch) const {
  if (kept_.empty()) return *all_;
  for (std::size_t i = 0; i < all_->size(); ++i)
    if (keeps(i)) scratch.add((*all_)[i]);
  return scratch;
}

bool ConvertSelection::keeps_id(std::uint64_t id) const {
  if (kept_.empty() || id == 0) return true;
  const auto event = all_->find_id(id);
  return event && keeps(*event);
}

void ConvertSelection::adjust(format::Features& features) const {
  auto& environment = features.environment;
  if (!filter_.times.empty() && environment.sample_time) {
    auto& [first, last] = *environment.sample_time;
    first = std::max(first, filter_.times.front().first);
    last = std::max(first, std::min(last, filter_.times.back().last));
    format::drop_section(features, abi::kFeatureSampleTime);
  }
  if (kept_.empty()) return;
  if (features.event_descriptions.size() == kept_.size()) {
    std::vector<format::Event> descriptions;
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i]) descriptions.push_back(std::move(features.event_descriptions[i]));
    features.event_descriptions = std::move(descriptions);
    format::drop_section(features, abi::kFeatureEventDesc);
  }
  std::vector<format::EventGroup> groups;
  for (format::EventGroup group : environment.groups) {
    if (group.leader >= kept_.size() || group.members > kept_.size() - group.leader) continue;
    const auto leader = kept_.begin() + group.leader;
    if (!*leader) continue;
    const auto members = std::count(leader, leader + group.members, true);
    group.leader = static_cast<std::uint32_t>(std::count(kept_.begin(), leader, true));
    group.members = static_cast<std::uint32_t>(members);
    if (members > 1) groups.push_back(std::move(group));
  }
  environment.groups = std::move(groups);
  format::drop_section(features, abi::kFeatureGroupDesc);
}

std::optional<RecordView> ConvertSelection::apply(const RecordView& record, format::ByteWriter& scratch,
                                                  format::Diagnostics& diagnostics) const {
  if (kept_.empty() && filter_.times.empty()) return record;
  if (record.type < abi::kRecordUserStart) return apply_to_kernel(record, scratch, diagnostics);
  if (kept_.empty()) return record;
  if (record.type == abi::kRecordIdIndex) return shorten_id_index(record, scratch);
  const auto place = std::ranges::find(kIdPlaces, record.type, &IdPlaceRow::type);
  if (place == std::end(kIdPlaces)) return record;
  format::Cursor body = record.body();
  body.skip(place->offset);
  return keeps_id(body.u64()) ? std::optional(record) : std::nullopt;
}

std::optional<RecordView> ConvertSelection::apply_to_kernel(const RecordView& record,
                                                            format::ByteWriter& scratch,
                                                            format::Diagnostics& diagnostics) const {
  const auto event = all_->event_of(record);
  if (!event) {
    diagnostics.add(format::Damage::UnknownEvent, record.offset,
                    std::string(format::record_name(record.type)));
    return std::nullopt;
  }
  const EventAttr& attr = (*all_)[*event].attr;
  if (!keeps(*event)) {
    const bool goes = std::ranges::find(kOfTheEventAlone, record.type) != std::end(kOfTheEventAlone);
    return goes ? std::nullopt : std::optional(give_to_heir(record, attr, scratch));
  }
  if (record.type != abi::kRecordSample || filter_.times.empty()) return record;
  const auto time = format::sample_time(record, attr);
  if (!time) {
    diagnostics.add(format::Damage::BadRecord, record.offset, "a sample ends before its time");
    return std::nullopt;
  }
  return filter_.accepts_time(*time) ? std::optional(record) : std::nullopt;
}

// The same record with the sample_id and the id of the event that replaces its own.
RecordView ConvertSelection::give_to_heir(const RecordView& record, const EventAttr& from,
                                          format::ByteWriter& scratch) const {
  const format::Event& heir = (*all_)[heir_];
  const std::uint64_t heirs_id = heir.ids.empty() ? 0 : heir.ids.front();
  const std::size_t trailer = format::sample_id_size(from);
  const bool has_trailer = trailer != 0 && record.bytes.size() >= format::kRecordHeaderSize + trailer;
  format::SampleId id =
      has_trailer ? format::parse_sample_id(record, from) : format::SampleId{0, 0, 0, 0, 0, 0};
  if (id.id != 0) id.id = heirs_id;
  if (!from.samples(abi::kSampleTime)) id.time = 0;  // none is written as 0
  scratch.clear();
  scratch.bytes(record.bytes.first(record.bytes.size() - (has_trailer ? trailer : 0)));
  if (record.type == abi::kRecordLost && scratch.size() >= format::kRecordHeaderSize + kWord)
    scratch.patch(format::kRecordHeaderSize, heirs_id);
  format::write_sample_id(scratch, id, heir.attr);
  return view_of(scratch, record);
}

// u64 count, entries of four words beginning with an id, and perhaps as many entries of two words.
RecordView ConvertSelection::shorten_id_index(const RecordView& record, format::ByteWriter& scratch) const {
  constexpr std::size_t kEntry = 4, kGuestEntry = 2;  // words
  format::Cursor in = record.body();
  const std::uint64_t count = in.u64();
  const format::U64Array entries = in.words(count, kEntry);
  if (in.failed()) return record;
  const bool has_guests = count != 0 && in.left() / (kGuestEntry * kWord) >= count;
  const format::U64Array guests = in.words(has_guests ? count : 0, kGuestEntry);
  scratch.clear();
  scratch.bytes(record.bytes.first(format::kRecordHeaderSize + kWord));  // the count is set below
  std::uint64_t stay = 0;
  const auto copy_kept = [&](const format::U64Array& from, std::size_t words) {
    for (std::size_t i = 0; i < from.size() / words; ++i)
      if (keeps_id(entries[i * kEntry]))
        scratch.bytes(from.bytes().subspan(i * words * kWord, words * kWord));
  };
  for (std::size_t i = 0; i < count; ++i) stay += keeps_id(entries[i * kEntry]) ? 1 : 0;
  copy_kept(entries, kEntry);
  copy_kept(guests, kGuestEntry);
  scratch.patch(format::kRecordHeaderSize, stay);
  return view_of(scratch, record);
}

}  // namespace tacho::report
