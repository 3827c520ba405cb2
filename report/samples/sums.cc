#include "report/samples/sums.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Limits of one lane when addresses are merged: of groups or locations, and of the keys and addresses in its
// caches.
constexpr std::size_t kMaxGroups = std::size_t{1} << 14, kMaxKeys = std::size_t{1} << 16,
                      kMaxAddresses = std::size_t{1} << 17;

template <class T>
T read_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

SumLane::SumLane(SampleLane& lane, const symbolize::SymbolOptions& symbols, const SampleOptions& options,
                 const SumShape& shape, const FunctionMerging& merging)
    : lane_(&lane), options_(&options), merging_(&merging), shape_(shape) {
  const format::CaptureReader& capture = lane.capture();
  make_location_table();
  chains_.use(options, symbols);
  for (const format::Event& event : capture.events()) {
    Layout layout = layout_of(event.attr, capture.layout().order);
    using enum SumShape::ZeroPeriods;
    layout.counts_zero =
        shape.zero_periods == Count || (shape.zero_periods == CountForBpf && event.attr.is_bpf_output());
    layouts_.push_back(layout);
  }
}

// kFields is in the kernel's order; see format/records/sample.cc.
SumLane::Layout SumLane::layout_of(const format::EventAttr& attr, std::endian order) {
  constexpr std::uint64_t kFields[] = {abi::kSampleIdentifier, abi::kSampleIp,   abi::kSampleTid,
                                       abi::kSampleTime,       abi::kSampleAddr, abi::kSampleId,
                                       abi::kSampleStreamId,   abi::kSampleCpu,  abi::kSamplePeriod};
  constexpr std::uint64_t kTrailing = abi::kSampleWeight | abi::kSampleWeightStruct | abi::kSampleDataSrc |
                                      abi::kSampleTransaction | abi::kSamplePhysAddr | abi::kSampleCgroup |
                                      abi::kSampleDataPageSize | abi::kSampleCodePageSize;
  Layout layout;
  const auto trailing_fields = static_cast<unsigned>(std::popcount(attr.sample_type & kTrailing));
  layout.trailing_size = static_cast<std::uint16_t>(trailing_fields * sizeof(std::uint64_t));
  std::uint64_t others = attr.sample_type & ~(std::uint64_t{abi::kSampleCallchain} | kTrailing);
  std::size_t at = format::kRecordHeaderSize;
  for (const std::uint64_t field : kFields) {
    if ((attr.sample_type & field) == 0) continue;
    if (field == abi::kSampleIp) layout.ip = static_cast<std::uint16_t>(at);
    if (field == abi::kSamplePeriod) layout.period = static_cast<std::uint16_t>(at);
    if (field == abi::kSampleTime) layout.time = static_cast<std::uint16_t>(at);
    others &= ~field;
    at += sizeof(std::uint64_t);
  }
  layout.fixed_size = static_cast<std::uint16_t>(at);
  layout.has_chain = attr.samples(abi::kSampleCallchain);
  layout.has_time = attr.samples(abi::kSampleTime);
  layout.sample_period = attr.sample_period;
  layout.has_fast_path = others == 0 && order == std::endian::native;
  return layout;
}

void SumLane::add_samples(std::span<const BatchRecord> items, std::uint64_t first) {
  if (shape_.merge_by != Sink::MergeBy::Address) trim_caches();
  KeyedSample sample;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const BatchRecord& item = items[i];
    if (!item.is_sample) continue;
    sample.number = first + i;
    if (!read(item, sample)) continue;
    count(sample);
    if (!sample.chain && shape_.by_stack && shape_.needs_stack) continue;
    if (sample.period == 0 && layouts_[item.event].counts_zero) sample.period = 1;
    sample.thread = thread_key_of(item);
    compute_key(sample);
    add(sample);
  }
}

void SumLane::count(const KeyedSample& sample) {
  ++totals_.samples;
  if (!layouts_[sample.item->event].has_time) return;
  totals_.first_time = std::min(totals_.first_time, sample.time);
  totals_.last_time = std::max(totals_.last_time, sample.time);
}

