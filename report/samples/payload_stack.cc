#include "report/samples/payload_stack.h"

#include <algorithm>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kWord = 8;  // bytes of an address

// An address in the upper half is the kernel's.
bool is_kernel_address(std::uint64_t address) { return static_cast<std::int64_t>(address) < 0; }

// Numbers of 64 bits that begin at a whole byte: what the kernel's helpers for stacks write.
bool is_stack(const format::PayloadField& field) {
  const bool is_number = field.kind == format::FieldKind::Unsigned || field.kind == format::FieldKind::Signed;
  return field.role == "stack" && is_number && field.bit_size == 8 * kWord && field.bit_offset % 8 == 0;
}

}  // namespace

bool has_payload_stack(const format::PayloadSchema& schema) {
  return std::ranges::any_of(schema.fields, is_stack);
}

bool has_stacks(const format::EventSet& events, const format::Features& features) {
  const bool has_payload_stacks = std::ranges::any_of(features.schemas, has_payload_stack);
  return std::ranges::any_of(events, [&](const format::Event& event) {
    return event.attr.samples(abi::kSampleCallchain) || (has_payload_stacks && event.attr.is_bpf_output());
  });
}

const std::vector<PayloadStacks::Place>& PayloadStacks::places_of(const format::Event& event,
                                                                  std::size_t event_index) {
  if (known_.size() <= event_index) known_.resize(event_index + 1);
  auto& known = known_[event_index];
  if (known) return *known;
  known.emplace();
  if (!event.attr.is_bpf_output()) return *known;
  const auto schema = std::ranges::find(features_->schemas, event.name, &format::PayloadSchema::event);
  if (schema == features_->schemas.end()) return *known;
  for (const format::PayloadField& field : schema->fields) {
    if (!is_stack(field)) continue;
    using Space = Place::Space;
    const Space space = field.format == "kaddr"   ? Space::Kernel
                        : field.format == "uaddr" ? Space::Process
                                                  : Space::ByAddress;
    known->push_back({field.bit_offset / 8, field.count, space});
  }
  return *known;
}

void PayloadStacks::append(const Place& place, format::Bytes payload, std::endian order) {
  if (place.offset >= payload.size()) return;
  const format::Bytes rest = payload.subspan(place.offset);
  const std::uint64_t present = rest.size() / kWord;
  const std::uint64_t count = place.count == 0 ? present : std::min(place.count, present);
  const format::U64Array addresses(rest.first(count * kWord), order);
  std::uint64_t mark = 0;  // none yet
  for (std::size_t i = 0; i < addresses.size() && addresses[i] != 0; ++i) {
    if (addresses[i] == abi::kContextUser) {  // tacho's own walk marks what a signal interrupted
      mark = 0;
      continue;
    }
    const bool is_kernel = place.space == Place::Space::ByAddress ? is_kernel_address(addresses[i])
                                                                  : place.space == Place::Space::Kernel;
    const std::uint64_t needed = is_kernel ? abi::kContextKernel : abi::kContextUser;
    if (mark != needed) chain_.push_back(needed);
    mark = needed;
    chain_.push_back(addresses[i]);
  }
}

std::optional<format::U64Array> PayloadStacks::chain_of(const format::Event& event, std::size_t event_index,
                                                        const format::Sample& sample, std::endian order) {
  const std::vector<Place>& places = places_of(event, event_index);
  if (places.empty()) return std::nullopt;
  chain_.clear();
  for (const Place& place : places) append(place, sample.raw, order);
  return format::U64Array(std::as_bytes(std::span(chain_)), std::endian::native);
}

}  // namespace tacho::report
