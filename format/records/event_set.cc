#include "format/records/event_set.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>

#include "format/records/sample.h"

namespace tacho::format {

namespace {

// Index of the id's word after a SAMPLE's header; -1: none.
int sample_id_word(const EventAttr& attr) {
  if (attr.samples(abi::kSampleIdentifier)) return 0;
  if (!attr.samples(abi::kSampleId)) return -1;
  const std::uint64_t before = abi::kSampleIp | abi::kSampleTid | abi::kSampleTime | abi::kSampleAddr;
  return std::popcount(attr.sample_type & before);
}

// Index of the id's word, counted from the end of other kernel records; -1: none.
int trailer_id_word(const EventAttr& attr) {
  if (!attr.has(abi::kSampleIdAll)) return -1;
  if (attr.samples(abi::kSampleIdentifier)) return 1;
  if (!attr.samples(abi::kSampleId)) return -1;
  const std::uint64_t after = abi::kSampleStreamId | abi::kSampleCpu;
  return 1 + std::popcount(attr.sample_type & after);
}

std::uint64_t read_word(Bytes at, std::endian order) {
  std::uint64_t word;
  std::memcpy(&word, at.data(), sizeof word);
  return order == std::endian::native ? word : Cursor::swapped(word);
}

}  // namespace

std::size_t EventSet::add_event(Event event) {
  const std::size_t index = events_.size();
  for (const std::uint64_t id : event.ids) index_id(id, index);
  events_.push_back(std::move(event));
  place_ids(events_.back().attr);
  return index;
}

void EventSet::add_id(std::size_t event, std::uint64_t id) {
  events_[event].ids.push_back(id);
  index_id(id, event);
}

void EventSet::index_id(std::uint64_t id, std::size_t event) {
  constexpr std::size_t kMostIndexed = std::size_t{1} << 16;  // ids
  add_to_runs({id, static_cast<std::uint32_t>(event)});
  if (index_.empty()) first_id_ = id - std::min<std::uint64_t>(id, kMostIndexed / 2);
  const std::uint64_t place = id - first_id_;
  if (id < first_id_ || place >= kMostIndexed) return;
  if (index_.size() <= place) index_.resize(place + 1, kNoEvent);
  index_[place] = static_cast<std::uint32_t>(event);
}

// Merges sorted runs of ids, as merge sort does. Recorders write ids in ascending order, so mostly there is
// one run; in any order there are at most log2(n) runs, and each id is moved log2(n) times.
void EventSet::add_to_runs(IdOf added) {
  if (by_id_.empty() || added.id < by_id_.back().id) runs_.push_back(by_id_.size());
  by_id_.push_back(added);
  const auto at = [this](std::size_t place) { return by_id_.begin() + static_cast<std::ptrdiff_t>(place); };
  while (runs_.size() > 1) {
    const std::size_t last = runs_.back(), before = runs_[runs_.size() - 2];
    if (last - before > 2 * (by_id_.size() - last)) return;
    std::inplace_merge(at(before), at(last), by_id_.end(),
                       [](const IdOf& one, const IdOf& other) { return one.id < other.id; });
    runs_.pop_back();
  }
}

void EventSet::set_name(std::size_t event, std::string name) {
  events_[event].name = std::move(name);
  events_[event].name_is_made = false;
}

void EventSet::make_name(std::size_t event, std::string name) {
  events_[event].name = std::move(name);
  events_[event].name_is_made = true;
}

void EventSet::place_ids(const EventAttr& added) {
  const int sample_word = format::sample_id_word(added);
  const int trailer_word = format::trailer_id_word(added);
  const bool is_first = events_.size() == 1;
  if (is_first || sample_word != sample_id_word_) sample_id_word_ = is_first ? sample_word : -1;
  if (is_first || trailer_word != trailer_id_word_) trailer_id_word_ = is_first ? trailer_word : -1;
  if (is_first) trailer_size_ = sample_id_size(added);
  if (added.sample_type != events_.front().attr.sample_type) samples_are_alike_ = false;
}

std::optional<std::size_t> EventSet::find_id(std::uint64_t id) const {
  if (id >= first_id_ && id - first_id_ < index_.size() && index_[id - first_id_] != kNoEvent)
    return index_[id - first_id_];
  std::size_t end = by_id_.size();
  for (auto run = runs_.rbegin(); run != runs_.rend(); end = *run++) {
    const std::span all(by_id_.data() + *run, end - *run);
    const auto next = std::ranges::upper_bound(all, id, {}, &IdOf::id);  // the last of equal ids is used
    if (next != all.begin() && std::prev(next)->id == id) return std::prev(next)->event;
  }
  return std::nullopt;
}

std::optional<std::size_t> EventSet::event_of(const RecordView& record) const {
  if (events_.empty()) return std::nullopt;
  if (events_.size() == 1 || record.type >= abi::kRecordUserStart) return 0;
  const bool is_sample = record.type == abi::kRecordSample;
  const Bytes whole = is_sample ? record.bytes : declared_bytes(record, trailer_size_);
  const Bytes body = whole.subspan(kRecordHeaderSize);
  if (!is_sample && trailer_size_ == 0) return 0;  // before Linux 2.6.38: no record has a trailer
  const int word = is_sample ? sample_id_word_ : trailer_id_word_;
  if (word < 0) {
    // Without ids, samples can be read as the first event's if all events have the same fields.
    return samples_are_alike_ ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const auto offset = static_cast<std::size_t>(word) * sizeof(std::uint64_t);
  if (body.size() < offset + (is_sample ? sizeof(std::uint64_t) : 0)) return std::nullopt;
  const std::uint64_t id = read_word(is_sample ? body.subspan(offset) : body.last(offset), record.order);
  if (id == 0) return 0;
  return find_id(id);
}

}  // namespace tacho::format
