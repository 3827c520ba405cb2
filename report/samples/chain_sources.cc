#include "report/samples/chain_sources.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kAddressSize = 8;  // bytes of an address

// An address in the upper half is the kernel's.
bool is_kernel_address(std::uint64_t address) { return static_cast<std::int64_t>(address) < 0; }

// A u64 array, as bpf_get_stack() fills it.
bool is_stack_field(const format::PayloadField& field) {
  const bool is_number = field.kind == format::FieldKind::Unsigned || field.kind == format::FieldKind::Signed;
  return field.role == "stack" && is_number && field.bit_size == 8 * kAddressSize &&
         field.bit_offset % 8 == 0;
}

}  // namespace

bool has_payload_stack(const format::PayloadSchema& schema) {
  return std::ranges::any_of(schema.fields, is_stack_field);
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
    if (!is_stack_field(field)) continue;
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
  const std::uint64_t present = rest.size() / kAddressSize;
  const std::uint64_t count = field.count == 0 ? present : std::min(field.count, present);
  const format::U64Array addresses(rest.first(count * kAddressSize), order);
  std::uint64_t context = 0;  // none yet
  for (std::size_t i = 0; i < addresses.size() && addresses[i] != 0; ++i) {
    if (addresses[i] == abi::kContextUser) {  // tacho's unwinder writes it before the pc of an interrupted
                                              // frame; the next address needs a new context
      context = 0;
      continue;
    }
    const bool is_kernel = field.space == Field::Space::ByAddress ? is_kernel_address(addresses[i])
                                                                  : field.space == Field::Space::Kernel;
    const std::uint64_t wanted_context = is_kernel ? abi::kContextKernel : abi::kContextUser;
    if (context != wanted_context) chain_.push_back(wanted_context);
    context = wanted_context;
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

std::optional<format::U64Array> lbr_chain(const format::Sample& sample, const format::EventAttr& attr,
                                          std::size_t max_words, std::vector<std::uint64_t>& scratch) {
  const bool is_call_stack =
      attr.samples(abi::kSampleBranchStack) && (attr.branch_sample_type & abi::kBranchCallStack) != 0;
  if (!is_call_stack) return std::nullopt;
  const std::size_t words = std::min(max_words, sample.callchain.size());
  std::size_t user_mark = 0;
  while (user_mark < words && sample.callchain[user_mark] != abi::kContextUser) ++user_mark;
  if (user_mark == words) return std::nullopt;
  scratch.clear();
  for (std::size_t i = 0; i < user_mark; ++i) scratch.push_back(sample.callchain[i]);
  const auto add = [&](std::uint64_t address) {
    scratch.push_back(abi::kContextUser);
    scratch.push_back(address);
  };
  if (sample.branch_count() > 0) add(sample.branch(0).to);
  for (std::size_t i = 0; i < sample.branch_count(); ++i) add(sample.branch(i).from);
  return format::U64Array(std::as_bytes(std::span(scratch)), std::endian::native);
}

std::optional<format::U64Array> chain_with_leaf_caller(
    const format::Sample& sample, const format::EventAttr& attr, symbolize::Unwinder& unwinder,
    const symbolize::SpaceVersion& space, std::endian order, std::vector<std::uint64_t>& scratch) {
  if (!symbolize::Unwinder::has_only_link_register(attr)) return std::nullopt;
  const format::U64Array& chain = sample.callchain;
  std::size_t leaf = 1;
  while (leaf < chain.size() && chain[leaf - 1] != abi::kContextUser) ++leaf;
  if (leaf + 1 >= chain.size())
    return std::nullopt;  // as in perf: nothing is added to a chain with a single frame
  const auto caller = unwinder.caller_of_leaf(sample, space, chain[leaf], order);
  if (!caller || *caller == chain[leaf + 1]) return std::nullopt;
  scratch.clear();
  for (std::size_t i = 0; i < chain.size(); ++i) {
    scratch.push_back(chain[i]);
    if (i != leaf) continue;
    scratch.push_back(abi::kContextUser);  // `caller` is a call site (return address - 1) already
    scratch.push_back(*caller);
  }
  return format::U64Array(std::as_bytes(std::span(scratch)), std::endian::native);
}

}  // namespace tacho::report
