#include "format/container/record_search.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "format/codec/compression.h"
#include "format/container/feature_sections.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/sample.h"

namespace tacho::format {

namespace {

constexpr std::uint32_t kMostTypes = 1024;          // of records; far more than exist
constexpr std::uint32_t kMostPid = 1U << 22;        // PID_MAX_LIMIT of the kernel
constexpr std::uint32_t kMostCpu = 1U << 20;        // more than any kernel can be built for
constexpr std::uint32_t kNone = ~std::uint32_t{0};  // the kernel's -1: no process, no CPU
constexpr std::uint64_t kLatest = 1ULL << 62;       // ns: later than any clock, below any kernel address
bool is_process(std::uint32_t id) { return id <= kMostPid || id == kNone; }
bool is_cpu(std::uint32_t cpu) { return cpu <= kMostCpu || cpu == kNone; }

// The index, in 8-byte words after the header, of the sample field for `bit`.
std::size_t word_of(const EventAttr& attr, abi::SampleType bit) {
  constexpr std::uint64_t kOrder[] = {abi::kSampleIdentifier, abi::kSampleIp,   abi::kSampleTid,
                                      abi::kSampleTime,       abi::kSampleAddr, abi::kSampleId,
                                      abi::kSampleStreamId,   abi::kSampleCpu};
  std::size_t word = 0;
  for (const std::uint64_t field : kOrder) {
    if (field == bit) break;
    if ((attr.sample_type & field) != 0) ++word;
  }
  return word;
}

// Sizes of perf's synthesized records, with header.
struct SizeRow {
  std::uint32_t type;
  std::size_t least, most;
};
constexpr std::size_t kAny = 65535;
// The search accepts no other types: records of perf stat and perf sched have no field to check, and no view
// uses them.
constexpr SizeRow kUserSizes[] = {
    {abi::kRecordHeaderAttr, 72, kAny},   {abi::kRecordTracingData, 12, 16},
    {abi::kRecordBuildId, 40, 36 + 4096}, {abi::kRecordFinishedRound, 8, 8},
    {abi::kRecordIdIndex, 16, kAny},      {abi::kRecordAuxtraceInfo, 16, 8192},
    {abi::kRecordAuxtrace, 48, 48},       {abi::kRecordThreadMap, 16, kAny},
    {abi::kRecordCpuMap, 12, kAny},       {abi::kRecordEventUpdate, 24, kAny},
    {abi::kRecordTimeConv, 32, 64},       {abi::kRecordHeaderFeature, 16, kAny},
    {abi::kRecordCompressed, 9, kAny},    {abi::kRecordFinishedInit, 8, 8},
    {abi::kRecordCompressed2, 17, kAny},
};

const SizeRow* size_row(std::uint32_t type) {
  const auto row = std::ranges::find(kUserSizes, type, &SizeRow::type);
  return row == std::end(kUserSizes) ? nullptr : row;
}

// Whether a record of a known type may have this size.
bool can_be(const RecordHeader& header) {
  const SizeRow* const row = size_row(header.type);
  return is_possible(header) && !record_name(header.type).empty() &&
         (row == nullptr || (header.size >= row->least && header.size <= row->most));
}

// Whether the search accepts the header: a type in the table, or a kernel record. The kernel leaves the bits
// of misc between the CPU mode and the type's own bits zero.
bool is_searched_for(const RecordHeader& header) {
  constexpr std::uint16_t kUnused = 0x0FF8;
  const bool is_kernels = header.type < abi::kRecordUserStart;
  return can_be(header) && (is_kernels ? (header.misc & kUnused) == 0 : size_row(header.type) != nullptr);
}

struct IsPossible {
  bool operator()(const HeaderFeatureRecord& r) const { return r.feature < abi::kFeatureCount; }
  bool operator()(const EventUpdateRecord& r) const { return r.kind <= 3 || r.kind == kSectionPiece; }
  bool operator()(const BuildIdRecord& r) const {
    return !r.build_id.empty() && !r.filename.empty() && is_process(static_cast<std::uint32_t>(r.pid));
  }
  template <class Other>
  bool operator()(const Other&) const {
    return true;
  }
};

bool is_header_attr(Cursor body) {
  constexpr std::uint32_t kMostBytes = 4096;  // of an attr; far more than any has
  const std::size_t whole = body.left();
  body.u32();
  const std::uint32_t size = body.u32();
  return size >= 64 && size <= kMostBytes && size % 8 == 0 && size <= whole && (whole - size) % 8 == 0;
}

bool is_user_record(const RecordView& record, bool& is_strong) {
  static const EventAttr kNoEvent;
  Cursor body = record.body();
  if (record.type == abi::kRecordCompressed) {
    is_strong = begins_as_frame(body.rest());
    return true;
  }
  if (record.type == abi::kRecordCompressed2) {
    const std::uint64_t packed = body.u64();
    is_strong = begins_as_frame(body.rest());
    return packed <= body.left() && body.left() - packed < 8;
  }
  if (record.type == abi::kRecordCpuMap && body.u16() > 2) return false;
  if (record.type == abi::kRecordAuxtrace) {
    body.skip(28);  // size, offset, reference and index
    const std::uint32_t tid = body.u32(), cpu = body.u32();
    return is_process(tid) && is_cpu(cpu);
  }
  // Parsed without its ids: a search that copies them for every candidate takes long.
  if (record.type == abi::kRecordHeaderAttr) return is_header_attr(body);
  const auto parsed = parse_record(record, kNoEvent);
  return parsed && unread_bytes(record, kNoEvent) == 0 && std::visit(IsPossible{}, *parsed);
}

// The number of zero bytes at the start: a file system that lost writes leaves long runs of them.
std::size_t zeros_from(Bytes bytes) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word != 0) break;
  }
  while (at < bytes.size() && bytes[at] == std::byte{0}) ++at;
  return at;
}

}  // namespace