// False: the record is damaged, or a filter refuses it.
bool SumLane::read(const BatchRecord& item, KeyedSample& sample) {
  sample.item = &item;
  const Layout& layout = layouts_[item.event];
  if (layout.has_fast_path && !lane_->tests_samples() && read_fast(item, layout, sample)) return true;
  const format::Sample* const parsed = lane_->parse_sample(item);
  if (parsed == nullptr || !lane_->accepts_values(item, *parsed)) return false;
  sample.ip = parsed->ip;
  sample.period = parsed->period;
  sample.time = parsed->time;
  sample.cpumode = static_cast<std::uint8_t>(parsed->misc & abi::kCpumodeMask);
  const bool reads_chain = shape_.by_stack || lane_->filter().looks_at_names();
  sample.chain = reads_chain ? lane_->chain_of(item, *parsed) : std::nullopt;
  if (!lane_->accepts_name(item, *parsed, sample.chain)) return false;
  if (!shape_.by_stack) sample.chain.reset();
  sample.location_is_first_frame = sample.chain && lane_->location_is_first_frame();
  sample.is_payload = sample.chain && lane_->is_payload_chain();
  return true;
}

// False: the record's size does not fit the layout; SampleLane's parser then reports what is wrong.
bool SumLane::read_fast(const BatchRecord& item, const Layout& layout, KeyedSample& sample) {
  if (item.size < layout.fixed_size + layout.trailing_size) return false;
  const std::byte* const record = item.record;
  const std::byte* const chain = record + layout.fixed_size;
  const std::size_t chain_size = item.size - layout.fixed_size - std::size_t{layout.trailing_size};
  std::uint64_t count = 0;
  if (layout.has_chain) {
    if (chain_size < sizeof count) return false;
    count = read_at<std::uint64_t>(chain);
    if (count != chain_size / sizeof count - 1 || chain_size % sizeof count != 0) return false;
  } else if (chain_size != 0) {
    return false;
  }
  constexpr std::size_t kMisc = 4;  // in a record's header
  sample.ip = layout.ip == 0 ? 0 : read_at<std::uint64_t>(record + layout.ip);
  sample.period = layout.period == 0 ? layout.sample_period : read_at<std::uint64_t>(record + layout.period);
  sample.time = layout.time == 0 ? 0 : read_at<std::uint64_t>(record + layout.time);
  sample.cpumode = static_cast<std::uint8_t>(read_at<std::uint16_t>(record + kMisc) & abi::kCpumodeMask);
  sample.is_payload = sample.location_is_first_frame = false;
  sample.chain.reset();
  if (!layout.has_chain || !shape_.by_stack) return true;
  const std::byte* const words = chain + sizeof count;
  sample.chain =
      Chain{format::U64Array({words, count * sizeof count}, std::endian::native), {}, options_->max_stack};
  const bool first_may_be_missing = options_->keeps_callers && count > options_->max_stack;
  sample.location_is_first_frame =
      !first_may_be_missing && begins_with_ip(sample.chain->words, sample.ip, sample.cpumode);
  return true;
}

SumLane::ThreadKeyId SumLane::thread_key_of(const BatchRecord& item) {
  const ThreadKey key{.thread = shape_.by_thread ? item.thread : nullptr,
                      .comm = shape_.by_comm ? item.comm_data : nullptr,
                      .event = item.event};
  const std::uint64_t hash = by_thread_key_.hash(reinterpret_cast<std::uintptr_t>(key.thread),
                                                 reinterpret_cast<std::uintptr_t>(key.comm), key.event);
  return by_thread_key_.find_or_make(
      hash, [&](ThreadKeyId known) { return thread_keys_[known] == key; },
      [&] { return thread_keys_.push_back(key); });
}

// Computes the key of the sample's group.
void SumLane::compute_key(KeyedSample& sample) {
  const symbolize::SpaceVersion& space = *sample.item->space;
  if (sample.chain) {
    const ChainDigest key = chains_.key_of(*sample.chain, space);
    sample.key_low = key.low;
    sample.key_high = key.high;
    // The chain does not begin with the sampled ip, so ip belongs to the key.
    if (!sample.location_is_first_frame && shape_.by_location) {
      sample.key_low += (sample.ip + 1) * location_factor_;
      sample.key_high += sample.cpumode + 1U;
    }
  } else if (shape_.by_location || shape_.by_stack) {
    const LocationTable::Key key = location_table_->key_of(space, sample.ip, sample.cpumode);
    sample.key_low = key.address;
    sample.key_high = key.owner;
  } else {
    sample.key_low = sample.key_high = 0;
  }
  sample.key_hash = format::fold_product(
      sample.key_low + sample.key_high * location_factor_ + value_of(sample.thread) * thread_factor_,
      factor_);
}

