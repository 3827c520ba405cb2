#include "format/record_search.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "format/compression.h"
#include "format/perf_abi.h"
#include "format/record.h"
#include "format/sample.h"
#include "format/section_pieces.h"

namespace tacho::format {

namespace {

constexpr std::uint32_t kMostTypes = 1024;          // more than there will ever be
constexpr std::uint32_t kMostPid = 1U << 22;        // PID_MAX_LIMIT of the kernel
constexpr std::uint32_t kMostCpu = 1U << 20;        // more than any kernel can be built for
constexpr std::uint32_t kNone = ~std::uint32_t{0};  // the kernel's -1: no process, no CPU
constexpr std::uint64_t kLatest = 1ULL << 62;       // ns: no clock is that far, and no address below
bool is_process(std::uint32_t id) { return id <= kMostPid || id == kNone; }

// The word of a sample that holds `bit`, counted from the end of its header.
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

// What can be said of perf's own records by their size alone, header included.
struct SizeRow {
  std::uint32_t type;
  std::size_t least, most;
};
constexpr std::size_t kAny = 65535;
// Others are not searched for: of the records that perf stat and perf sched write nothing is known that could
// not be anything, and nothing here acts on them.
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

bool is_searched_for(std::uint32_t user_type) {
  return std::ranges::find(kUserSizes, user_type, &SizeRow::type) != std::end(kUserSizes);
}

bool has_possible_size(const RecordView& record) {
  const auto row = std::ranges::find(kUserSizes, record.type, &SizeRow::type);
  return row != std::end(kUserSizes) && record.bytes.size() >= row->least && record.bytes.size() <= row->most;
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
  constexpr std::uint32_t kMostBytes = 4096;  // of an attr, and far more than any has
  const std::size_t whole = body.left();
  body.u32();
  const std::uint32_t size = body.u32();
  return size >= 64 && size <= kMostBytes && size % 8 == 0 && size <= whole && (whole - size) % 8 == 0;
}

bool is_user_record(const RecordView& record, bool& is_strong) {
  static const EventAttr kNoEvent;
  if (!has_possible_size(record)) return false;
  if (record.misc != 0 && record.type != abi::kRecordBuildId) return false;
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
  // Its ids are many, and a search that copies them for every candidate takes long.
  if (record.type == abi::kRecordHeaderAttr) return is_header_attr(body);
  const auto parsed = parse_record(record, kNoEvent);
  return parsed && unread_bytes(record, kNoEvent) == 0 && std::visit(IsPossible{}, *parsed);
}

// How many of the first bytes are 0: where a file system lost what was written, there are many.
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
  if (header.type == 0 || header.type >= kMostTypes || header.size < kRecordHeaderSize) return false;
  return header.type >= abi::kRecordUserStart || header.type == abi::kRecordSample || header.size % 8 == 0;
}

std::size_t simpleperf_record_size(const RecordHeader& header) {
  constexpr std::uint32_t kFirst = 32768, kTypes = 64;  // of which simpleperf of Android 10 has 9
  const bool is_possible = header.type >= kFirst && header.type - kFirst < kTypes && header.misc == 0 &&
                           header.size >= kRecordHeaderSize;
  return is_possible ? header.size : 0;
}

bool RecordSearch::is_known_header(const RecordHeader& header) const {
  return is_possible(header) && header.has_possible_misc() && !record_name(header.type).empty();
}

// What the kernel says with every record about where it comes from.
bool RecordSearch::has_possible_ids(const RecordView& record, const EventAttr& attr) const {
  if (record.type != abi::kRecordSample) {
    if (!has_sound_trailer(record, attr)) return false;
    const SampleId id = parse_sample_id(record, attr);
    const bool has_time = attr.has(abi::kSampleIdAll) && attr.samples(abi::kSampleTime);
    return is_process(id.pid) && is_process(id.tid) && (id.cpu <= kMostCpu || id.cpu == kNone) &&
           (!has_time || id.time < kLatest);
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
    if ((cpu > kMostCpu && cpu != kNone) || in.u32() != 0) return false;
  }
  return !attr.samples(abi::kSampleTime) || word(abi::kSampleTime).u64() < kLatest;
}

bool RecordSearch::is_sound(Bytes bytes, bool* is_strong) const {
  bool strong = false;
  const RecordView record = whole_record(bytes, order_);
  const RecordHeader header = record_header(bytes, order_);
  if (header.size != bytes.size() || !is_possible(header) || record_name(header.type).empty()) return false;
  if (record.type >= abi::kRecordUserStart) {
    const bool is_sound = is_user_record(record, strong);
    if (is_strong != nullptr) *is_strong = is_sound && strong;
    return is_sound;
  }
  const auto event = events_->event_of(record);
  if (!event) return false;
  const EventAttr& attr = (*events_)[*event].attr;
  if (!has_possible_ids(record, attr)) return false;
  // An event newer than this program has fields at the end of its samples that are not known.
  const bool is_all_known = (attr.sample_type & ~abi::kKnownSampleTypes) == 0;
  if (record.type == abi::kRecordSample) {
    const auto sample = parse_sample(record, attr);
    if (!sample || (is_all_known && sample->unread != 0)) return false;
    if (header.size % 8 != 0 && sample->user_stack.size() % 8 == 0) return false;
  } else if (!parse_record(record, attr) || unread_bytes(record, attr) != 0) {
    return false;
  }
  const bool has_words = record.type == abi::kRecordSample || attr.has(abi::kSampleIdAll);
  const auto told = attr.sample_type & (abi::kSampleTid | abi::kSampleTime | abi::kSampleCpu |
                                        abi::kSampleIdentifier | abi::kSampleId);
  if (is_strong != nullptr) *is_strong = has_words && std::popcount(told) >= 2;
  return true;
}

bool RecordSearch::leads_on(SearchArea& area, std::size_t size) const {
  constexpr int kMostUnknown = 16;  // records of unknown types one behind the other
  for (int i = 0; i < kMostUnknown; ++i) {
    const Bytes bytes = area.have(size + kRecordHeaderSize);
    if (bytes.size() <= size) return bytes.size() == size;
    if (bytes.size() < size + kRecordHeaderSize) return false;
    const RecordHeader next = record_header(bytes.subspan(size), order_);
    if (simpleperf_record_size(next) != 0) return true;
    if (!is_possible(next)) return false;
    if (!record_name(next.type).empty()) {
      if (!is_searched_for(next.type)) return next.has_possible_misc();
      // perf's own: their headers are less telling than the kernel's.
      const Bytes more = area.have(size + next.size);
      return more.size() < size + next.size || is_sound(more.subspan(size, next.size));
    }
    size += next.size;
  }
  return false;
}

// A record at `at` that is beyond doubt, or from which sound ones lead to one that is or to the end, or which
// is the first of so many. `size` is set to its size.
bool RecordSearch::is_accepted(SearchArea& area, std::size_t at, std::size_t* size) const {
  constexpr int kEnough = 4;  // sound records one behind the other
  for (int i = 0; i < kEnough; ++i) {
    Bytes bytes = area.have(at + kRecordHeaderSize);
    if (bytes.size() < at + kRecordHeaderSize) return i > 0 && bytes.size() == at;
    const RecordHeader header = record_header(bytes.subspan(at), order_);
    if (!is_known_header(header)) return false;
    bytes = area.have(at + header.size);
    bool is_strong = false;
    if (bytes.size() < at + header.size || !is_sound(bytes.subspan(at, header.size), &is_strong))
      return false;
    if (i == 0 && size != nullptr) *size = header.size;
    if (is_strong) return true;
    at += header.size;
  }
  return true;
}

std::optional<std::size_t> RecordSearch::swallowed(SearchArea& area, std::size_t size) const {
  // A place that was tried leads nowhere, and so does all that leads to it.
  std::vector<bool> is_tried(size, false);
  for (std::size_t from = 1; from < size; ++from) {
    std::size_t at = from;
    while (at < size && !is_tried[at]) {
      is_tried[at] = true;
      std::size_t one = 0;
      if (!is_accepted(area, at, &one)) break;
      at += one;
      if (at > size) return from;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> RecordSearch::next_sound(SearchArea& area, std::size_t from,
                                                    std::size_t until) const {
  for (std::size_t at = from; at < until; ++at) {
    const Bytes bytes = area.have(at + kRecordHeaderSize);
    if (bytes.size() < at + kRecordHeaderSize) return std::nullopt;
    const std::size_t last = std::min(until - 1, bytes.size() - kRecordHeaderSize);
    at = next_known_header(bytes, at, last);
    if (is_accepted(area, at, nullptr)) return at;
  }
  return std::nullopt;
}

// The first place from `at` on where a record may begin, by its first 8 bytes; `last` when there is none
// before.
std::size_t RecordSearch::next_known_header(Bytes bytes, std::size_t at, std::size_t last) const {
  for (; at < last; ++at) {
    const std::size_t zeros = zeros_from(bytes.subspan(at));
    if (zeros >= sizeof(RecordHeader::type))
      at += zeros - sizeof(RecordHeader::type);  // no type is 0
    else if (is_known_header(record_header(bytes.subspan(at), order_)))
      break;
  }
  return std::min(at, last);
}

}  // namespace tacho::format
