#include "record/objects/ring_layout.h"

#include <algorithm>
#include <cstring>

#include "format/records/perf_abi.h"

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

}  // namespace tacho::record