void SumLane::add(const KeyedSample& sample) {
  const KeyId key = by_key_.find_or_make(
      sample.key_hash,
      [&](KeyId id) {
        const KeyedGroup& known = keyed_groups_[id];
        return known.key_low == sample.key_low && known.key_high == sample.key_high &&
               known.thread == sample.thread;
      },
      [&] {
        return keyed_groups_.push_back({sample.key_low, sample.key_high, sample.thread, group_of(sample)});
      });
  Sum& sum = sums_[keyed_groups_[key].group];
  sum.period += sample.period;
  ++sum.samples;
}

LocationId SumLane::sample_location(const KeyedSample& sample) {
  const symbolize::SpaceVersion& space = *sample.item->space;
  if (merges_ips_by_function(shape_.merge_by))
    return location_table_->find_function(space, sample.ip, sample.cpumode);
  const LocationTable::Address address{sample.ip, sample.cpumode};
  location_table_->find_all(space, {&address, 1}, location_);
  return location_[0];
}

LaneGroupId SumLane::group_of(const KeyedSample& sample) {
  Group group{
      .thread = sample.thread, .has_stack = sample.chain.has_value(), .is_payload = sample.is_payload};
  if (sample.chain) group.frames = chains_.frames_of(*sample.chain, *sample.item->space, *location_table_);
  if (shape_.by_location || (shape_.by_stack && !sample.chain)) {
    const bool is_first_frame =
        sample.location_is_first_frame && !group.frames.empty() && shares_ips_with_frames(shape_.merge_by);
    group.location = is_first_frame ? group.frames[0] : sample_location(sample);
  }
  if (shape_.merge_by == Sink::MergeBy::Address) return make_group(sample, group);
  std::uint64_t hash =
      by_group_.hash(value_of(group.location), group.thread, group.has_stack, group.is_payload);
  for (const LocationId frame : group.frames) hash = by_group_.hash.add(hash, value_of(frame));
  return by_group_.find_or_make(
      hash,
      [&](LaneGroupId id) {
        const Group& known = groups_[id];
        return known.location == group.location && known.thread == group.thread &&
               known.has_stack == group.has_stack && known.is_payload == group.is_payload &&
               std::ranges::equal(known.frames, group.frames);
      },
      [&] {
        const LaneGroupId id = make_group(sample, group);
        group.frames = frames_.keep(group.frames);
        groups_.push_back(group);
        return id;
      });
}

LaneGroupId SumLane::make_group(const KeyedSample& sample, const Group& group) {
  const LaneGroupId id = sums_.push_back({.event = sample.item->event});
  NewGroup& added = new_.groups.emplace_back();
  added.first_sample = sample.number;
  added.thread = sample.item->thread;
  added.comm = sample.item->comm();
  added.event = sample.item->event;
  added.location = group.location;
  added.has_stack = group.has_stack;
  added.is_payload = group.is_payload;
  added.frames_begin = static_cast<std::uint32_t>(new_.frames.size());
  added.frame_count = static_cast<std::uint32_t>(group.frames.size());
  new_.frames.insert(new_.frames.end(), group.frames.begin(), group.frames.end());
  return id;
}

void SumLane::swap_new_groups(NewGroups& out) {
  out.groups.clear();
  out.frames.clear();
  std::swap(out, new_);
}

void SumLane::make_location_table() {
  location_table_.emplace();
  if (options_->keeps_addresses) location_table_->keep_addresses();
  if (merging_->symbols_of) location_table_->merge_by_name(merging_);
}

// Empties the caches when large. No group is lost: by_group_ finds it again.
void SumLane::trim_caches() {
  if (keyed_groups_.size() > kMaxKeys) {
    by_key_.forget();
    keyed_groups_ = {};
  }
  if (location_table_->addresses() > kMaxAddresses) location_table_->forget_addresses();
}

