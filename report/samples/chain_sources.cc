#include "report/samples/chain_sources.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kWord = 8;  // bytes of an address

// An address in the upper half is the kernel's.
bool is_kernel_address(std::uint64_t address) { return static_cast<std::int64_t>(address) < 0; }

// Arrays of 64-bit numbers, as the kernel's helpers for stacks write them.
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

const std::vector<PayloadStacks::Field>& PayloadStacks::fields_of(const format::Event& event,
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
    using Space = Field::Space;
    const Space space = field.format == "kaddr"   ? Space::Kernel
                        : field.format == "uaddr" ? Space::Process
                                                  : Space::ByAddress;
    known->push_back({field.bit_offset / 8, field.count, space});
  }
  return *known;
}

void PayloadStacks::append(const Field& field, format::Bytes payload, std::endian order) {
  if (field.offset >= payload.size()) return;
  const format::Bytes rest = payload.subspan(field.offset);
  const std::uint64_t present = rest.size() / kWord;
  const std::uint64_t count = field.count == 0 ? present : std::min(field.count, present);
  const format::U64Array addresses(rest.first(count * kWord), order);
  std::uint64_t mark = 0;  // none yet
  for (std::size_t i = 0; i < addresses.size() && addresses[i] != 0; ++i) {
    if (addresses[i] == abi::kContextUser) {  // tacho's unwinder puts it before an interrupted address
      mark = 0;
      continue;
    }
    const bool is_kernel = field.space == Field::Space::ByAddress ? is_kernel_address(addresses[i])
                                                                  : field.space == Field::Space::Kernel;
    const std::uint64_t needed = is_kernel ? abi::kContextKernel : abi::kContextUser;
    if (mark != needed) chain_.push_back(needed);
    mark = needed;
    chain_.push_back(addresses[i]);
  }
}

std::optional<format::U64Array> PayloadStacks::chain_of(const format::Event& event, std::size_t event_index,
                                                        const format::Sample& sample, std::endian order) {
  const std::vector<Field>& fields = fields_of(event, event_index);
  if (fields.empty()) return std::nullopt;
  chain_.clear();
  for (const Field& field : fields) append(field, sample.raw, order);
  return format::U64Array(std::as_bytes(std::span(chain_)), std::endian::native);
}

std::optional<format::U64Array> LbrStack::chain_of(const format::Sample& sample,
                                                   const format::EventAttr& attr, std::size_t max_words) {
  const bool keeps_calls =
      attr.samples(abi::kSampleBranchStack) && (attr.branch_sample_type & abi::kBranchCallStack) != 0;
  if (!keeps_calls) return std::nullopt;
  const std::size_t words = std::min(max_words, sample.callchain.size());
  std::size_t user = 0;
  while (user < words && sample.callchain[user] != abi::kContextUser) ++user;
  if (user == words) return std::nullopt;
  words_.clear();
  for (std::size_t i = 0; i < user; ++i) words_.push_back(sample.callchain[i]);
  const auto add = [&](std::uint64_t address) {
    words_.push_back(abi::kContextUser);
    words_.push_back(address);
  };
  if (sample.branch_count() > 0) add(sample.branch(0).to);
  for (std::size_t i = 0; i < sample.branch_count(); ++i) add(sample.branch(i).from);
  return format::U64Array(std::as_bytes(std::span(words_)), std::endian::native);
}

std::optional<format::U64Array> LeafCaller::chain_of(const format::Sample& sample,
                                                     const format::EventAttr& attr,
                                                     symbolize::Unwinder& unwinder,
                                                     const symbolize::SpaceVersion& space,
                                                     std::endian order) {
  if (!symbolize::Unwinder::has_link_alone(attr)) return std::nullopt;
  const format::U64Array& chain = sample.callchain;
  std::size_t leaf = 1;
  while (leaf < chain.size() && chain[leaf - 1] != abi::kContextUser) ++leaf;
  if (leaf + 1 >= chain.size()) return std::nullopt;  // perf adds none to a chain of one
  const auto caller = unwinder.caller_of_leaf(sample, space, chain[leaf], order);
  if (!caller || *caller == chain[leaf + 1]) return std::nullopt;
  words_.clear();
  for (std::size_t i = 0; i < chain.size(); ++i) {
    words_.push_back(chain[i]);
    if (i != leaf) continue;
    words_.push_back(abi::kContextUser);  // the unwinder gives the return address minus one
    words_.push_back(*caller);
  }
  return format::U64Array(std::as_bytes(std::span(words_)), std::endian::native);
}

}  // namespace tacho::report
