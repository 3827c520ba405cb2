#include "report/samples/sums.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Of one lane, where memory is bounded: groups and places; keys and addresses that they are found by.
constexpr std::size_t kMostSums = std::size_t{1} << 15, kMostKeys = std::size_t{1} << 17,
                      kMostAddresses = std::size_t{1} << 18;

template <class T>
T read_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool begins_with_ip(const std::byte* words, std::uint64_t count, std::uint64_t ip, std::uint8_t cpumode) {
  if (count < 2) return false;
  const auto mark = read_at<std::uint64_t>(words);
  const bool is_same_mode = (mark == abi::kContextKernel && cpumode == abi::kCpumodeKernel) ||
                            (mark == abi::kContextUser && cpumode == abi::kCpumodeUser);
  return is_same_mode && read_at<std::uint64_t>(words + sizeof(std::uint64_t)) == ip;
}

}  // namespace

SumSample::SumSample(const SumRow& row, const format::EventSet& events) {
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
                 const SumShape& shape, const NamesOf& names)
    : lane_(&lane), options_(&options), names_(&names), shape_(shape) {
  const format::CaptureReader& capture = lane.capture();
  make_places();
  if (options.keeps_callers) chains_.keep_callers();
  if (symbols.callers == symbolize::Callers::ByCall) chains_.tell_callers();
  for (const format::Event& event : capture.events())
    layouts_.push_back(layout_of(event.attr, capture.layout().order));
}

// Fixed words in the kernel's order, see format/records/sample.cc.
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
  if (shape_.places != Sink::Places::Addresses) bound_keys();
  std::size_t together = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) {  // another thread touched them last
      __builtin_prefetch(items[i + kAhead].record);
      __builtin_prefetch(items[i + kAhead].record + 64);
    }
    const BatchItem& item = items[i];
    if (!item.is_sample) continue;
    Work& work = work_[together];
    work.number = first + i;
    if (!read(item, work)) continue;
    ++samples_;
    if (!work.chain && shape_.by_stack && shape_.needs_stack) continue;
    if (work.period == 0 && shape_.counts_nought) work.period = 1;
    work.who = who_of(item);
    find_key(work);
    // The next sample overwrites a chain in the lane's scratch buffer, so the group is added now.
    const bool is_own = work.chain && !layouts_[item.event].is_plain;
    if (++together == kTogether || is_own) add_together(std::exchange(together, 0));
  }
  add_together(together);
}

// False: it is damaged.
bool SumLane::read(const BatchItem& item, Work& work) {
  work.item = &item;
  const Layout& layout = layouts_[item.event];
  if (layout.is_plain && read_plain(item, layout, work)) return true;
  const format::Sample* const sample = lane_->sample_of(item);
  if (sample == nullptr) return false;
  work.ip = sample->ip;
  work.period = sample->period;
  work.cpumode = static_cast<std::uint8_t>(sample->misc & abi::kCpumodeMask);
  work.chain = shape_.by_stack ? lane_->chain_of(item, *sample) : std::nullopt;
  work.is_first = work.chain && lane_->begins_with_ip();
  work.is_payload = work.chain && lane_->is_payload_chain();
  return true;
}

// False: it is to be read with care.
bool SumLane::read_plain(const BatchItem& item, const Layout& layout, Work& work) {
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
  work.ip = layout.ip == 0 ? 0 : read_at<std::uint64_t>(record + layout.ip);
  work.period = layout.period == 0 ? layout.sample_period : read_at<std::uint64_t>(record + layout.period);
  work.cpumode = static_cast<std::uint8_t>(read_at<std::uint16_t>(record + kMisc) & abi::kCpumodeMask);
  work.is_payload = work.is_first = false;
  work.chain.reset();
  if (!layout.has_chain || !shape_.by_stack) return true;
  const std::byte* const words = behind + sizeof count;
  work.chain =
      Chain{format::U64Array({words, count * sizeof count}, std::endian::native), {}, options_->max_stack};
  const bool may_lack_first = options_->keeps_callers && count > options_->max_stack;
  work.is_first = !may_lack_first && begins_with_ip(words, count, work.ip, work.cpumode);
  return true;
}

std::uint32_t SumLane::who_of(const BatchItem& item) {
  const Who who{.thread = shape_.by_thread ? item.thread : nullptr,
                .comm = shape_.by_comm ? item.comm_begin : nullptr,
                .event = item.event};
  const std::uint64_t hash = by_who_.hash(reinterpret_cast<std::uintptr_t>(who.thread),
                                          reinterpret_cast<std::uintptr_t>(who.comm), who.event);
  Recent& recent = recent_[hash % recent_.size()];
  if (recent.number != IndexTable::kNone && recent.who == who) return recent.number;
  recent = {who, by_who_.find_or_make(
                     hash, [&](std::uint32_t known) { return whos_[known] == who; },
                     [&] {
                       whos_.push_back(who);
                       return static_cast<std::uint32_t>(whos_.size() - 1);
                     })};
  return recent.number;
}