RecordHeader record_header(Bytes bytes, std::endian order) {
  Cursor in(bytes, order);
  RecordHeader header;
  header.type = in.u32();
  header.misc = in.u16();
  header.size = in.u16();
  return header;
}

bool is_possible(const RecordHeader& header) {
  if (header.size < kRecordHeaderSize) return false;
  if (is_simpleperf_type(header.type)) return header.misc == 0;  // misc is the upper half of the size
  if (header.type == 0 || header.type >= kMostTypes) return false;
  return header.type >= abi::kRecordUserStart || header.type == abi::kRecordSample || header.size % 8 == 0;
}

bool is_simpleperf_type(std::uint32_t type) {
  constexpr std::uint32_t kFirst = 32768, kTypes = 64;  // Android 10's simpleperf uses 9 of them
  return type - kFirst < kTypes;
}

// Whether pid, tid, CPU and time of a kernel record have possible values.
bool RecordSearch::has_possible_ids(const RecordView& record, const EventAttr& attr) const {
  if (record.type != abi::kRecordSample) {
    if (!has_sound_trailer(record, attr)) return false;
    const SampleId id = parse_sample_id(record, attr);
    const bool has_time = attr.has(abi::kSampleIdAll) && attr.samples(abi::kSampleTime);
    return is_process(id.pid) && is_process(id.tid) && is_cpu(id.cpu) && (!has_time || id.time < kLatest);
  }
  const auto word = [&](abi::SampleType bit) {
    Cursor in = record.body();
    in.skip(8 * word_of(attr, bit));
    return in;
  };
  if (attr.samples(abi::kSampleTid)) {
    Cursor in = word(abi::kSampleTid);
    if (!is_process(in.u32()) || !is_process(in.u32())) return false;
  }
  if (attr.samples(abi::kSampleCpu)) {
    Cursor in = word(abi::kSampleCpu);
    const std::uint32_t cpu = in.u32();
    if (!is_cpu(cpu) || in.u32() != 0) return false;
  }
  return !attr.samples(abi::kSampleTime) || word(abi::kSampleTime).u64() < kLatest;
}

bool RecordSearch::is_sound(Bytes bytes, bool* is_strong) const {
  bool strong = false;
  const RecordView record = whole_record(bytes, order_);
  const RecordHeader header = record_header(bytes, order_);
  if (header.size != bytes.size() || !can_be(header)) return false;
  if (record.type >= abi::kRecordUserStart) {
    const bool is_sound = is_user_record(record, strong);
    if (is_strong != nullptr) *is_strong = is_sound && strong;
    return is_sound;
  }
  const auto event = events_->event_of(record);
  if (!event) return false;
  const EventAttr& attr = (*events_)[*event].attr;
  if (!has_possible_ids(record, attr)) return false;
  // Samples of an event with unknown sample_type bits have unknown fields at the end.
  const bool is_all_known = (attr.sample_type & ~abi::kKnownSampleTypes) == 0;
  if (record.type == abi::kRecordSample) {
    const auto sample = parse_sample(record, attr);
    if (!sample || (is_all_known && sample->unread != 0)) return false;
    if (header.size % 8 != 0 && sample->user_stack.size() % 8 == 0) return false;
  } else if (!parse_record(record, attr) || unread_bytes(record, attr) != 0) {
    return false;
  }
  const bool has_words = record.type == abi::kRecordSample || attr.has(abi::kSampleIdAll);
  const auto words = attr.sample_type & (abi::kSampleTid | abi::kSampleTime | abi::kSampleCpu |
                                         abi::kSampleIdentifier | abi::kSampleId);
  if (is_strong != nullptr) *is_strong = has_words && std::popcount(words) >= 2;
  return true;
}

