#include "report/samples/sums.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Of one lane with merged addresses: groups and locations; keys and addresses in its caches.
constexpr std::size_t kMostSums = std::size_t{1} << 15, kMostKeys = std::size_t{1} << 17,
                      kMostAddresses = std::size_t{1} << 18;

template <class T>
T read_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

SumSample::SumSample(const SumGroup& row, const format::EventSet& events) {
  raw_.pid = row.thread->pid;
  raw_.tid = row.thread->tid;
  sample_.raw = &raw_;
  sample_.events = &events;
  sample_.event_index = sample_.record_event = row.event;
  sample_.thread = row.thread;
  sample_.comm = row.comm;
  sample_.stack = row.stack;
}

SumLane::SumLane(SampleLane& lane, const symbolize::SymbolOptions& symbols, const SampleOptions& options,
                 const SumShape& shape, const NameMerging& names)
    : lane_(&lane), options_(&options), merging_(&names), shape_(shape) {
  const format::CaptureReader& capture = lane.capture();
  make_places();
  if (options.keeps_callers) chains_.keep_callers();
  if (symbols.callers == symbolize::Callers::ByCall) chains_.mark_callers();
  for (const format::Event& event : capture.events())
    layouts_.push_back(layout_of(event.attr, capture.layout().order));
}

// The kernel's order of fields of fixed size, see format/records/sample.cc.
SumLane::Layout SumLane::layout_of(const format::EventAttr& attr, std::endian order) {
  constexpr std::uint64_t kFields[] = {abi::kSampleIdentifier, abi::kSampleIp,   abi::kSampleTid,
                                       abi::kSampleTime,       abi::kSampleAddr, abi::kSampleId,
                                       abi::kSampleStreamId,   abi::kSampleCpu,  abi::kSamplePeriod};
  Layout layout;
  std::uint64_t others = attr.sample_type & ~std::uint64_t{abi::kSampleCallchain};
  std::size_t at = format::kRecordHeaderSize;
  for (const std::uint64_t field : kFields) {
    if ((attr.sample_type & field) == 0) continue;
    if (field == abi::kSampleIp) layout.ip = static_cast<std::uint16_t>(at);
    if (field == abi::kSamplePeriod) layout.period = static_cast<std::uint16_t>(at);
    others &= ~field;
    at += sizeof(std::uint64_t);
  }
  layout.fixed = static_cast<std::uint16_t>(at);
  layout.has_chain = attr.samples(abi::kSampleCallchain);
  layout.sample_period = attr.sample_period;
  layout.is_plain = others == 0 && order == std::endian::native;
  return layout;
}

void SumLane::add(std::span<const BatchItem> items, std::uint64_t first) {
  constexpr std::size_t kAhead = 12;
  if (shape_.places != Sink::Places::Addresses) bound_caches();
  std::size_t together = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) {  // they are in another CPU's cache
      __builtin_prefetch(items[i + kAhead].record);
      __builtin_prefetch(items[i + kAhead].record + 64);
    }
    const BatchItem& item = items[i];
    if (!item.is_sample) continue;
    Prepared& sample = prepared_[together];
    sample.number = first + i;
    if (!read(item, sample)) continue;
    ++samples_;
    if (!sample.chain && shape_.by_stack && shape_.needs_stack) continue;
    if (sample.period == 0 && shape_.counts_nought) sample.period = 1;
    sample.thread = thread_key_of(item);
    compute_key(sample);
    // The next sample overwrites a chain in the lane's buffer, so this one is added now.
    const bool is_own = sample.chain && !layouts_[item.event].is_plain;
    if (++together == kPrepared || is_own) add_prepared(std::exchange(together, 0));
  }
  add_prepared(together);
}

// False: the record is damaged.
bool SumLane::read(const BatchItem& item, Prepared& sample) {
  sample.item = &item;
  const Layout& layout = layouts_[item.event];
  if (layout.is_plain && read_plain(item, layout, sample)) return true;
  const format::Sample* const parsed = lane_->sample_of(item);
  if (parsed == nullptr) return false;
  sample.ip = parsed->ip;
  sample.period = parsed->period;
  sample.cpumode = static_cast<std::uint8_t>(parsed->misc & abi::kCpumodeMask);
  sample.chain = shape_.by_stack ? lane_->chain_of(item, *parsed) : std::nullopt;
  sample.is_first = sample.chain && lane_->chain_begins_with_ip();
  sample.is_payload = sample.chain && lane_->is_payload_chain();
  return true;
}

