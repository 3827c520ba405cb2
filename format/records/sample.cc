#include "format/records/sample.h"

#include <algorithm>
#include <bit>

namespace tacho::format {

namespace {

std::size_t entry_words(std::uint64_t read_format) {
  return 1 + std::popcount(read_format & (abi::kReadId | abi::kReadLost));
}

Registers parse_registers(Cursor& in, std::uint64_t mask) {
  Registers registers;
  registers.abi = in.u64();
  if (registers.abi == 0) return registers;
  registers.mask = mask;
  registers.values = in.words(static_cast<std::uint64_t>(std::popcount(mask)));
  return registers;
}

// Widths of the bit fields in a branch's flags, in order: mispredicted, predicted, in transaction, abort,
// cycles, type, speculation, new type, privilege, reserved.
constexpr int kBranchFlagBits[] = {1, 1, 1, 1, 16, 4, 2, 4, 3, 31};

// Moves each field between its native place and the place that it has in the other byte order.
std::uint64_t moved_branch_flags(std::uint64_t flags, bool to_foreign) {
  std::uint64_t moved = 0;
  int native = 0;  // bits below the field
  for (const int bits : kBranchFlagBits) {
    const int foreign = 64 - native - bits;
    const std::uint64_t field = flags >> (to_foreign ? native : foreign) & ((std::uint64_t{1} << bits) - 1);
    moved |= field << (to_foreign ? foreign : native);
    native += bits;
  }
  return moved;
}

void parse_branches(Cursor& in, const EventAttr& attr, Sample& out) {
  const std::uint64_t count = in.u64();
  if ((attr.branch_sample_type & abi::kBranchHwIndex) != 0) out.branch_hw_index = in.u64();
  out.branches = in.words(count, 3, FieldShape::Branches);
  if ((attr.branch_sample_type & abi::kBranchCounters) != 0) out.branch_counters = in.words(count);
}

// u64 size, bytes and, if size is not 0, u64 the number of valid bytes.
void parse_user_stack(Cursor& in, Sample& out) {
  out.user_stack = {};
  const std::uint64_t size = in.u64();
  if (size == 0) return;
  const Bytes stack = in.take_bytes(size);
  const std::uint64_t valid = in.u64();
  if (valid > size) return in.fail();
  out.user_stack = stack.first(static_cast<std::size_t>(valid));
}

void parse_weight_struct(Cursor& in, Sample& out) {
  // The kernel's union is declared so that var1 is the low half of the u64 on either byte order.
  const std::uint64_t word = in.u64();
  out.weight = word & 0xffffffff;
  out.weight2 = static_cast<std::uint16_t>(word >> 32);
  out.weight3 = static_cast<std::uint16_t>(word >> 48);
}

// The fixed-size fields at the start of a sample, in the kernel's order (not bit order).
void parse_fixed(Cursor& in, const EventAttr& attr, Sample& out) {
  const std::uint64_t type = attr.sample_type;
  if (type & abi::kSampleIdentifier) out.identifier = in.u64();
  if (type & abi::kSampleIp) out.ip = in.u64();
  if (type & abi::kSampleTid) {
    out.pid = in.u32();
    out.tid = in.u32();
  }
  if (type & abi::kSampleTime) out.time = in.u64();
  if (type & abi::kSampleAddr) out.addr = in.u64();
  if (type & abi::kSampleId) out.identifier = in.u64();
  if (type & abi::kSampleStreamId) out.stream_id = in.u64();
  if (type & abi::kSampleCpu) {
    out.cpu = in.u32();
    in.u32();  // reserved
  }
  out.period = type & abi::kSamplePeriod ? in.u64() : attr.sample_period;
}

void parse_variable(Cursor& in, const EventAttr& attr, Sample& out) {
  const std::uint64_t type = attr.sample_type;
  if (type & abi::kSampleRead) out.read = parse_read_values(in, attr.read_format);
  if (type & abi::kSampleCallchain) out.callchain = in.words(in.u64());
  if (type & abi::kSampleRaw) out.raw = in.take_bytes(in.u32());
  if (type & abi::kSampleBranchStack) parse_branches(in, attr, out);
  if (type & abi::kSampleRegsUser) out.user_registers = parse_registers(in, attr.sample_regs_user);
  if (type & abi::kSampleStackUser) parse_user_stack(in, out);
  if (type & abi::kSampleWeight) out.weight = in.u64();
  if (type & abi::kSampleWeightStruct) parse_weight_struct(in, out);
  if (type & abi::kSampleDataSrc) out.data_source = in.u64();
  if (type & abi::kSampleTransaction) out.transaction = in.u64();
  if (type & abi::kSampleRegsIntr) out.interrupt_registers = parse_registers(in, attr.sample_regs_intr);
  if (type & abi::kSamplePhysAddr) out.phys_addr = in.u64();
  if (type & abi::kSampleCgroup) out.cgroup = in.u64();
  if (type & abi::kSampleDataPageSize) out.data_page_size = in.u64();
  if (type & abi::kSampleCodePageSize) out.code_page_size = in.u64();
  if (type & abi::kSampleAux) out.aux = in.take_bytes(in.u64());
}

constexpr std::uint64_t kTrailerFields = abi::kSampleTid | abi::kSampleTime | abi::kSampleId |
                                         abi::kSampleStreamId | abi::kSampleCpu | abi::kSampleIdentifier;

// Sets the fields that the event samples.
bool parse_into(Sample& sample, const RecordView& record, const EventAttr& attr, FieldLog* log) {
  Cursor in = record.body(log);
  sample.misc = record.misc;
  parse_fixed(in, attr, sample);
  parse_variable(in, attr, sample);
  sample.unread = in.left();
  return !in.failed();
}

// The trailer of a kernel record; empty: it has none, or is too short for it.
Bytes trailer_of(const RecordView& record, const EventAttr& attr) {
  const std::size_t size = sample_id_size(attr);
  const Bytes own = declared_bytes(record, size);
  return own.size() < kRecordHeaderSize + size ? Bytes() : own.last(size);
}

}  // namespace

std::uint64_t branch_flags_from_foreign(std::uint64_t flags) { return moved_branch_flags(flags, false); }
std::uint64_t branch_flags_to_foreign(std::uint64_t flags) { return moved_branch_flags(flags, true); }

std::size_t ReadValues::size() const {
  if (single) return 1;
  return entries.size() / (entry_words(read_format) * sizeof(std::uint64_t));
}

ReadValues::Entry ReadValues::entry(std::size_t index) const {
  const std::size_t bytes = entry_words(read_format) * sizeof(std::uint64_t);
  Cursor in(single ? entries : entries.subspan(index * bytes, bytes), order);
  Entry entry;
  entry.value = single ? *single : in.u64();
  if (read_format & abi::kReadId) entry.id = in.u64();
  if (read_format & abi::kReadLost) entry.lost = in.u64();
  return entry;
}

ReadValues parse_read_values(Cursor& in, std::uint64_t read_format) {
  ReadValues values;
  values.read_format = read_format;
  values.order = in.order();
  const std::size_t words = entry_words(read_format);
  if (read_format & abi::kReadGroup) {
    const std::uint64_t count = in.u64();
    if (read_format & abi::kReadTimeEnabled) values.time_enabled = in.u64();
    if (read_format & abi::kReadTimeRunning) values.time_running = in.u64();
    values.entries = in.words(count, words).bytes();
    return values;
  }
  // One member: value, [enabled], [running], [id], [lost].
  const Bytes from_value = in.rest();
  const std::uint64_t value = in.u64();
  if (read_format & abi::kReadTimeEnabled) values.time_enabled = in.u64();
  if (read_format & abi::kReadTimeRunning) values.time_running = in.u64();
  const Bytes after_times = in.words(words - 1).bytes();
  if (in.failed()) return values;
  if (read_format & (abi::kReadTimeEnabled | abi::kReadTimeRunning)) {
    values.single = value;
    values.entries = after_times;
  } else {
    values.entries = from_value.first(words * sizeof value);
  }
  return values;
}

std::optional<Sample> parse_sample(const RecordView& record, const EventAttr& attr, FieldLog* log) {
  std::optional<Sample> sample(std::in_place);
  if (!parse_into(*sample, record, attr, log)) sample.reset();
  return sample;
}

void SampleParser::begin_sample(const EventAttr& attr) {
  if (attr.sample_type == sample_type_ && attr.branch_sample_type == branch_sample_type_) return;
  sample_ = {};
  sample_type_ = attr.sample_type;
  branch_sample_type_ = attr.branch_sample_type;
}

const Sample* SampleParser::parse(const RecordView& record, const EventAttr& attr) {
  begin_sample(attr);
  return parse_into(sample_, record, attr, nullptr) ? &sample_ : nullptr;
}

const Sample* SampleParser::parse_start(const RecordView& record, const EventAttr& attr) {
  begin_sample(attr);
  Cursor in = record.body();
  sample_.misc = record.misc;
  parse_fixed(in, attr, sample_);
  return in.failed() ? nullptr : &sample_;
}

std::optional<std::uint64_t> sample_time(const RecordView& record, const EventAttr& attr) {
  if (!attr.samples(abi::kSampleTime)) return std::nullopt;
  Cursor in = record.body();
  const std::uint64_t before = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid;
  in.skip(static_cast<std::uint64_t>(std::popcount(attr.sample_type & before)) * sizeof(std::uint64_t));
  const std::uint64_t time = in.u64();
  return in.failed() ? std::nullopt : std::optional(time);
}

std::size_t sample_id_size(const EventAttr& attr) {
  if (!attr.has(abi::kSampleIdAll)) return 0;
  return static_cast<std::size_t>(std::popcount(attr.sample_type & kTrailerFields)) * sizeof(std::uint64_t);
}

Bytes declared_bytes(const RecordView& record, std::size_t trailer) {
  // Bytes of the fields; of KSYMBOL those before its name.
  constexpr std::size_t kKsymbol = 16, kBpfEvent = 16;
  std::size_t end = kRecordHeaderSize;
  if (record.type == abi::kRecordBpfEvent) {
    end += kBpfEvent;
  } else if (record.type == abi::kRecordKsymbol && record.bytes.size() > end + kKsymbol) {
    const Bytes name = record.bytes.subspan(end + kKsymbol);
    const auto zero = std::ranges::find(name, std::byte{0});
    if (zero == name.end()) return record.bytes;
    const auto length = static_cast<std::size_t>(zero - name.begin()) + 1;
    end += kKsymbol + (length + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) * sizeof(std::uint64_t);
  } else {
    return record.bytes;
  }
  return record.bytes.first(std::min(record.bytes.size(), end + trailer));
}

SampleId parse_sample_id(const RecordView& record, const EventAttr& attr, FieldLog* log) {
  SampleId id;
  const Bytes trailer = trailer_of(record, attr);
  if (trailer.empty()) return id;
  Cursor in(trailer, record.order, log);
  const std::uint64_t type = attr.sample_type;
  if (type & abi::kSampleTid) {
    id.pid = in.u32();
    id.tid = in.u32();
  }
  if (type & abi::kSampleTime) id.time = in.u64();
  if (type & abi::kSampleId) id.id = in.u64();
  if (type & abi::kSampleStreamId) id.stream_id = in.u64();
  if (type & abi::kSampleCpu) {
    id.cpu = in.u32();
    in.u32();  // reserved
  }
  if (type & abi::kSampleIdentifier) id.id = in.u64();
  return id;
}

bool has_sound_trailer(const RecordView& record, const EventAttr& attr) {
  const Bytes trailer = trailer_of(record, attr);
  if (!attr.samples(abi::kSampleCpu) || trailer.empty()) return true;
  Cursor in(trailer, record.order);
  const std::uint64_t before = kTrailerFields & ~(abi::kSampleCpu | abi::kSampleIdentifier);
  in.skip(static_cast<std::uint64_t>(std::popcount(attr.sample_type & before)) * sizeof(std::uint64_t));
  in.u32();
  return in.u32() == 0;
}

void write_sample_id(ByteWriter& out, const SampleId& id, const EventAttr& attr) {
  if (!attr.has(abi::kSampleIdAll)) return;
  if (attr.samples(abi::kSampleTid)) out.u32(id.pid).u32(id.tid);
  if (attr.samples(abi::kSampleTime)) out.u64(id.time);
  if (attr.samples(abi::kSampleId)) out.u64(id.id);
  if (attr.samples(abi::kSampleStreamId)) out.u64(id.stream_id);
  if (attr.samples(abi::kSampleCpu)) out.u32(id.cpu).u32(0);
  if (attr.samples(abi::kSampleIdentifier)) out.u64(id.id);
}

std::optional<std::uint64_t> record_time(const RecordView& record, const EventAttr& attr) {
  if (record.type == abi::kRecordSample) return sample_time(record, attr);
  if (record.type >= abi::kRecordUserStart || !attr.samples(abi::kSampleTime)) return std::nullopt;
  const Bytes trailer = trailer_of(record, attr);
  if (trailer.empty()) return std::nullopt;
  Cursor in(trailer, record.order);
  if (attr.samples(abi::kSampleTid)) in.u64();
  return in.u64();
}

}  // namespace tacho::format
