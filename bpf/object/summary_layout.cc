#include "bpf/object/summary_layout.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "format/base/parse_text.h"

namespace tacho::bpf {
namespace {

using format::Bytes;
using format::FieldKind;
using format::PayloadField;
using format::PayloadSchema;

constexpr std::uint32_t kSlotBits = 64;
constexpr std::uint64_t kMostStep = std::uint64_t{1} << 62;
constexpr std::string_view kStack = "stack", kLinear = "linear:", kLiveCount = "live:count";
constexpr std::string_view kWholeKey = "(key)", kWholeValue = "(value)";  // of btf_schema

bool is_number(const PayloadField& field) {
  return (field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed) && field.format != "kaddr" &&
         field.format != "uaddr";
}
bool is_one_number(const PayloadField& field) {
  return is_number(field) && !field.is_array && field.count == 1;
}

// Element `index` of a field; 0 past its end.
std::uint64_t bits_at(const PayloadField& field, Bytes bytes, std::size_t index) {
  const std::uint64_t begin = field.bit_offset + std::uint64_t{index} * field.bit_size;
  const std::uint64_t first = begin / 8, end = (begin + field.bit_size + 7) / 8;
  if (end > bytes.size()) return 0;
  __extension__ unsigned __int128 wide = 0;  // 64 bits that begin within a byte
  std::memcpy(&wide, bytes.data() + first, end - first);
  const auto value = static_cast<std::uint64_t>(wide >> (begin % 8));
  if (field.bit_size >= kSlotBits) return value;
  const std::uint64_t mask = (std::uint64_t{1} << field.bit_size) - 1;
  const bool is_negative = field.kind == FieldKind::Signed && ((value >> (field.bit_size - 1)) & 1) != 0;
  return is_negative ? value | ~mask : value & mask;
}

void set_bits(const PayloadField& field, std::span<std::byte> bytes, std::size_t index, std::uint64_t value) {
  const std::size_t at = field.bit_offset / 8 + index * (field.bit_size / 8);
  if (at + field.bit_size / 8 <= bytes.size()) std::memcpy(bytes.data() + at, &value, field.bit_size / 8);
}

bool is_whole(const PayloadField& field) {
  const auto bits = field.bit_size;
  return field.bit_offset % 8 == 0 && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

// The size of the smallest integer with `bits`.
std::uint32_t bytes_for(std::uint32_t bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

std::optional<std::uint64_t> step_of(std::string_view role) {
  if (!format::take_prefix(role, kLinear)) return std::nullopt;
  const auto step = format::whole_number<std::uint64_t>(role);
  return step && *step > 0 && *step < kMostStep ? step : std::nullopt;
}

// The name of a field that shows a slot by its least value.
std::string name_of_slots(std::string name) {
  const std::string own = name.substr(name.rfind('.') + 1);
  return own == "slot" || own == "slots" || own == kWholeKey || own == kWholeValue ? "value" : name;
}

std::uint64_t least_of_slot(bool is_log2, std::uint64_t step, std::uint64_t slot) {
  if (is_log2) return slot == 0 ? 0 : std::uint64_t{1} << std::min<std::uint64_t>(slot, kSlotBits - 1);
  std::uint64_t least = 0;
  return __builtin_mul_overflow(slot, step, &least) ? ~std::uint64_t{0} : least;
}

// The growth of a counter. If it is less than before, its entry was removed and made again.
std::uint64_t growth(const PayloadField& field, Bytes value, Bytes before, std::size_t index) {
  const std::uint64_t now = bits_at(field, value, index), then = bits_at(field, before, index);
  const bool began_anew = field.kind == FieldKind::Unsigned && now < then;
  return began_anew ? now : now - then;
}

}  // namespace

SummaryLayout::SummaryLayout(const SummaryTypes& types, std::size_t key_bytes, std::size_t value_bytes) {
  schema_.event = types.event;
  schema_.type_name = types.key && !types.key->type_name.empty() ? types.key->type_name : types.map;
  has_slot_array_ =
      types.value && std::ranges::any_of(types.value->fields, [](const PayloadField& field) {
        return (field.role == "log2" || step_of(field.role)) && is_number(field) && is_whole(field);
      });
  add_fields(types.key, key_bytes, true);
  add_fields(types.value, value_bytes, false);
  schema_.size = (schema_.size + 7) / 8 * 8;
}

void SummaryLayout::add_fields(const std::optional<PayloadSchema>& described, std::size_t bytes,
                               bool is_key) {
  if (described && described->size == bytes && !described->fields.empty()) {
    for (const PayloadField& field : described->fields) add_field(field, is_key);
    return;
  }
  PayloadField unknown;  // bytes without a known type
  unknown.name = is_key ? kWholeKey : kWholeValue;
  unknown.bit_size = 8;
  unknown.count = static_cast<std::uint32_t>(bytes);
  unknown.is_array = true;
  unknown.format = "hex";
  if (!is_key && bytes == sizeof(std::uint64_t)) {
    unknown.bit_size = kSlotBits;
    unknown.count = 1;
    unknown.is_array = false;
  }
  add_field(unknown, is_key);
}

std::string SummaryLayout::free_name(std::string name, bool is_key) const {
  const auto is_taken = [&](const std::string& one) {
    return std::ranges::find(schema_.fields, one, &PayloadField::name) != schema_.fields.end();
  };
  if (is_taken(name) && !is_key) name = "value." + name;
  while (is_taken(name)) name += "_";
  return name;
}

void SummaryLayout::append(PayloadField field, Part part) {
  schema_.size = (schema_.size + part.to_bytes - 1) / part.to_bytes * part.to_bytes;
  part.to = schema_.size;
  field.name = free_name(std::move(field.name), part.is_key);
  field.bit_offset = schema_.size * 8;
  field.bit_size = part.to_bytes * 8;
  schema_.size += part.to_bytes * field.count;
  schema_.fields.push_back(std::move(field));
  parts_.push_back(std::move(part));
}

void SummaryLayout::add_field(const PayloadField& field, bool is_key) {
  const bool is_all = field.name == (is_key ? kWholeKey : kWholeValue);  // no struct
  if (field.role.starts_with(kStack) && is_one_number(field) && is_whole(field) && field.bit_size >= 32) {
    stacks_.push_back(
        {field, is_key, field.role.size() > kStack.size() ? field.role.substr(kStack.size() + 1) : ""});
    return;
  }
  if (is_key && field.role == "cgroup" && is_one_number(field)) {
    cgroup_ = field;  // of the sample, not of its payload
    return;
  }
  Part part{.from = field, .is_key = is_key, .to_bytes = bytes_for(field.bit_size)};
  PayloadField out = field;
  if (is_all) out.name = is_key ? "key" : "value";
  const auto step = step_of(field.role);
  const bool is_slot = field.role == "log2" || step.has_value();
  if (is_slot && is_number(field) && (is_key ? !field.is_array : is_whole(field))) {
    part.kind = step ? Kind::Linear : Kind::Log2;
    part.step = step.value_or(1);
    part.to_bytes = sizeof(std::uint64_t);
    out.name = name_of_slots(field.name);
    out.kind = FieldKind::Unsigned;
    out.role = "value";
    out.format = step ? "linear:" + std::to_string(*step) : "log2";
    out.count = 1;
    out.is_array = false;
    append(std::move(out), part);
    if (is_key) return;
    PayloadField counts;
    counts.name = "count";
    counts.role = "count";
    counts.count = 1;
    count_ = parts_.size();
    append(std::move(counts), Part{.from = field, .kind = Kind::Counted, .to_bytes = sizeof(std::uint64_t)});
    return;
  }
  if (is_key) {
    if (field.name == "pid" && is_one_number(field)) process_ = field;
    if (field.name == "tid" && is_one_number(field)) thread_ = field;
    const bool is_value = is_all && is_one_number(field) && !has_slot_array_;
    if (is_value) out.name = "value";
    if (out.role.empty()) out.role = is_value ? "value" : "key";
    return append(std::move(out), part);
  }
  if (is_one_number(field) && is_whole(field)) {
    if (is_all && out.role.empty()) out.role = "count";
    if (is_all && out.role == "count") out.name = "count", out.format.clear();
    if (out.role == kLiveCount) {
      part.kind = Kind::Live;
      part.to_bytes = sizeof(std::uint64_t);
      if (!live_count_) live_count_ = parts_.size();
      out.role = "count";
    } else if (out.role == "count" || out.role == "sum" || out.role == "live") {
      part.kind = out.role == "live" ? Kind::Live : Kind::Counted;
      part.to_bytes = sizeof(std::uint64_t);
      auto& part_index = out.role == "live" ? live_ : out.role == "sum" ? sum_ : count_;
      if (!part_index) part_index = parts_.size();
      if (part.kind == Kind::Live) out.role = "sum";
    } else if (out.role == "max") {
      part.kind = Kind::Largest;
      out.role.clear();
    }
  }
  append(std::move(out), part);
}

std::vector<std::string> SummaryLayout::stack_maps() const {
  std::vector<std::string> maps;
  for (const StackId& stack : stacks_) maps.push_back(stack.map);
  return maps;
}

std::vector<std::uint32_t> SummaryLayout::stack_key_bytes() const {
  std::vector<std::uint32_t> sizes;
  for (const StackId& stack : stacks_) sizes.push_back(stack.from.bit_size / 8);
  return sizes;
}

void SummaryLayout::put_part(const Part& part, Bytes key, Bytes value, Bytes before, Sample& sample) const {
  const Bytes from = part.is_key ? key : value;
  std::byte* const to = sample.payload.data() + part.to;
  if (part.is_slot_array()) return;  // its elements are handled one by one
  if (part.kind == Kind::Copied || part.kind == Kind::Largest) {
    const std::size_t bytes = std::size_t{part.to_bytes} * part.from.count;
    if (is_whole(part.from)) {
      const std::size_t at = part.from.bit_offset / 8;
      if (at + bytes <= from.size()) std::memcpy(to, from.data() + at, bytes);
      return;
    }
    for (std::size_t i = 0; i < part.from.count; ++i) {
      const std::uint64_t one = bits_at(part.from, from, i);
      std::memcpy(to + i * part.to_bytes, &one, part.to_bytes);
    }
    return;
  }
  std::uint64_t number = bits_at(part.from, from, 0);
  if (part.kind == Kind::Counted) number = growth(part.from, value, before, 0);
  if (part.kind == Kind::Log2 || part.kind == Kind::Linear)
    number = least_of_slot(part.kind == Kind::Log2, part.step, number);
  std::memcpy(to, &number, sizeof number);
}

bool SummaryLayout::fill(Bytes key, Bytes value, Bytes before, Sample& sample) const {
  const auto number_of = [&](std::size_t part) {
    std::uint64_t number = 0;
    std::memcpy(&number, sample.payload.data() + parts_[part].to, sizeof number);
    return number;
  };
  sample.payload.assign(schema_.size, std::byte{0});
  for (const Part& part : parts_) put_part(part, key, value, before, sample);
  if (process_) sample.process = sample.thread = static_cast<std::uint32_t>(bits_at(*process_, key, 0));
  if (thread_) sample.thread = static_cast<std::uint32_t>(bits_at(*thread_, key, 0));
  if (thread_ && !process_) sample.process = sample.thread;
  if (cgroup_) sample.cgroup = bits_at(*cgroup_, key, 0);
  for (const StackId& stack : stacks_) {
    const std::uint64_t id = bits_at(stack.from, stack.is_key ? key : value, 0);
    sample.stacks.push_back(stack.from.bit_size == kSlotBits
                                ? static_cast<std::int64_t>(id)
                                : static_cast<std::int32_t>(static_cast<std::uint32_t>(id)));
  }
  if (has_slot_array_) return true;
  const auto weight = live_ ? live_ : live_count_ ? live_count_ : sum_ ? sum_ : count_;
  if (!weight) return !std::ranges::equal(value, before);
  sample.period = number_of(*weight);
  // A negative sum is not a weight.
  const bool is_negative =
      schema_.fields[*weight].kind == FieldKind::Signed && static_cast<std::int64_t>(sample.period) < 0;
  if (is_negative && count_) sample.period = number_of(*count_);
  const auto change = live_count_ ? live_count_ : live_ ? live_ : count_ ? count_ : sum_;
  return number_of(*change) != 0;
}

void SummaryLayout::expand(Bytes key, Bytes value, Bytes before,
                           const std::function<void(const Sample&)>& sink) const {
  const std::vector<std::byte> none(before.empty() ? value.size() : 0);
  if (before.empty()) before = none;
  Sample sample;
  if (!fill(key, value, before, sample)) return;
  if (!has_slot_array_) return sink(sample);
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    const Part& slots = parts_[i];
    if (!slots.is_slot_array()) continue;
    for (std::size_t slot = 0; slot < slots.from.count; ++slot) {
      const std::uint64_t count = growth(slots.from, value, before, slot);
      if (count == 0) continue;
      const std::uint64_t least = least_of_slot(slots.kind == Kind::Log2, slots.step, slot);
      std::memcpy(sample.payload.data() + slots.to, &least, sizeof least);
      std::memcpy(sample.payload.data() + parts_[i + 1].to, &count, sizeof count);
      sample.period = count;
      sink(sample);
    }
    return;  // a map has one histogram
  }
}

void SummaryLayout::add_up(std::span<std::byte> sum, Bytes value) const {
  const auto is_zero = [](std::byte one) { return one == std::byte{0}; };
  if (std::ranges::all_of(value, is_zero)) return;
  if (std::ranges::all_of(sum, is_zero)) {
    std::ranges::copy(value.first(std::min(value.size(), sum.size())), sum.begin());
    return;
  }
  for (const Part& part : parts_) {
    if (part.is_key || part.kind == Kind::Copied) continue;
    if (part.kind == Kind::Counted && has_slot_array_ && part.from.count > 1)
      continue;  // fields of slots are added below
    for (std::size_t i = 0; i < part.from.count; ++i) {
      const std::uint64_t mine = bits_at(part.from, sum, i), other = bits_at(part.from, value, i);
      const bool is_larger = part.from.kind == FieldKind::Signed
                                 ? static_cast<std::int64_t>(other) > static_cast<std::int64_t>(mine)
                                 : other > mine;
      if (part.kind != Kind::Largest)
        set_bits(part.from, sum, i, mine + other);
      else if (is_larger)
        set_bits(part.from, sum, i, other);
    }
  }
}

}  // namespace tacho::bpf