// False: the record is for SampleLane's parser, which checks each field.
bool SumLane::read_plain(const BatchItem& item, const Layout& layout, Prepared& sample) {
  if (item.size < layout.fixed) return false;
  const std::byte* const record = item.record;
  const std::byte* const behind = record + layout.fixed;
  std::uint64_t count = 0;
  if (layout.has_chain) {
    const std::size_t left = item.size - layout.fixed;
    if (left < sizeof count) return false;
    count = read_at<std::uint64_t>(behind);
    if (count != (left - sizeof count) / sizeof count || left % sizeof count != 0) return false;
  } else if (item.size != layout.fixed) {
    return false;
  }
  constexpr std::size_t kMisc = 4;  // in a record's header
  sample.ip = layout.ip == 0 ? 0 : read_at<std::uint64_t>(record + layout.ip);
  sample.period = layout.period == 0 ? layout.sample_period : read_at<std::uint64_t>(record + layout.period);
  sample.cpumode = static_cast<std::uint8_t>(read_at<std::uint16_t>(record + kMisc) & abi::kCpumodeMask);
  sample.is_payload = sample.is_first = false;
  sample.chain.reset();
  if (!layout.has_chain || !shape_.by_stack) return true;
  const std::byte* const words = behind + sizeof count;
  sample.chain =
      Chain{format::U64Array({words, count * sizeof count}, std::endian::native), {}, options_->max_stack};
  const bool may_lack_first = options_->keeps_callers && count > options_->max_stack;
  sample.is_first = !may_lack_first && begins_with_ip(sample.chain->words, sample.ip, sample.cpumode);
  return true;
}

std::uint32_t SumLane::thread_key_of(const BatchItem& item) {
  const ThreadKey key{.thread = shape_.by_thread ? item.thread : nullptr,
                      .comm = shape_.by_comm ? item.comm_begin : nullptr,
                      .event = item.event};
  const std::uint64_t hash = by_thread_key_.hash(reinterpret_cast<std::uintptr_t>(key.thread),
                                                 reinterpret_cast<std::uintptr_t>(key.comm), key.event);
  Recent& recent = recent_[hash % recent_.size()];
  if (recent.number != IndexTable::kNone && recent.key == key) return recent.number;
  recent = {key, by_thread_key_.find_or_make(
                     hash, [&](std::uint32_t known) { return thread_keys_[known] == key; },
                     [&] {
                       thread_keys_.push_back(key);
                       return static_cast<std::uint32_t>(thread_keys_.size() - 1);
                     })};
  return recent.number;
}

// Computes the key of the sample's group, and prefetches its slot in by_key_.
void SumLane::compute_key(Prepared& sample) {
  const symbolize::SpaceVersion& space = *sample.item->space;
  if (sample.chain) {
    const ChainDigest key = chains_.key_of(*sample.chain, space);
    sample.low = key.low;
    sample.high = key.high;
    // The chain does not have the sampled address.
    if (!sample.is_first && shape_.by_place) {
      sample.low += (sample.ip + 1) * place_factor_;
      sample.high += sample.cpumode + 1U;
    }
  } else if (shape_.by_place || shape_.by_stack) {
    const PlaceTable::Key key = places_->key_of(space, sample.ip, sample.cpumode);
    sample.low = key.place;
    sample.high = key.owner;
  } else {
    sample.low = sample.high = 0;
  }
  sample.hash = format::fold_product(
      sample.low + sample.high * place_factor_ + sample.thread * thread_factor_, factor_);
  by_key_.prefetch(sample.hash);
}

void SumLane::add_prepared(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t guess = by_key_.guess(prepared_[i].hash);
    if (guess == IndexTable::kNone) continue;
    __builtin_prefetch(&known_[guess]);
    if (shape_.places == Sink::Places::Addresses) __builtin_prefetch(&sums_[guess]);
  }
  for (std::size_t i = 0; i < count; ++i) add_one(prepared_[i]);
}

