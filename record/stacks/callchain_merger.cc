#include "record/stacks/callchain_merger.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kLargestRecord = 0xfff8;  // bytes; sizes have 16 bits
constexpr std::size_t kMostWaiting = 16;        // walks; interrupts nest three deep at most
constexpr std::size_t kSizeOffset = sizeof(std::uint32_t) + sizeof(std::uint16_t);  // after type and misc
constexpr std::uint16_t kModeMask = 7, kModeUser = 2;

std::size_t read_size(format::Cursor in, std::uint64_t read_format) {
  const auto times =
      static_cast<std::size_t>(std::popcount(read_format & (abi::kReadTimeEnabled | abi::kReadTimeRunning)));
  const auto more = static_cast<std::size_t>(std::popcount(read_format & (abi::kReadId | abi::kReadLost)));
  if ((read_format & abi::kReadGroup) == 0) return kWord * (1 + times + more);
  const std::uint64_t members = std::min<std::uint64_t>(in.u64(), kLargestRecord);
  return kWord * (1 + times + static_cast<std::size_t>(members) * (1 + more));
}

constexpr std::uint64_t kWords = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid |
                                 abi::kSampleTime | abi::kSampleAddr | abi::kSampleId | abi::kSampleStreamId |
                                 abi::kSampleCpu | abi::kSamplePeriod;

}  // namespace

std::optional<std::size_t> callchain_offset(format::Bytes body, const format::EventAttr& attr) {
  std::size_t offset = kWord * static_cast<std::size_t>(std::popcount(attr.sample_type & kWords));
  if (attr.samples(abi::kSampleRead) && offset <= body.size())
    offset += read_size(format::Cursor(body.subspan(offset)), attr.read_format);
  if (!attr.samples(abi::kSampleCallchain) || offset + kWord > body.size()) return std::nullopt;
  return offset;
}

void CallchainMerger::add_event(std::uint64_t id, const format::EventAttr& attr) {
  events_[id] = {attr, false, 0};
}
void CallchainMerger::add_walks(std::uint64_t id, const format::EventAttr& attr, std::uint64_t sample_id) {
  events_[id] = {attr, true, sample_id};
}

void CallchainMerger::put_word(std::uint64_t word) { put_bytes(std::as_bytes(std::span(&word, 1))); }

bool CallchainMerger::merge(std::vector<std::byte>& records, std::size_t begin, Waiting& waiting,
                            const std::function<std::uint64_t(std::uint64_t)>& lost_walks,
                            std::vector<Deferred>* deferred) {
  out_.clear();
  deferred_ = deferred;
  format::Bytes rest = format::Bytes(records).subspan(begin);
  while (!rest.empty()) {
    format::Cursor in(rest);
    const std::uint32_t type = in.u32();
    in.u16();  // misc
    const std::uint16_t size = in.u16();
    if (in.failed() || size < format::kRecordHeaderSize || size > rest.size()) return false;
    const format::Bytes record = rest.first(size), body = record.subspan(format::kRecordHeaderSize);
    rest = rest.subspan(size);
    if (type == abi::kRecordLost) {
      counts_.unused += waiting.size();
      waiting.clear();
      put_lost(record, lost_walks);
      continue;
    }
    const auto event = type == abi::kRecordSample ? events_.find(format::Cursor(body).u64()) : events_.end();
    if (event == events_.end()) {
      put_bytes(record);
    } else if (event->second.is_walk) {
      take_walk(body, event->second, waiting);
    } else {
      put_sample(record, event->second, waiting);
    }
  }
  records.reserve(begin + out_.size());  // before anything is removed
  records.resize(begin);
  records.insert(records.end(), out_.begin(), out_.end());
  return true;
}

void CallchainMerger::drop_walks(std::vector<std::byte>& records, std::size_t begin) const {
  std::size_t to = begin;
  for (std::size_t at = begin; records.size() - at >= format::kRecordHeaderSize;) {
    format::Cursor in(format::Bytes(records).subspan(at));
    const std::uint32_t type = in.u32();
    in.u16();  // misc
    const std::uint16_t size = in.u16();
    if (size < format::kRecordHeaderSize || size > records.size() - at) return;
    const auto event = type == abi::kRecordSample ? events_.find(in.u64()) : events_.end();
    if (event == events_.end() || !event->second.is_walk) {
      std::memmove(records.data() + to, records.data() + at, size);
      to += size;
    }
    at += size;
  }
  records.resize(to);
}

// A few words, then RAW: its size, and the program's bytes.
void CallchainMerger::take_walk(format::Bytes body, const Event& event, Waiting& waiting) {
  format::Cursor in(body);
  in.skip(kWord * static_cast<std::size_t>(std::popcount(event.attr.sample_type & kWords)));
  in.u32();
  Walk walk;
  walk.tid = in.u32();
  const std::uint16_t end = in.u16();
  walk.end = end & static_cast<std::uint16_t>(~TACHO_STACK_HAS_COPY);
  const std::uint16_t count = in.u16();
  const format::U64Array frames = in.words(count);
  if ((end & TACHO_STACK_HAS_COPY) != 0) walk.copy = in.u64();
  if (in.failed() || walk.end >= TACHO_END_COUNT) return;
  if (waiting.size() == kMostWaiting) {
    waiting.erase(waiting.begin());
    ++counts_.unused;
  }
  walk.frames.reserve(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) walk.frames.push_back(frames[i]);
  waiting.push_back(std::move(walk));
}

