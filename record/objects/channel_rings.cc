#include "record/objects/channel_rings.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "bpf/object/channel.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "record/host/host.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
using format::FieldKind;
using format::PayloadField;

constexpr std::size_t kWord = 8;

bool is_number(const PayloadField& field) {
  return (field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed) && field.bit_offset % 8 == 0;
}
bool is_stack(const PayloadField& field) {
  return field.role == "stack" && is_number(field) && field.bit_size == 8 * kWord;
}
bool can_weigh(const PayloadField& field) {
  return field.kind == format::FieldKind::Unsigned && field.count == 1 &&
         (field.bit_size == 32 || field.bit_size == 64);
}
// The field of the stack's weight: with ROLE("weight"), else the event's value.
const PayloadField* weight_in(const format::PayloadSchema& schema) {
  for (const char* role : {"weight", "value"}) {
    const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
    if (field != schema.fields.end() && can_weigh(*field)) return &*field;
  }
  return nullptr;
}

// The offset of the stacks if no field is after them.
std::optional<std::size_t> end_of_rest(const format::PayloadSchema& schema) {
  const auto first = std::ranges::find_if(schema.fields, is_stack);
  const auto rest = first - schema.fields.begin();
  const auto is_last = std::all_of(schema.fields.begin() + rest, schema.fields.end(), is_stack);
  if (first == schema.fields.end() || !is_last) return std::nullopt;
  const std::size_t end = first->bit_offset / 8;
  const auto is_before = [end](const PayloadField& field) {
    return is_stack(field) ? field.bit_offset / 8 >= end
                           : (field.bit_offset + std::uint64_t{field.bit_size} * field.count + 7) / 8 <= end;
  };
  return std::ranges::all_of(schema.fields, is_before) ? std::optional(end) : std::nullopt;
}

std::uint64_t word_at(format::Bytes bytes, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), size);
  return word;
}

}  // namespace

bool ChainBuilder::add_address(std::uint64_t address) {
  if (address == 0) return false;
  const std::uint64_t needed =
      static_cast<std::int64_t>(address) < 0 ? abi::kContextKernel : abi::kContextUser;
  if (mark_ != needed) chain_.push_back(needed);
  mark_ = needed;
  chain_.push_back(address);
  return true;
}

RingLayout::RingLayout(const format::PayloadSchema& schema) : kept_(end_of_rest(schema)) {
  for (const PayloadField& field : schema.fields)
    if (is_stack(field)) stacks_.push_back({field.bit_offset / 8, field.count});
  const PayloadField* const weight = has_stack() ? weight_in(schema) : nullptr;
  if (weight != nullptr) weight_ = Field{weight->bit_offset / 8, weight->bit_size / 8};
}

std::vector<std::uint64_t> RingLayout::chain_of(format::Bytes payload) const {
  ChainBuilder chain;
  for (const Field& field : stacks_) {
    for (std::size_t i = 0; field.count == 0 || i < field.count; ++i) {
      const std::size_t at = field.offset + i * kWord;
      if (payload.size() < at + kWord) break;
      if (!chain.add_address(word_at(payload.subspan(at), kWord))) break;
    }
  }
  return std::move(chain).take_chain();
}

std::uint64_t RingLayout::period_of(format::Bytes payload) const {
  if (!weight_ || payload.size() < weight_->offset + weight_->count) return 1;
  return word_at(payload.subspan(weight_->offset), weight_->count);
}

format::Bytes RingLayout::rest_of(format::Bytes payload) const {
  return kept_ ? payload.first(std::min(*kept_, payload.size())) : payload;
}

format::PayloadSchema RingLayout::schema_of_rest(format::PayloadSchema schema) {
  const auto end = end_of_rest(schema);
  if (!end) return schema;
  std::erase_if(schema.fields, is_stack);
  schema.size = static_cast<std::uint32_t>(*end);
  return schema;
}

bool RateLimit::passes(std::uint64_t time) {
  if (rate_.one_in > 1 && seen_++ % rate_.one_in != 0) return false;
  if (rate_.most_a_second == 0) return true;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  // Late events of the previous second count in this one, so that the limit always holds.
  if (const std::uint64_t second = time / kSecond; second > second_) {
    second_ = second;
    in_second_ = 0;
  }
  if (in_second_ < rate_.most_a_second) {
    ++in_second_;
    return true;
  }
  ++over_;
  return false;
}