void SumLane::add_one(const Prepared& sample) {
  const std::uint32_t row = by_key_.find_or_make(
      sample.hash,
      [&](std::uint32_t number) {
        const Known& known = known_[number];
        return known.low == sample.low && known.high == sample.high && known.thread == sample.thread;
      },
      [&] {
        known_.push_back({sample.low, sample.high, sample.thread, group_of(sample)});
        return static_cast<std::uint32_t>(known_.size() - 1);
      });
  Sum& sum = sums_[known_[row].group];
  sum.period += sample.period;
  ++sum.samples;
}

std::uint32_t SumLane::own_place(const Prepared& sample) {
  const symbolize::SpaceVersion& space = *sample.item->space;
  if (shape_.places == Sink::Places::Functions)
    return places_->find_function(space, sample.ip, sample.cpumode);
  const PlaceTable::Address address{sample.ip, sample.cpumode};
  places_->find_all(space, {&address, 1}, place_);
  return place_[0];
}

std::uint32_t SumLane::group_of(const Prepared& sample) {
  Group group{
      .thread = sample.thread, .has_stack = sample.chain.has_value(), .is_payload = sample.is_payload};
  if (sample.chain) group.frames = chains_.frames_of(*sample.chain, *sample.item->space, *places_);
  if (shape_.by_place || (shape_.by_stack && !sample.chain))
    group.place = sample.is_first && !group.frames.empty() ? group.frames[0] : own_place(sample);
  if (shape_.places == Sink::Places::Addresses) return make(sample, group);
  std::uint64_t hash = by_group_.hash(group.place, group.thread, group.has_stack, group.is_payload);
  for (const std::uint32_t frame : group.frames) hash = by_group_.hash.add(hash, frame);
  return by_group_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Group& known = groups_[number];
        return known.place == group.place && known.thread == group.thread &&
               known.has_stack == group.has_stack && known.is_payload == group.is_payload &&
               std::ranges::equal(known.frames, group.frames);
      },
      [&] {
        const std::uint32_t number = make(sample, group);
        group.frames = frames_.keep(group.frames);
        groups_.push_back(group);
        return number;
      });
}

std::uint32_t SumLane::make(const Prepared& sample, const Group& group) {
  sums_.push_back({.event = sample.item->event});
  NewGroup& added = new_.groups.emplace_back();
  added.first = sample.number;
  added.thread = sample.item->thread;
  added.comm = sample.item->comm();
  added.event = sample.item->event;
  added.place = group.place;
  added.has_stack = group.has_stack;
  added.is_payload = group.is_payload;
  added.frames_begin = static_cast<std::uint32_t>(new_.frames.size());
  added.frames = static_cast<std::uint32_t>(group.frames.size());
  new_.frames.insert(new_.frames.end(), group.frames.begin(), group.frames.end());
  return static_cast<std::uint32_t>(sums_.size() - 1);
}

void SumLane::take_new_groups(NewGroups& groups) {
  groups.groups.clear();
  groups.frames.clear();
  std::swap(groups, new_);
}

void SumLane::make_places() {
  places_.emplace();
  if (options_->keeps_addresses) places_->keep_addresses();
  if (merging_->ask) places_->merge_by_name(merging_);
}

// Empties large caches. by_group_ finds the groups again.
void SumLane::bound_caches() {
  if (known_.size() > kMostKeys) {
    by_key_.forget();
    known_ = {};
  }
  if (places_->addresses() > kMostAddresses) places_->forget_addresses();
}

void SumLane::forget() {
  by_key_.forget();
  known_ = {};
  by_thread_key_.forget();
  by_group_.forget();
  sums_ = {};
  groups_ = {};
  frames_ = {};
  thread_keys_ = {};
  recent_.fill({});
  make_places();
}

