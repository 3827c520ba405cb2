#include "report/samples/text_lane.h"

#include <algorithm>

#include "format/records/perf_abi.h"

namespace tacho::report {

Location TextLane::location_of(const BatchRecord& item, std::uint64_t ip, std::uint8_t mode) {
  const bool is_caller = (mode & LocationTable::kCaller) != 0;
  const auto cpumode = static_cast<std::uint8_t>(mode & format::abi::kCpumodeMask);
  // A call may be the last instruction of its mapping, so its return address may be outside: look up ip - 1.
  const CachedMapping& found =
      mappings_.find_range(*item.space, ip - (is_caller ? 1 : 0), cpumode,
                           [&](CachedMapping& cached, const symbolize::AddressRange& range) {
                             cached = {range, cpumode};
                           });
  return {.mapping = found.range.mapping,
          .ip = {ip},
          .id = {},
          .cpumode = cpumode,
          .is_unwound = (mode & LocationTable::kUnwound) != 0,
          .is_caller = is_caller};
}

void TextLane::give(const BatchRecord& item) {
  const format::Sample* const sample = item.is_sample ? lane_->parse_sample(item) : nullptr;
  if (sample == nullptr || !lane_->accepts_values(item, *sample)) return;
  const std::optional<Chain> chain = lane_->chain_of(item, *sample);
  if (!lane_->accepts_name(item, *sample, chain)) return;
  format::RecordView view = format::whole_record({item.record, item.size}, lane_->order());
  view.offset = item.offset;
  ResolvedSample resolved = lane_->fields_of(item, *sample, view);
  if (chain) {
    frames_.clear();
    for (const LocationTable::Address& address : reader_.addresses_of(*chain))
      frames_.push_back(location_of(item, address.ip, address.cpumode));
    resolved.frames = frames_;
    resolved.has_payload_stack = lane_->is_payload_chain();
  }
  const bool own_is_first_frame = resolved.frames && !frames_.empty() && lane_->location_is_first_frame();
  const auto cpumode = static_cast<std::uint8_t>(sample->misc & format::abi::kCpumodeMask);
  const Location own = own_is_first_frame ? frames_[0] : location_of(item, sample->ip, cpumode);
  resolved.location = &own;
  pen_->on_sample(resolved);
}

}  // namespace tacho::report
