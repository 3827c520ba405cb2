#include "report/query/capture_gaps.h"

#include <algorithm>

#include "format/base/diagnostics.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/perf_abi.h"
#include "symbolize/name_source.h"

namespace tacho::report {

void PlaceHits::hit(std::uint32_t place, std::uint64_t times) {
  if (place >= hits_.size()) hits_.resize(std::max<std::size_t>(place + 1, 2 * hits_.size()));
  hits_[place] += times;
}

void PlaceHits::add(const ResolvedSample& sample) {
  sample.stack == nullptr ? add(*sample.location, 1) : add(*sample.stack, 1);
}

void PlaceHits::add(const Stack& stack, std::uint64_t times) {
  for (const std::uint32_t place : stack.frames) hit(place, times);
}

// Samples without a stack and an address (as of some recorders) have no frame.
void PlaceHits::add(const Location& place, std::uint64_t times) {
  const bool has_address = place.ip.value != 0 || place.cpumode != format::abi::kCpumodeUnknown;
  if (has_address) hit(place.number, times);
}

NamedFrames PlaceHits::count_named(Resolver& resolver, const AtEach& at_each) const {
  NamedFrames counts;
  for (std::uint32_t number = 0; number < hits_.size(); ++number) {
    if (hits_[number] == 0) continue;
    const Location& place = resolver.location(number);
    const symbolize::Frame& frame = resolver.frame(place);
    const bool is_named = !frame.function.empty() && !frame.is_unnamed;
    ++counts.addresses;
    counts.frames += hits_[number];
    counts.named_addresses += is_named ? 1 : 0;
    counts.named_frames += is_named ? hits_[number] : 0;
    if (at_each) at_each(place, hits_[number], is_named);
  }
  return counts;
}

std::uint64_t all_lost_samples(Session& session) {
  std::uint64_t lost = session.lost_samples();
  for (const format::Finding& finding : session.diagnostics().findings())
    if (finding.kind == format::Damage::Lost) lost = std::max(lost, finding.count);
  return lost;
}

std::optional<std::uint64_t> CodePlaces::shown_address(const symbolize::PlaceFacts& facts,
                                                       std::uint64_t elf_address) {
  const symbolize::Source* const source = facts.source;
  if (source == nullptr || source->jit != nullptr || source->is_kernel_module) return std::nullopt;
  if (source->packed != nullptr) {
    const auto [known, is_new] = packed_.try_emplace(source->packed);
    if (is_new)
      for (const format::PackedAddress& address : source->packed->addresses())
        if (address.symbol != format::PackedFunction::kNone)
          known->second.emplace(address.elf_address, address.address);
    const auto found = known->second.find(elf_address);
    // Functions without a symbol were packed as ranges, which lie in the same segment.
    return found != known->second.end() ? found->second
                                        : facts.shown_address + (elf_address - facts.elf_address);
  }
  if (source->is_vmlinux) return elf_address + source->moved;
  const auto offset = source->loads.offset_of({elf_address});
  return offset ? std::optional(offset->value) : std::nullopt;
}

}  // namespace tacho::report
