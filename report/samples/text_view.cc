#include "report/samples/text_view.h"

#include <algorithm>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

constexpr std::uint8_t kCpumodeBits = 7;

}  // namespace

const symbolize::Mapping* MappingCache::find(const symbolize::SpaceVersion& space, std::uint64_t ip,
                                             std::uint8_t cpumode) {
  const bool is_kernel = cpumode == format::abi::kCpumodeKernel;
  Process& process = is_kernel ? kernel_ : processes_[space.number() % processes_.size()];
  const std::uint32_t version = is_kernel ? space.kernel_number() : space.number();
  if (process.version != version) {
    process = {};
    process.version = version;
  }
  const auto holds = [&](const Known& known) {
    return ip >= known.range.first && ip <= known.range.last && known.cpumode == cpumode;
  };
  if (holds(process.all[process.last])) return process.all[process.last].range.mapping;
  const auto known = std::ranges::find_if(process.all, holds);
  if (known != process.all.end()) {
    process.last = static_cast<std::uint32_t>(known - process.all.begin());
  } else {
    process.last = process.next;
    process.next = static_cast<std::uint32_t>((process.next + 1) % process.all.size());
    process.all[process.last] = {space.range_at({ip}, cpumode), cpumode};
  }
  return process.all[process.last].range.mapping;
}

Location TextLane::place_of(const BatchItem& item, std::uint64_t ip, std::uint8_t mode) {
  const bool is_caller = (mode & PlaceTable::kCaller) != 0;
  const auto cpumode = static_cast<std::uint8_t>(mode & kCpumodeBits);
  // A call may be the last instruction of its mapping: the return address is outside.
  return {.mapping = mappings_.find(*item.space, ip - (is_caller ? 1 : 0), cpumode),
          .ip = {ip},
          .number = 0,
          .cpumode = cpumode,
          .is_unwound = (mode & PlaceTable::kUnwound) != 0,
          .is_caller = is_caller};
}

void TextLane::give(const BatchItem& item) {
  const format::Sample* const sample = item.is_sample ? lane_->sample_of(item) : nullptr;
  if (sample == nullptr) return;
  format::RecordView view = format::whole_record({item.record, item.size}, lane_->order());
  view.offset = item.offset;
  ResolvedSample resolved;
  resolved.raw = sample;
  resolved.record = &view;
  resolved.events = &lane_->capture().events();
  resolved.event_index = resolved.record_event = item.event;
  resolved.period = sample->period;
  resolved.thread = item.thread;
  resolved.comm = item.comm();
  resolved.order = view.order;
  resolved.cgroups = cgroups_;
  if (const auto chain = lane_->chain_of(item, *sample)) {
    frames_.clear();
    for (const PlaceTable::Address& address : reader_.addresses_of(*chain))
      frames_.push_back(place_of(item, address.ip, address.cpumode));
    resolved.frames = frames_;
    resolved.has_payload_stack = lane_->is_payload_chain();
  }
  const bool is_first = resolved.frames && !frames_.empty() && lane_->chain_begins_with_ip();
  const auto cpumode = static_cast<std::uint8_t>(sample->misc & format::abi::kCpumodeMask);
  const Location own = is_first ? frames_[0] : place_of(item, sample->ip, cpumode);
  resolved.location = &own;
  pen_->on_sample(resolved);
}

}  // namespace tacho::report