std::optional<std::size_t> RecordSearch::damaged(const SearchArea& have, std::size_t whole) const {
  const RecordHeader header = record_header(have(whole), order_);
  const bool is_kernels = header.type < abi::kRecordUserStart;
  const bool is_odd = is_kernels && header.size % 8 != 0;
  const bool is_known = !record_name(header.type).empty();
  const bool is_doubted = is_known && (is_kernels ? is_odd || header.size >= kLargeRecord : !can_be(header));
  const bool is_followed = leads_on(have, whole);
  const bool is_whole = (is_followed && !is_doubted) || is_sound(have(whole).first(header.size));
  if (is_followed && is_whole) return 0;
  if (const auto next = swallowed(have, whole)) return next;
  return is_whole || (is_followed && !is_odd) ? std::optional<std::size_t>(0) : std::nullopt;
}

bool RecordSearch::leads_on(const SearchArea& have, std::size_t size) const {
  constexpr int kMostUnknown = 16;  // consecutive records of unknown types
  for (int i = 0; i < kMostUnknown; ++i) {
    const Bytes bytes = have(size + kRecordHeaderSize);
    if (bytes.size() <= size) return bytes.size() == size;
    if (bytes.size() < size + kRecordHeaderSize) return false;
    const RecordHeader next = record_header(bytes.subspan(size), order_);
    if (!is_possible(next)) return false;
    if (!record_name(next.type).empty()) {
      if (next.type < abi::kRecordUserStart) return true;
      // Bytes that look like a perf record's header are common (0x400000): check the fields too.
      const Bytes more = have(size + next.size);
      return more.size() < size + next.size || is_sound(more.subspan(size, next.size));
    }
    size += next.size;
  }
  return true;
}

// Whether a sound record begins at `at`: one that is certain, or the first of consecutive plausible records
// that lead to a certain one or to the end, or are kEnough. Sets `size` to the record's size.
bool RecordSearch::is_accepted(const SearchArea& have, std::size_t at, std::size_t* size) const {
  constexpr int kEnough = 4;  // consecutive plausible records
  for (int i = 0; i < kEnough; ++i) {
    Bytes bytes = have(at + kRecordHeaderSize);
    if (bytes.size() < at + kRecordHeaderSize) return i > 0 && bytes.size() == at;
    const RecordHeader header = record_header(bytes.subspan(at), order_);
    if (!is_searched_for(header)) return false;
    bytes = have(at + header.size);
    bool is_strong = false;
    if (bytes.size() < at + header.size || !is_sound(bytes.subspan(at, header.size), &is_strong))
      return false;
    if (i == 0 && size != nullptr) *size = header.size;
    if (is_strong) return true;
    at += header.size;
  }
  return true;
}

// Looks inside a doubtful record for records that continue after its end: then bytes of the record are
// missing, and its size covers the start of the next one.
std::optional<std::size_t> RecordSearch::swallowed(const SearchArea& have, std::size_t size) const {
  // Offsets that failed: a series of records that reaches one of them fails as well.
  std::vector<bool> is_tried(size, false);
  for (std::size_t from = 1; from < size; ++from) {
    std::size_t at = from;
    while (at < size && !is_tried[at]) {
      is_tried[at] = true;
      std::size_t one = 0;
      if (!is_accepted(have, at, &one)) break;
      at += one;
      if (at > size) return from;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> RecordSearch::next_sound(const SearchArea& have, std::size_t from,
                                                    std::size_t until) const {
  for (std::size_t at = from; at < until; ++at) {
    const Bytes bytes = have(at + kRecordHeaderSize);
    if (bytes.size() < at + kRecordHeaderSize) return std::nullopt;
    const std::size_t last = std::min(until - 1, bytes.size() - kRecordHeaderSize);
    at = next_known_header(bytes, at, last);
    if (is_accepted(have, at, nullptr)) return at;
  }
  return std::nullopt;
}

// The first offset in [at, last) whose 8 bytes may be a record header; `last` if there is none.
std::size_t RecordSearch::next_known_header(Bytes bytes, std::size_t at, std::size_t last) const {
  for (; at < last; ++at) {
    const std::size_t zeros = zeros_from(bytes.subspan(at));
    if (zeros >= sizeof(RecordHeader::type))
      at += zeros - sizeof(RecordHeader::type);  // no type is 0
    else if (is_searched_for(record_header(bytes.subspan(at), order_)))
      break;
  }
  return std::min(at, last);
}

}  // namespace tacho::format