void read_attributed_losses(const bpf::LoadedObject& object, const std::string& map,
                            const std::function<void(const AttributedLoss&)>& sink) {
  const auto losers = object.open_map(bpf::kLosersMap + map);
  if (!losers) return;
  (void)losers->read_entries([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    format::Cursor loser(key), loss(values.empty() ? format::Bytes() : values.front());
    AttributedLoss found;
    found.cgroup = loser.u64();
    found.cpu = static_cast<int>(loser.u32());
    found.lost = loss.u64();
    found.first = loss.u64();
    found.last = loss.u64();
    if (!loser.failed() && !loss.failed() && found.lost != 0) sink(found);
  });
}

std::vector<Losses> take_attributed(Losses& unnamed, const std::vector<AttributedLoss>& named) {
  std::vector<Losses> taken;
  for (const AttributedLoss& each : named) {
    const std::uint64_t lost = std::min(each.lost, unnamed.lost);
    if (lost == 0) continue;
    taken.push_back({unnamed.event, unnamed.id, lost, each.cgroup, each.first, each.last, unnamed.cpu});
    unnamed.lost -= lost;
  }
  return taken;
}

std::vector<Losses> attributed_by_programs(const KernelEvents& events, const OpenedRecording& recording) {
  // Read before the kernel's counts: a program counts a loss after the kernel did.
  std::map<std::pair<std::size_t, int>, std::vector<AttributedLoss>> named;  // by event and CPU
  for (const Connection& connection : recording.plan.connections) {
    if (connection.kind != bpf::ChannelKind::PerfEventArray) continue;
    read_attributed_losses(recording.objects[connection.object], connection.map,
                           [&](const AttributedLoss& loss) {
                             named[{connection.event, loss.cpu}].push_back(loss);
                           });
  }
  std::vector<Losses> all = events.losses();
  if (named.empty()) return all;
  std::map<std::uint64_t, int> cpus;
  for (const OpenEvent& open : events.open_events()) cpus.emplace(open.id, open.cpu);
  std::vector<Losses> attributed;
  for (Losses& loss : all) {
    const auto cpu = cpus.find(loss.id);
    const int known = loss.cpu >= 0 || cpu == cpus.end() ? loss.cpu : cpu->second;
    if (const auto whose = named.find({loss.event, known}); whose != named.end())
      std::ranges::move(take_attributed(loss, whose->second), std::back_inserter(attributed));
    if (loss.lost != 0) attributed.push_back(loss);
  }
  return attributed;
}

namespace {

constexpr std::uint32_t kBitsOfTid = 32;
constexpr std::uint32_t kHead = 0x32434154;               // TACHO_HEAD of tacho/emit.h
constexpr std::uint32_t kHeadWithoutCgroup = 0x31434154;  // of programs that were compiled with an older one
constexpr std::size_t kMostRecordBytes = 65528;

// The CPU mode of the chain's first address.
std::uint16_t side_of(const std::vector<std::uint64_t>& chain) {
  if (chain.size() < 2) return 0;
  return chain.front() == abi::kContextKernel ? abi::kCpumodeKernel : abi::kCpumodeUser;
}

}  // namespace

std::optional<RingEvent> parse_ring_event(format::Bytes bytes) {
  format::Cursor in(bytes);
  const std::uint32_t magic = in.u32();
  RingEvent event;
  event.cpu = in.u32();
  event.time = in.u64();
  event.process = in.u32();
  event.thread = in.u32();
  if (magic == kHead) event.cgroup = in.u64();
  if (in.failed() || (magic != kHead && magic != kHeadWithoutCgroup)) return std::nullopt;
  event.payload = in.take_bytes(in.left());
  return event;
}

bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const RingLayout& layout) {
  if (!attr.samples(abi::kSampleCallchain))
    return append_sample(to, event, id, attr, SampleParts{{}, layout.period_of(event.payload)});
  RingEvent rest = event;
  rest.payload = layout.rest_of(event.payload);
  return append_sample(to, rest, id, attr,
                       SampleParts{layout.chain_of(event.payload), layout.period_of(event.payload)});
}

bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const SampleParts& parts) {
  const bool has_chain = attr.samples(abi::kSampleCallchain);
  const auto& chain = parts.chain;
  const format::Bytes payload = event.payload;
  // As in the kernel: the raw data, with its size, is padded to whole words.
  const std::size_t padded = (sizeof(std::uint32_t) + payload.size() + 7) / 8 * 8;
  format::ByteWriter out;
  out.u32(abi::kRecordSample);
  out.u16(side_of(chain));  // misc
  out.u16(0);               // size
  out.u64(id);
  out.u64(chain.size() < 2
              ? 0
              : chain[1]);  // ip: the address after the first context marker, as in the kernel's samples
  out.u32(event.process);
  out.u32(event.thread);
  out.u64(event.time);
  if (attr.samples(abi::kSampleAddr)) out.u64(0);
  if (attr.samples(abi::kSampleCpu)) {
    out.u32(event.cpu.value_or(0));
    out.u32(0);
  }
  if (attr.samples(abi::kSamplePeriod)) out.u64(parts.period);
  if (has_chain) {
    out.u64(chain.size());
    for (const std::uint64_t address : chain) out.u64(address);
  }
  // Other fields after the payload are unknown here: zeros.
  format::ByteWriter later_fields;
  for (const std::uint64_t each : kFieldsBehindPayload)
    if (attr.samples(static_cast<abi::SampleType>(each)))
      later_fields.u64(each == abi::kSampleCgroup ? event.cgroup : 0);
  const std::size_t head = out.view().size(), size = head + padded + later_fields.view().size();
  if (size > kMostRecordBytes) return false;
  out.u32(static_cast<std::uint32_t>(padded - sizeof(std::uint32_t)));
  // The only step that may throw: then nothing was added. Half a record would damage all later ones.
  const std::size_t begin = to.size();
  to.resize(begin + size);
  std::byte* const record = to.data() + begin;
  std::memcpy(record, out.view().data(), out.view().size());
  if (!payload.empty()) std::memcpy(record + out.view().size(), payload.data(), payload.size());
  if (!later_fields.view().empty())
    std::memcpy(record + head + padded, later_fields.view().data(), later_fields.view().size());
  const auto length = static_cast<std::uint16_t>(size);
  std::memcpy(record + 6, &length, sizeof length);
  return true;
}

OwnNumbers::OwnNumbers(const std::optional<bpf::PidNumbers>& numbers, const format::PayloadSchema* schema)
    : numbers_(numbers ? &*numbers : nullptr) {
  if (numbers_ == nullptr || schema == nullptr) return;
  for (const format::PayloadField& field : schema->fields) {
    const std::string_view name = std::string_view(field.name).substr(field.name.rfind('.') + 1);
    const bool is_number = name == "pid" || name == "tid" || name.ends_with("_pid") || name.ends_with("_tid");
    const bool is_whole = field.bit_size == kBitsOfTid || field.bit_size == 2 * kBitsOfTid;
    if (is_number && is_whole && field.bit_offset % 8 == 0 && field.count == 1)
      members_.emplace_back(field.bit_offset / 8, field.bit_size / 8);
  }
}

void OwnNumbers::translate(RingEvent& event) {
  if (numbers_ == nullptr) return;
  if (event.thread != ~0U) {
    const auto own = numbers_->own(event.thread);
    event.process = own.process;
    event.thread = own.thread;
  } else if (event.process != ~0U) {
    event.process = numbers_->own(event.process).process;
  }
  if (members_.empty()) return;
  payload_.assign(event.payload.begin(), event.payload.end());
  for (const auto& [at, size] : members_) {
    std::uint64_t tid = 0;  // little-endian, as BPF programs run on x86-64 only
    if (at + size > payload_.size()) continue;
    std::memcpy(&tid, payload_.data() + at, size);
    tid = tid == 0 ? 0 : numbers_->own(static_cast<std::uint32_t>(tid)).thread;
    std::memcpy(payload_.data() + at, &tid, size);
  }
  event.payload = payload_;
}