void SumLane::forget() {
  by_key_.forget();
  keyed_groups_ = {};
  by_thread_key_.forget();
  by_group_.forget();
  sums_ = {};
  groups_ = {};
  frames_ = {};
  thread_keys_ = {};
  make_location_table();
}

SumJoin::SumJoin(std::span<const std::unique_ptr<SumLane>> lanes, LocationTable& location_table,
                 StackTable& stacks, SumView& view, std::mutex* symbols)
    : lanes_(lanes.size()),
      location_table_(&location_table),
      stacks_(&stacks),
      view_(&view),
      symbols_(symbols),
      shape_(view.shape()) {
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes_[i].lane = lanes[i].get();
}

void SumJoin::take_new_groups() {
  for (LaneState& state : lanes_) state.lane->swap_new_groups(state.added);
}

void SumJoin::collect() {
  take_new_groups();
  flush_if_large();
}

// In the order of first samples, so that locations and stacks get the numbers that one lane would give them.
void SumJoin::add_groups() {
  std::vector<std::size_t> next(lanes_.size());
  for (;;) {
    std::size_t earliest = lanes_.size();
    std::uint64_t first = ~std::uint64_t{0};
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto& groups = lanes_[i].added.groups;
      if (next[i] == groups.size() || groups[next[i]].first_sample >= first) continue;
      earliest = i;
      first = groups[next[i]].first_sample;
    }
    if (earliest == lanes_.size()) break;
    LaneState& state = lanes_[earliest];
    add_group(state, state.added.groups[next[earliest]++]);
  }
  for (LaneState& state : lanes_) state.added.groups.clear();
}

LocationId SumJoin::location_of(LaneState& state, LocationId of_lane) {
  LocationId& known = state.locations[of_lane];
  if (known == kNo<LocationId>) known = location_table_->intern(state.lane->locations()[of_lane]);
  return known;
}

LocationId SumJoin::sample_location(LaneState& state, LocationId of_lane) {
  if (of_lane == kNo<LocationId>) return {};
  const Location& location = state.lane->locations()[of_lane];
  // A function that was a frame before has that frame's return address.
  if (!merges_ips_by_function(shape_.merge_by) || location.is_caller) return location_of(state, of_lane);
  return location_table_->intern_function(location.mapping, location.ip.value, location.cpumode);
}

void SumJoin::add_group(LaneState& state, const SumLane::NewGroup& group) {
  const auto lock = lock_if(symbols_);
  frames_.clear();
  for (const LocationId frame : std::span(state.added.frames).subspan(group.frames_begin, group.frame_count))
    frames_.push_back(location_of(state, frame));
  SumGroup made{.event = group.event,
                .thread = group.thread,
                .comm = group.comm,
                .location = {},
                .stack = nullptr,
                .has_payload_stack = group.is_payload};
  if (group.has_stack)
    made.stack = merges_frames(shape_.merge_by) ? &stacks_->intern(frames_) : &stacks_->add_stack(frames_);
  made.location = sample_location(state, group.location);
  state.rows.push_back(view_->row_of(made));
}

void SumJoin::flush(LaneState& state) {
  for (const LaneGroupId group : state.lane->groups()) {
    const SumLane::Sum& sum = (*state.lane)[group];
    view_->count(state.rows[group], sum.event, sum.period, sum.samples);
  }
  state.rows.clear();
  state.locations.forget();
  state.lane->forget();
}

void SumJoin::flush_if_large() {
  if (shape_.merge_by == Sink::MergeBy::Address) return;
  const auto has_many = [](const LaneState& state) {
    return std::max(state.lane->size(), state.lane->locations().size()) > kMaxGroups;
  };
  if (std::ranges::none_of(lanes_, has_many)) return;
  add_groups();
  for (LaneState& state : lanes_) flush(state);
}

void SumJoin::end() {
  add_groups();
  take_new_groups();  // a stopped run leaves groups that were not taken
  add_groups();
  SumTotals totals;
  for (LaneState& state : lanes_) {
    totals += state.lane->totals();
    flush(state);
  }
  view_->end(totals);
}

}  // namespace tacho::report