// Computes the key of the sample's group, and prefetches its slot in by_key_.
void SumLane::find_key(Work& work) {
  const symbolize::SpaceVersion& space = *work.item->space;
  if (work.chain) {
    const ChainDigest key = chains_.key_of(*work.chain, space);
    work.low = key.low;
    work.high = key.high;
    // A chain that does not begin with the sampled address does not say which address it is.
    if (!work.is_first && shape_.by_place) {
      work.low += (work.ip + 1) * place_factor_;
      work.high += work.cpumode + 1U;
    }
  } else if (shape_.by_place || shape_.by_stack) {
    const PlaceTable::Key key = places_->key_of(space, work.ip, work.cpumode);
    work.low = key.place;
    work.high = key.owner;
  } else {
    work.low = work.high = 0;
  }
  work.hash = format::fold_product(work.low + work.high * place_factor_ + work.who * who_factor_, factor_);
  by_key_.prefetch(work.hash);
}

void SumLane::add_together(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t guess = by_key_.guess(work_[i].hash);
    if (guess == IndexTable::kNone) continue;
    __builtin_prefetch(&known_[guess]);
    if (shape_.places == Sink::Places::Addresses) __builtin_prefetch(&sums_[guess]);
  }
  for (std::size_t i = 0; i < count; ++i) add_one(work_[i]);
}

void SumLane::add_one(const Work& work) {
  const std::uint32_t row = by_key_.find_or_make(
      work.hash,
      [&](std::uint32_t number) {
        const Known& known = known_[number];
        return known.low == work.low && known.high == work.high && known.who == work.who;
      },
      [&] {
        known_.push_back({work.low, work.high, work.who, group_of(work)});
        return static_cast<std::uint32_t>(known_.size() - 1);
      });
  Sum& sum = sums_[known_[row].group];
  sum.period += work.period;
  ++sum.samples;
}

std::uint32_t SumLane::own_place(const Work& work) {
  const symbolize::SpaceVersion& space = *work.item->space;
  if (shape_.places == Sink::Places::Functions) return places_->find_function(space, work.ip, work.cpumode);
  const PlaceTable::Address address{work.ip, work.cpumode};
  places_->find_all(space, {&address, 1}, place_);
  return place_[0];
}

std::uint32_t SumLane::group_of(const Work& work) {
  Group group{.who = work.who, .has_stack = work.chain.has_value(), .is_payload = work.is_payload};
  if (work.chain) group.frames = chains_.frames_of(*work.chain, *work.item->space, *places_);
  if (shape_.by_place || (shape_.by_stack && !work.chain))
    group.place = work.is_first && !group.frames.empty() ? group.frames[0] : own_place(work);
  if (shape_.places == Sink::Places::Addresses) return make(work, group);
  std::uint64_t hash = by_group_.hash(group.place, group.who, group.has_stack, group.is_payload);
  for (const std::uint32_t frame : group.frames) hash = by_group_.hash.add(hash, frame);
  return by_group_.find_or_make(
      hash,
      [&](std::uint32_t number) {
        const Group& known = groups_[number];
        return known.place == group.place && known.who == group.who && known.has_stack == group.has_stack &&
               known.is_payload == group.is_payload && std::ranges::equal(known.frames, group.frames);
      },
      [&] {
        const std::uint32_t number = make(work, group);
        group.frames = frames_.keep(group.frames);
        groups_.push_back(group);
        return number;
      });
}

std::uint32_t SumLane::make(const Work& work, const Group& group) {
  sums_.push_back({.event = work.item->event});
  Fresh& fresh = fresh_.rows.emplace_back();
  fresh.first = work.number;
  fresh.thread = work.item->thread;
  fresh.comm = work.item->comm();
  fresh.event = work.item->event;
  fresh.place = group.place;
  fresh.has_stack = group.has_stack;
  fresh.is_payload = group.is_payload;
  fresh.frames_begin = static_cast<std::uint32_t>(fresh_.frames.size());
  fresh.frames = static_cast<std::uint32_t>(group.frames.size());
  fresh_.frames.insert(fresh_.frames.end(), group.frames.begin(), group.frames.end());
  return static_cast<std::uint32_t>(sums_.size() - 1);
}

