// A SAMPLE record's fields, by sample_type and read_format. Views point into the record's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "format/records/record_view.h"

namespace tacho::format {

// Values of an event or a group of events (READ records and PERF_SAMPLE_READ).
struct ReadValues {
  std::uint64_t time_enabled = 0;       // ns
  std::uint64_t time_running = 0;       // ns
  Bytes entries;                        // members of {value, [id], [lost]}: use entry()
  std::optional<std::uint64_t> single;  // the only member's value, if times are between it and its id
  std::uint64_t read_format = 0;
  std::endian order = std::endian::native;

  struct Entry {
    std::uint64_t value = 0, id = 0, lost = 0;
  };
  std::size_t size() const;
  Entry entry(std::size_t index) const;
};

// One branch: abi layout {from, to, flags}.
struct BranchEntry {
  std::uint64_t from = 0, to = 0, flags = 0;
};

// Convert a branch's flags, bit fields that machines of the other byte order number from the other end of the
// word.
std::uint64_t branch_flags_from_foreign(std::uint64_t flags);
std::uint64_t branch_flags_to_foreign(std::uint64_t flags);

struct Registers {
  std::uint64_t abi = 0;   // 0 none, 1 32-bit, 2 64-bit
  std::uint64_t mask = 0;  // a bit for each register
  U64Array values;         // one for each bit of mask
};

// Fields that the event does not sample have their defaults; see the event's sample_type.
struct Sample {
  std::uint64_t identifier = 0;  // IDENTIFIER or ID
  std::uint64_t ip = 0;
  std::uint32_t pid = ~0U, tid = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint64_t addr = 0;
  std::uint64_t stream_id = 0;
  std::uint32_t cpu = ~0U;
  std::uint64_t period = 0;  // attr.sample_period if the record has none
  ReadValues read;
  U64Array callchain;  // leaf first, with abi::ContextMark entries
  Bytes raw;           // with the kernel's padding
  std::uint64_t branch_hw_index = ~std::uint64_t{0};
  U64Array branches;         // 3 words each: from, to, flags
  U64Array branch_counters;  // one word for each branch, if sampled
  Registers user_registers;
  Bytes user_stack;          // the valid part
  std::uint64_t weight = 0;  // WEIGHT, or var1 of WEIGHT_STRUCT
  std::uint16_t weight2 = 0, weight3 = 0;
  std::uint64_t data_source = 0;
  std::uint64_t transaction = 0;
  Registers interrupt_registers;
  std::uint64_t phys_addr = 0;
  std::uint64_t cgroup = 0;
  std::uint64_t data_page_size = 0;
  std::uint64_t code_page_size = 0;
  Bytes aux;
  std::uint16_t misc = 0;  // of the record: cpumode
  std::size_t unread = 0;  // bytes after the last field; 0 in a sound record

  BranchEntry branch(std::size_t index) const {
    const std::uint64_t flags = branches[3 * index + 2];
    const bool is_native = branches.order() == std::endian::native;
    return {branches[3 * index], branches[3 * index + 1],
            is_native ? flags : branch_flags_from_foreign(flags)};
  }
  std::size_t branch_count() const { return branches.size() / 3; }
};

// nullopt: the record is too short. Fields are logged in `log`, if given.
std::optional<Sample> parse_sample(const RecordView& record, const EventAttr& attr, FieldLog* log = nullptr);

// The same, reusing one Sample, since clearing one for each record takes longer than parsing.
class SampleParser {
 public:
  // Null: the record is too short. Valid until the next call.
  const Sample* parse(const RecordView& record, const EventAttr& attr);
  // Only the first fields: identifier, ip, pid, tid, time, addr, stream_id, cpu and period. The others are
  // those of an earlier sample.
  const Sample* parse_start(const RecordView& record, const EventAttr& attr);

 private:
  void begin_sample(const EventAttr& attr);
  Sample sample_;
  // The sample_type of the fields that were set; others have their defaults.
  std::uint64_t sample_type_ = 0, branch_sample_type_ = 0;
};

// Only the time, in ns; nullopt: the event has none.
std::optional<std::uint64_t> sample_time(const RecordView& record, const EventAttr& attr);

// The trailer of kernel records other than SAMPLE, with attr.sample_id_all. In synthesized records it is
// zero.
struct SampleId {
  std::uint32_t pid = ~0U, tid = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint64_t id = 0;
  std::uint64_t stream_id = 0;
  std::uint32_t cpu = ~0U;
};
// Bytes the trailer takes; 0 without sample_id_all.
std::size_t sample_id_size(const EventAttr& attr);
// A kernel record up to the end of its trailer. If several recorders run, Linux (at least up to 6.18) makes
// KSYMBOL and BPF_EVENT records too long, by the size of the trailers for earlier recorders; the extra bytes,
// old contents of the ring, are removed.
Bytes declared_bytes(const RecordView& record, std::size_t trailer);
// Whether the reserved word after the CPU is zero; false: the bytes are not a trailer.
bool has_sound_trailer(const RecordView& record, const EventAttr& attr);
SampleId parse_sample_id(const RecordView& record, const EventAttr& attr, FieldLog* log = nullptr);
// Appends the trailer for records of `attr`'s event, with the fields that it has.
void write_sample_id(ByteWriter& out, const SampleId& id, const EventAttr& attr);
// The time of any kernel record, in the sample or the trailer; nullopt: it has none.
std::optional<std::uint64_t> record_time(const RecordView& record, const EventAttr& attr);

// Values in a READ record's body or a sample; advances `in`.
ReadValues parse_read_values(Cursor& in, std::uint64_t read_format);

}  // namespace tacho::format