Result<ChannelRings> ChannelRings::open(const OpenedRecording& recording, const KernelEvents& events,
                                        const bpf::EventRate& rate) {
  ChannelRings all(recording, events);
  std::vector<Connection> connections = recording.plan.connections;
  connections.insert(connections.end(), recording.plan.unfinished.begin(), recording.plan.unfinished.end());
  for (const Connection& connection : connections) {
    if (connection.kind == bpf::ChannelKind::PerfEventArray || bpf::is_summary(connection.kind)) continue;
    auto ring = recording.objects[connection.object].open_ring(connection.map);
    if (!ring) return std::move(ring.error());
    Source source{.object = connection.object,
                  .event = connection.event,
                  .map = connection.map,
                  .kind = connection.kind,
                  .ring = std::move(*ring),
                  .layout = {},
                  .own = {},
                  .ids = {}};
    const auto& channels = recording.objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel != channels.end() && channel->schema) source.layout = RingLayout(*channel->schema);
    const bool is_known =
        channel != channels.end() && channel->schema && recording.objects[connection.object].is_shipped();
    source.own = OwnNumbers(recording.numbers, is_known ? &*channel->schema : nullptr);
    if (connection.kind == bpf::ChannelKind::PlainRing) source.limit = RateLimit(rate);
    for (const OpenEvent& event : events.open_events())
      if (event.event == connection.event) source.ids.emplace(event.cpu, event.id);
    // A CPU without an id (it came online later) gets the id of another CPU, as in the kernel's rings.
    for (const int cpu : recording.plan.later_cpus)
      if (!source.ids.empty()) source.ids.emplace(cpu, source.ids.begin()->second);
    if (!source.ids.empty()) all.rings_.push_back(std::move(source));
  }
  return all;
}

std::vector<int> ChannelRings::fds() const {
  std::vector<int> all;
  for (const Source& source : rings_) all.push_back(source.ring.fd());
  return all;
}

void ChannelRings::add_sample(Source& source, format::Bytes bytes, std::vector<std::byte>& to) {
  auto event = source.kind == bpf::ChannelKind::RingWithHeaders
                   ? parse_ring_event(bytes)
                   : RingEvent{.time = monotonic_now(), .cpu = std::nullopt, .payload = bytes};
  if (!event) {  // not from tacho_reserve()
    count_lost(source);
    return;
  }
  if (!events_->was_on(source.event, event->time)) return;
  // CPUs that are not recorded are ignored, as the kernel does for a perf event array.
  const auto id = event->cpu ? source.ids.find(static_cast<int>(*event->cpu)) : source.ids.begin();
  if (id == source.ids.end()) return;
  const auto& follower = recording_->follower;
  if (follower && follower->thread_state(static_cast<int>(event->thread)) != bpf::Followed::Yes) {
    ++dropped_;
    return;
  }
  if (!source.limit.passes(event->time)) return;
  source.own.translate(*event);
  if (!append_sample(to, *event, id->second, recording_->plan.events[source.event].attr, source.layout))
    count_lost(source);
}

bool ChannelRings::take_samples(std::vector<std::byte>& to) {
  bool is_fine = true;
  for (Source& source : rings_) {
    const bool is_taken = source.ring.drain([&](format::Bytes bytes) { add_sample(source, bytes, to); });
    if (!is_taken) count_lost(source);
    is_fine &= is_taken;
  }
  return is_fine;
}

std::uint64_t ChannelRings::over_rate() const {
  std::uint64_t over = 0;
  for (const Source& source : rings_) over += source.limit.over();
  return over;
}

// Losses that the program attributed. `others` is set to those of CPUs that are not recorded.
std::vector<Losses> ChannelRings::attributed_losses(const Source& source, std::uint64_t& others) const {
  std::vector<Losses> attributed;
  read_attributed_losses(recording_->objects[source.object], source.map, [&](const AttributedLoss& loss) {
    const auto id = source.ids.find(loss.cpu);
    if (id == source.ids.end()) {
      others += loss.lost;
    } else {
      attributed.push_back({source.event, id->second, loss.lost, loss.cgroup, loss.first, loss.last});
    }
  });
  return attributed;
}

std::vector<Losses> ChannelRings::losses() const {
  std::vector<Losses> all;
  for (const Source& source : rings_) {
    std::uint64_t known = 0;
    // Read before the total, which programs increase first.
    for (Losses& loss : attributed_losses(source, known)) {
      known += loss.lost;
      all.push_back(loss);
    }
    const std::uint64_t lost = source.lost->load(std::memory_order_relaxed) +
                               recording_->objects[source.object].lost_by_ring(source.map);
    if (lost > known) all.push_back({source.event, source.ids.begin()->second, lost - known});
  }
  return all;
}

}  // namespace tacho::record