void CallchainMerger::put_sample(format::Bytes record, const Event& event, Waiting& waiting) {
  const format::Bytes body = record.subspan(format::kRecordHeaderSize);
  const auto offset = callchain_offset(body, event.attr);
  if (!offset) return put_bytes(record);
  format::Cursor fields(body);
  fields.u64();
  const std::uint64_t ip = fields.u64();
  const std::uint32_t process = fields.u32(), tid = fields.u32();
  const std::uint64_t time = event.attr.samples(abi::kSampleTime) ? fields.u64() : 0;
  std::uint16_t misc = 0;
  std::memcpy(&misc, record.data() + sizeof(std::uint32_t), sizeof misc);
  const bool is_user = (misc & kModeMask) == kModeUser;

  // The last walk of the thread: the sample of an interrupt comes before that of the interrupted code.
  Walk walk{tid, TACHO_END_COUNT, {}, 0};
  const auto last = std::ranges::find(waiting.rbegin(), waiting.rend(), tid, &Walk::tid);
  if (last != waiting.rend()) {
    walk = std::move(*last);
    waiting.erase(std::prev(last.base()));
  }
  if (is_user && !walk.frames.empty() && walk.frames.front() != ip) walk.end = TACHO_END_COUNT;
  if (walk.end == TACHO_END_COUNT) {
    walk.frames.clear();
    if (is_user) walk.frames.push_back(ip);
    counts_.without += is_user ? 1 : 0;  // in the kernel it may be a kernel thread, without a user part
    return put_with_stack(record, *offset, walk);
  }
  if (walk.copy != 0 && deferred_ != nullptr)
    return deferred_->push_back({{record.begin(), record.end()}, std::move(walk), process, time});
  ++counts_.ends[walk.end];
  put_with_stack(record, *offset, walk);
}

void CallchainMerger::write_finished(const Deferred& sample, std::vector<std::byte>& records) {
  const format::Bytes record(sample.record), body = record.subspan(format::kRecordHeaderSize);
  const auto event = events_.find(format::Cursor(body).u64());
  const auto offset = event == events_.end() ? std::nullopt : callchain_offset(body, event->second.attr);
  out_.clear();
  Walk walk = sample.walk;
  ++counts_.ends[walk.end];
  counts_.finished += walk.end <= TACHO_END_FRAME_ZERO ? 1 : 0;
  if (offset)
    put_with_stack(record, *offset, walk);
  else
    put_bytes(record);
  records.insert(records.end(), out_.begin(), out_.end());
}

// `chain_offset`: the offset of the call chain in the body.
void CallchainMerger::put_with_stack(format::Bytes record, std::size_t chain_offset, Walk& walk) {
  const format::Bytes body = record.subspan(format::kRecordHeaderSize);
  const std::size_t room = (kLargestRecord - std::min(kLargestRecord, record.size())) / kWord;
  if (walk.frames.empty() || room < 2) return put_bytes(record);
  if (walk.frames.size() > room - 1) walk.frames.resize(room - 1);
  counts_.frames += walk.frames.size();

  std::uint64_t known = 0;
  std::memcpy(&known, body.data() + chain_offset, sizeof known);
  const std::size_t addresses_offset = chain_offset + kWord;
  if (known > (body.size() - addresses_offset) / kWord) return put_bytes(record);
  const std::size_t more = 1 + walk.frames.size();
  const std::size_t start = out_.size();
  const std::size_t end_of_chain = addresses_offset + static_cast<std::size_t>(known) * kWord;
  put_bytes(record.first(format::kRecordHeaderSize + chain_offset));
  put_word(known + more);
  put_bytes(body.subspan(addresses_offset, end_of_chain - addresses_offset));
  put_word(abi::kContextUser);
  put_bytes(std::as_bytes(std::span(walk.frames)));
  put_bytes(body.subspan(end_of_chain));
  const auto size = static_cast<std::uint16_t>(record.size() + more * kWord);
  std::memcpy(out_.data() + start + kSizeOffset, &size, sizeof size);
}

// {id, lost}: a reader counts these as events.
void CallchainMerger::put_lost(format::Bytes record,
                               const std::function<std::uint64_t(std::uint64_t)>& lost_walks) {
  constexpr std::size_t kCount = format::kRecordHeaderSize + kWord;
  if (record.size() < kCount + kWord) return put_bytes(record);
  std::uint64_t lost = 0;
  std::memcpy(&lost, record.data() + kCount, sizeof lost);
  const std::uint64_t walks = std::min(lost, lost_walks(lost));
  if (walks == lost) return;
  lost -= walks;
  std::uint64_t id = 0;
  std::memcpy(&id, record.data() + format::kRecordHeaderSize, sizeof id);
  const auto event = events_.find(id);
  const bool is_walks = event != events_.end() && event->second.is_walk;
  put_bytes(record.first(format::kRecordHeaderSize));
  put_word(is_walks ? event->second.sample_id : id);
  put_word(lost);
  const format::Bytes trailer = record.subspan(kCount + kWord);
  if (!is_walks || trailer.size() < kWord) return put_bytes(trailer);
  put_bytes(trailer.first(trailer.size() - kWord));  // the id is last
  put_word(event->second.sample_id);
}

}  // namespace tacho::record