void SumLane::take_fresh(FreshRows& rows) {
  rows.rows.clear();
  rows.frames.clear();
  std::swap(rows, fresh_);
}

void SumLane::make_places() {
  places_.emplace();
  if (options_->keeps_addresses) places_->keep_addresses();
  if (names_->ask) places_->tell_by_functions(names_);
}

// Empties the caches when they are large: by_group_ still finds the group of a key that comes again.
void SumLane::bound_keys() {
  if (known_.size() > kMostKeys) {
    by_key_.forget();
    known_ = {};
  }
  if (places_->addresses() > kMostAddresses) places_->forget_addresses();
}

void SumLane::forget() {
  by_key_.forget();
  known_ = {};
  by_who_.forget();
  by_group_.forget();
  sums_ = {};
  groups_ = {};
  frames_ = {};
  whos_ = {};
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

void SumJoin::take_fresh() {
  for (Of& of : lanes_) of.lane->take_fresh(of.fresh);
}

// Of all lanes in the order of first samples, as one lane would have met them: places and stacks get the
// same numbers.
void SumJoin::add_rows() {
  constexpr std::size_t kAhead = 3;
  std::vector<std::size_t> next(lanes_.size());
  for (;;) {
    std::size_t from = lanes_.size();
    std::uint64_t first = ~std::uint64_t{0};
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto& rows = lanes_[i].fresh.rows;
      if (next[i] == rows.size() || rows[next[i]].first >= first) continue;
      from = i;
      first = rows[next[i]].first;
    }
    if (from == lanes_.size()) break;
    Of& of = lanes_[from];
    const std::size_t at = next[from]++;
    if (at + kAhead < of.fresh.rows.size()) fetch(of, of.fresh.rows[at + kAhead]);
    add_row(of, of.fresh.rows[at]);
  }
  for (Of& of : lanes_) of.fresh.rows.clear();
}

void SumJoin::fetch(const Of& of, const SumLane::Fresh& row) const {
  for (const std::uint32_t frame : std::span(of.fresh.frames).subspan(row.frames_begin, row.frames)) {
    if (of.places.find(frame) == IndexTable::kNone) places_->fetch(of.lane->places()[frame]);
  }
}

// The session's number of a lane's place.
std::uint32_t SumJoin::place_of(Of& of, std::uint32_t number) {
  std::uint32_t& place = of.places[number];
  if (place == IndexTable::kNone) place = places_->take(of.lane->places()[number]);
  return place;
}

std::uint32_t SumJoin::own_place(Of& of, std::uint32_t number) {
  if (number == IndexTable::kNone) return 0;
  if (shape_.places != Sink::Places::Functions) return place_of(of, number);
  const Location& location = of.lane->places()[number];
  return places_->take_function(location.mapping, location.ip.value, location.cpumode);
}

void SumJoin::add_row(Of& of, const SumLane::Fresh& row) {
  const auto lock =
      shape_.places == Sink::Places::Addresses ? std::unique_lock<std::mutex>() : std::unique_lock(*naming_);
  frames_.clear();
  for (const std::uint32_t frame : std::span(of.fresh.frames).subspan(row.frames_begin, row.frames))
    frames_.push_back(place_of(of, frame));
  SumRow made{.event = row.event,
              .thread = row.thread,
              .comm = row.comm,
              .place = 0,
              .stack = nullptr,
              .has_payload_stack = row.is_payload};
  if (row.has_stack)
    made.stack =
        shape_.places == Sink::Places::Names ? &stacks_->stack_of_frames(frames_) : &stacks_->add(frames_);
  made.place = own_place(of, row.place);
  of.rows.push_back(view_->row_of(made));
}

void SumJoin::count(Of& of) {
  for (std::size_t group = 0; group < of.lane->size(); ++group) {
    const SumLane::Sum& sum = (*of.lane)[group];
    view_->count(of.rows[group], sum.event, sum.period, sum.samples);
  }
  of.rows.clear();
  of.places.forget();
  of.lane->forget();
}

void SumJoin::bound() {
  if (shape_.places == Sink::Places::Addresses) return;
  const auto has_many = [](const Of& of) {
    return std::max(of.lane->size(), of.lane->places().size()) > kMostSums;
  };
  if (std::ranges::none_of(lanes_, has_many)) return;
  add_rows();
  for (Of& of : lanes_) count(of);
}

void SumJoin::end() {
  add_rows();
  take_fresh();  // where a run ended early
  add_rows();
  std::uint64_t samples = 0;
  for (Of& of : lanes_) {
    samples += of.lane->samples();
    count(of);
  }
  view_->end(samples);
}

}  // namespace tacho::report