SumJoin::SumJoin(std::span<const std::unique_ptr<SumLane>> lanes, PlaceTable& places, StackTable& stacks,
                 SumView& view, std::mutex& naming)
    : lanes_(lanes.size()),
      places_(&places),
      stacks_(&stacks),
      view_(&view),
      naming_(&naming),
      shape_(view.shape()) {
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes_[i].lane = lanes[i].get();
}

void SumJoin::take_new_groups() {
  for (Joined& joined : lanes_) joined.lane->take_new_groups(joined.added);
}

// In the order of first samples, so that locations and stacks get the numbers that one lane would give them.
void SumJoin::add_rows() {
  constexpr std::size_t kAhead = 3;
  std::vector<std::size_t> next(lanes_.size());
  for (;;) {
    std::size_t from = lanes_.size();
    std::uint64_t first = ~std::uint64_t{0};
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto& rows = lanes_[i].added.groups;
      if (next[i] == rows.size() || rows[next[i]].first >= first) continue;
      from = i;
      first = rows[next[i]].first;
    }
    if (from == lanes_.size()) break;
    Joined& joined = lanes_[from];
    const std::size_t at = next[from]++;
    if (at + kAhead < joined.added.groups.size()) prefetch(joined, joined.added.groups[at + kAhead]);
    add_row(joined, joined.added.groups[at]);
  }
  for (Joined& joined : lanes_) joined.added.groups.clear();
}

void SumJoin::prefetch(const Joined& joined, const SumLane::NewGroup& row) const {
  for (const std::uint32_t frame : std::span(joined.added.frames).subspan(row.frames_begin, row.frames)) {
    if (joined.places.find(frame) == IndexTable::kNone) places_->prefetch(joined.lane->places()[frame]);
  }
}

// The session's number of a lane's location.
std::uint32_t SumJoin::place_of(Joined& joined, std::uint32_t number) {
  std::uint32_t& place = joined.places[number];
  if (place == IndexTable::kNone) place = places_->intern(joined.lane->places()[number]);
  return place;
}

std::uint32_t SumJoin::own_place(Joined& joined, std::uint32_t number) {
  if (number == IndexTable::kNone) return 0;
  if (shape_.places != Sink::Places::Functions) return place_of(joined, number);
  const Location& location = joined.lane->places()[number];
  return places_->intern_function(location.mapping, location.ip.value, location.cpumode);
}

void SumJoin::add_row(Joined& joined, const SumLane::NewGroup& row) {
  const auto lock =
      shape_.places == Sink::Places::Addresses ? std::unique_lock<std::mutex>() : std::unique_lock(*naming_);
  frames_.clear();
  for (const std::uint32_t frame : std::span(joined.added.frames).subspan(row.frames_begin, row.frames))
    frames_.push_back(place_of(joined, frame));
  SumGroup made{.event = row.event,
                .thread = row.thread,
                .comm = row.comm,
                .place = 0,
                .stack = nullptr,
                .has_payload_stack = row.is_payload};
  if (row.has_stack)
    made.stack = shape_.places == Sink::Places::Names ? &stacks_->intern(frames_) : &stacks_->add(frames_);
  made.place = own_place(joined, row.place);
  joined.rows.push_back(view_->row_of(made));
}

void SumJoin::count(Joined& joined) {
  for (std::size_t group = 0; group < joined.lane->size(); ++group) {
    const SumLane::Sum& sum = (*joined.lane)[group];
    view_->count(joined.rows[group], sum.event, sum.period, sum.samples);
  }
  joined.rows.clear();
  joined.places.forget();
  joined.lane->forget();
}

void SumJoin::bound() {
  if (shape_.places == Sink::Places::Addresses) return;
  const auto has_many = [](const Joined& joined) {
    return std::max(joined.lane->size(), joined.lane->places().size()) > kMostSums;
  };
  if (std::ranges::none_of(lanes_, has_many)) return;
  add_rows();
  for (Joined& joined : lanes_) count(joined);
}

void SumJoin::end() {
  add_rows();
  take_new_groups();  // of a run that was stopped
  add_rows();
  std::uint64_t samples = 0;
  for (Joined& joined : lanes_) {
    samples += joined.lane->samples();
    count(joined);
  }
  view_->end(samples);
}

}  // namespace tacho::report
