#include "report/views/redact/payload_redaction.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "format/records/perf_abi.h"

namespace tacho::report {
namespace {

using format::FieldKind;

constexpr std::size_t kCommonFields = 8;  // bytes of every tracepoint: its number, flags and the thread

struct ByteRange {
  std::size_t begin = 0, size = 0;
};

// The bytes of a field, cut at the end of the payload.
ByteRange bytes_of(const PayloadField& field, std::size_t available) {
  const std::uint64_t begin = field.bit_offset / 8;
  if (begin >= available) return {};
  std::uint64_t bits = field.bit_offset % 8;
  if (is_located(field))
    bits += 32;
  else if (field.count == 0)
    return {static_cast<std::size_t>(begin), available - static_cast<std::size_t>(begin)};
  else
    bits += std::uint64_t{field.bit_size} * field.count;
  return {static_cast<std::size_t>(begin),
          static_cast<std::size_t>(std::min<std::uint64_t>((bits + 7) / 8, available - begin))};
}

bool is_byte_array(const PayloadField& field) { return field.bit_size == 8 && is_list(field); }
bool is_number(const PayloadField& field) {
  return field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed;
}
// FORMAT("kaddr"), of any sign and size.
bool is_kernel_address(const PayloadField& field) { return field.format == "kaddr" && is_number(field); }
// So may any unsigned number of 64 bits be, as pointers have no FORMAT.
bool can_be_address(const PayloadField& field) {
  return is_kernel_address(field) ||
         (field.bit_size == 64 && field.kind == FieldKind::Unsigned && field.bit_offset % 8 == 0);
}
bool is_whole_word(const PayloadField& field) {
  return field.bit_offset % 8 == 0 && (field.bit_size == 64 || field.bit_size == 32);
}

// Clears the bits of a field in the bytes that it touches.
void clear_bits(const PayloadField& field, std::span<std::byte> bytes) {
  const std::size_t begin = field.bit_offset % 8;
  const std::size_t bits = field.count == 0 ? bytes.size() * 8 : std::size_t{field.bit_size} * field.count;
  for (std::size_t bit = begin; bit < begin + bits && bit / 8 < bytes.size(); ++bit)
    bytes[bit / 8] &= ~(std::byte{1} << (bit % 8));
}

// Fields may overlap (a union), and the last one written counts: fields that stay unchanged come first, then
// others, and texts outside the fixed part at the end.
enum class Step : std::uint8_t { Numbers, Addresses, Bytes };

Step step_of(const PayloadField& field) {
  if (is_byte_array(field)) return Step::Bytes;
  return can_be_address(field) ? Step::Addresses : Step::Numbers;
}

}  // namespace

void PayloadRedaction::hide(std::span<std::byte> bytes, FieldKind kind) {
  if (redaction_->how_of(Content::Payload) == How::Drop) {
    std::ranges::fill(bytes, std::byte{});
    return;
  }
  if (kind != FieldKind::Text) return aliases_->replace(bytes);
  const std::string alias = aliases_->alias_of(format::text_of(bytes));
  std::ranges::fill(bytes, std::byte{});
  if (bytes.empty()) return;
  std::memcpy(bytes.data(), alias.data(), std::min(alias.size(), bytes.size() - 1));
}

void PayloadRedaction::move_addresses(const PayloadField& field, std::span<std::byte> bytes) {
  if (!can_be_address(field) || !redaction_->hides(Content::Kernel)) return;
  if (!is_whole_word(field)) return clear_bits(field, bytes);  // a part of an address cannot be moved
  if (field.bit_size == 32) {
    // The lower half of an address in the last 4 GiB, where the kernel's code is.
    constexpr std::uint64_t kUpperHalf = std::uint64_t{0xFFFFFFFF} << 32;
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t low = 0;
      std::memcpy(&low, bytes.data() + at, sizeof low);
      if (low == 0 || (kUpperHalf | low) >= format::abi::kContextMax) continue;
      low = static_cast<std::uint32_t>(kernel_->hidden(kUpperHalf | low, *aliases_));
      std::memcpy(bytes.data() + at, &low, sizeof low);
    }
    return;
  }
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value < kKernelHalf || value >= format::abi::kContextMax) continue;
    value = kernel_->hidden(value, *aliases_);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// Copies the field's own bytes: for __data_loc, offset and length.
void PayloadRedaction::copy_field(const PayloadField& field, std::span<std::byte> raw) {
  if (field.kind == FieldKind::Text && !is_located(field)) return;
  const ByteRange range = bytes_of(field, raw.size());
  const std::span<std::byte> bytes = raw.subspan(range.begin, range.size);
  std::ranges::copy(std::span(before_).subspan(range.begin, range.size), bytes.begin());
  if (is_byte_array(field)) return hide(bytes, field.kind);
  move_addresses(field, bytes);
}

void PayloadRedaction::hide_text(const PayloadField& field, std::span<std::byte> raw) {
  if (field.kind != FieldKind::Text) return;
  const auto room = room_of_text(field, before_, std::endian::native);
  if (!room || room->empty()) return;
  const std::span<std::byte> to =
      raw.subspan(static_cast<std::size_t>(room->data() - before_.data()), room->size());
  std::ranges::copy(*room, to.begin());
  hide(to, FieldKind::Text);
}

void PayloadRedaction::change(std::size_t event, std::span<std::byte> raw) {
  const PayloadSchema* const schema = schemas_.schema_of(event);
  if (!redaction_->hides(Content::Payload)) {
    if (schema == nullptr) return;
    for (const PayloadField& field : schema->fields) {
      const ByteRange range = bytes_of(field, raw.size());
      move_addresses(field, raw.subspan(range.begin, range.size));
    }
    return;
  }
  before_.assign(raw.begin(), raw.end());
  std::ranges::fill(raw, std::byte{});
  const bool is_tracepoint = (*events_)[event].attr.type == format::abi::kTracepoint;
  if (is_tracepoint) std::copy_n(before_.begin(), std::min(kCommonFields, raw.size()), raw.begin());
  if (schema == nullptr) return;
  for (const Step step : {Step::Numbers, Step::Addresses, Step::Bytes})
    for (const PayloadField& field : schema->fields)
      if (step_of(field) == step) copy_field(field, raw);
  for (const PayloadField& field : schema->fields) hide_text(field, raw);
}

}  // namespace tacho::report
