#include "format/record_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "format/perf_abi.h"
#include "format/record.h"

namespace tacho::format {

namespace {

// Read at a time: large enough that calls do not count, small enough to stay in the second-level cache.
constexpr std::size_t kChunk = 1024 * 1024;

bool is_compressed(std::uint32_t type) {
  return type == abi::kRecordCompressed || type == abi::kRecordCompressed2;
}

// No record has such a header, however new its type: the kernel's sizes are multiples of 8, perf's own ones
// need not be, but those of types still unknown to us are taken for granted only when they are.
bool is_impossible(std::uint32_t type, std::size_t size) {
  constexpr std::uint32_t kMoreTypesThanEver = 1024;
  if (size < kRecordHeaderSize || type >= kMoreTypesThanEver) return true;
  return size % 8 != 0 && (type < abi::kRecordUserStart || record_name(type).empty());
}

// Could a record's header look like this? Used only to find the way back after a broken one.
bool is_plausible(const RecordView& record, std::size_t size) {
  return !is_impossible(record.type, size) && !record_name(record.type).empty();
}

}  // namespace

RecordStream::RecordStream(int fd, std::uint64_t offset, std::uint64_t size, std::endian order,
                           std::size_t inflate_limit, Diagnostics& diagnostics)
    : fd_(fd),
      order_(order),
      inflate_limit_(inflate_limit),
      diagnostics_(&diagnostics),
      offset_(offset),
      unread_(size),
      may_look_ahead_(size != kUntilTheEnd) {}

// A block that nobody else keeps: one of before, whose memory is in the caches already, or a new one.
std::shared_ptr<Block> RecordStream::free_block() {
  constexpr std::size_t kMostUsed = 4;
  for (const std::shared_ptr<Block>& block : used_) {
    if (block.use_count() != 1) continue;
    if (block->bytes.capacity() > 2 * kChunk) block->bytes = {};  // grown for something large
    block->bytes.clear();
    return block;
  }
  auto block = std::make_shared<Block>();
  if (used_.size() < kMostUsed) {
    used_.push_back(block);
  } else {
    used_[oldest_used_] = block;
    oldest_used_ = (oldest_used_ + 1) % kMostUsed;
  }
  return block;
}

// Makes `size` bytes stand in the outer block from at_ on. False when the source ends before; then as many as
// there are stand there. Memory grows only with bytes that really came.
bool RecordStream::ensure(std::size_t size) {
  std::size_t left = outer_->bytes.size() - at_;
  if (left >= size) return true;
  auto block = free_block();
  block->bytes.reserve(std::max(kChunk, left));
  block->bytes.append(Bytes(outer_->bytes).subspan(at_));
  outer_ = std::move(block);
  at_ = 0;
  while (left < size && unread_ > 0) {
    const std::size_t wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>({kChunk, std::max(size - left, kChunk - left % kChunk), unread_}));
    outer_->bytes.resize(left + wanted);
    const ssize_t count = ::read(fd_, outer_->bytes.data() + left, wanted);
    const std::size_t got = count > 0 ? static_cast<std::size_t>(count) : 0;
    outer_->bytes.resize(left + got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) diagnostics_->add(Damage::CutShort, offset_ + left, system_error("read", errno).what);
    if (count <= 0) break;
    left += got;
    if (unread_ != ~std::uint64_t{0}) unread_ -= got;
  }
  return left >= size;
}

RecordView RecordStream::header_at(Bytes bytes) const {
  Cursor in(bytes, order_);
  RecordView record;
  record.type = in.u32();
  record.misc = in.u16();
  record.bytes = bytes.first(std::min<std::size_t>(in.u16(), bytes.size()));
  record.order = order_;
  return record;
}

void RecordStream::cut_short() {
  const std::size_t left = outer_->bytes.size() - at_;
  if (left > 0 && !torn_end_is_told_)
    diagnostics_->add(Damage::CutShort, offset_, "the last record should go on beyond the end");
  at_ = outer_->bytes.size();
  offset_ += left;
}

// The next record when it stands in the block as a whole and has nothing special about it.
bool RecordStream::next_plain(RecordView& record) {
  const Bytes block = outer_->bytes;
  const std::size_t left = block.size() - at_;
  if (left < kRecordHeaderSize) return false;
  Cursor in(block.subspan(at_, kRecordHeaderSize), order_);
  const std::uint32_t type = in.u32();
  const std::uint16_t misc = in.u16();
  const std::size_t size = in.u16();
  if (type >= abi::kRecordUserStart || size % 8 != 0 || size < kRecordHeaderSize || size > left) return false;
  record.type = type;
  record.misc = misc;
  record.bytes = block.subspan(at_, size);
  record.payload = {};
  record.offset = offset_;
  record.order = order_;
  at_ += size;
  offset_ += size;
  searching_ = false;
  return true;
}

bool RecordStream::next_outer(RecordView& record) {
  if (next_plain(record)) return true;
  for (;;) {
    if (!ensure(kRecordHeaderSize)) {
      cut_short();
      return false;
    }
    const Bytes head = Bytes(outer_->bytes).subspan(at_, kRecordHeaderSize);
    Cursor in(head, order_);
    const std::uint32_t type = in.u32();
    in.skip(2);
    const std::size_t size = in.u16();
    if (is_impossible(type, size)) {
      search();
      continue;
    }
    if (!ensure(size)) {
      // Either the capture ends inside this record, or its size is wrong.
      if (searching_) {
        search();
        continue;
      }
      cut_short();
      return false;
    }
    record = header_at(Bytes(outer_->bytes).subspan(at_, size));
    record.offset = offset_;
    at_ += size;
    offset_ += size;
    searching_ = false;
    return follow_payload(record);
  }
}

// After a record that cannot be right: forward to the next two headers in a row that can.
void RecordStream::search() {
  if (!searching_)
    diagnostics_->add(
        Damage::BadRecord, offset_,
        "no record has such a type and size; what follows is searched for the next sound record");
  searching_ = true;
  // Records begin at multiples of 8, but for what follows compressed ones, and a pipe's header sections.
  const std::size_t step = saw_compressed_ ? 1 : may_look_ahead_ ? 8 : 4;
  for (;;) {
    if (!ensure(step + kRecordHeaderSize)) {
      at_ = outer_->bytes.size();
      return;
    }
    at_ += step;
    offset_ += step;
    const Bytes rest = Bytes(outer_->bytes).subspan(at_);
    const RecordView found = header_at(rest);
    std::uint16_t size = Cursor(rest.subspan(6, 2), order_).u16();
    if (!is_plausible(found, size)) continue;
    if (!ensure(std::size_t{size} + kRecordHeaderSize)) return;
    const Bytes next = Bytes(outer_->bytes).subspan(at_ + size);
    if (is_plausible(header_at(next), Cursor(next.subspan(6, 2), order_).u16())) return;
  }
}

// TRACING_DATA and AUXTRACE are followed by bytes that are no records.
bool RecordStream::follow_payload(RecordView& record) {
  Cursor body = record.body();
  std::uint64_t size = 0;
  if (record.type == abi::kRecordTracingData) size = body.u32();
  if (record.type == abi::kRecordAuxtrace) size = body.u64();
  if (size == 0 || body.failed()) return true;
  const std::size_t record_size = record.bytes.size();
  at_ -= record_size;
  if (size > ~std::size_t{0} - record_size || !ensure(record_size + static_cast<std::size_t>(size))) {
    cut_short();
    return false;
  }
  const Bytes all = Bytes(outer_->bytes).subspan(at_);
  record.bytes = all.first(record_size);
  record.payload = all.subspan(record_size, static_cast<std::size_t>(size));
  at_ += record_size + static_cast<std::size_t>(size);
  offset_ += size;
  return true;
}

namespace {

// The zstd bytes of a COMPRESSED or COMPRESSED2 record; nothing when the latter says more than it holds.
std::optional<Bytes> packed_bytes(const RecordView& record) {
  if (record.type == abi::kRecordCompressed) return record.bytes.subspan(kRecordHeaderSize);
  Cursor body = record.body();
  const Bytes packed = body.take(body.u64());
  if (body.failed()) return std::nullopt;
  return packed;
}

}  // namespace

// Reads on until enough frames are being inflated. Plain records between them wait in line.
void RecordStream::look_ahead() {
  constexpr std::size_t kJobs = 8;
  // Larger frames than any recorder makes are inflated one at a time, so that what waits here stays small.
  const std::size_t limit = std::min(inflate_limit_, 4 * RecordCompressor::kMaxInput);
  while (ahead_.empty() || (jobs_ahead_ > 0 && jobs_ahead_ < kJobs)) {
    RecordView record;
    if (!next_outer(record)) return;
    Ahead item{record, outer_, nullptr};
    if (is_compressed(record.type)) {
      saw_compressed_ = true;
      ++compressed_records_;
      const auto packed = packed_bytes(record);
      const auto size = packed && may_look_ahead_ ? standalone_frame_size(*packed, limit) : std::nullopt;
      if (size) {
        if (!pool_) pool_.emplace();
        item.job = pool_->start(*packed, *size, outer_);
        ++jobs_ahead_;
      }
    }
    ahead_.push_back(std::move(item));
  }
}

// One record of a stream that goes over many.
void RecordStream::inflate(const RecordView& record) {
  const auto packed = packed_bytes(record);
  if (!packed) return diagnostics_->add(Damage::BadFrame, record.offset, "holds fewer bytes than it says");
  constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
  const bool starts_frame = packed->size() >= 4 && Cursor(*packed, std::endian::little).u32() == kFrameMagic;
  if (stream_broken_ && !starts_frame)
    return diagnostics_->add(Damage::BadFrame, record.offset, "belongs to a stream that broke before");
  if (!inflater_) {
    auto created = RecordInflater::create();
    if (!created) return diagnostics_->add(Damage::BadFrame, record.offset, created.error().what);
    inflater_ = std::move(*created);
  }
  auto block = std::make_shared<Block>();
  auto done = inflater_->inflate(*packed, inflate_limit_, block->bytes);
  open_inflated(std::move(block), record.offset);
  stream_broken_ = !done;
  if (done) return;
  diagnostics_->add(Damage::BadFrame, record.offset, done.error().what);
  inflater_->reset();
}

// A record that began in the compressed record before goes on in this one.
void RecordStream::open_inflated(std::shared_ptr<Block> block, std::uint64_t offset) {
  if (inflated_ && !stream_broken_ && inflated_at_ < inflated_->bytes.size())
    block->bytes.prepend(Bytes(inflated_->bytes).subspan(inflated_at_));
  inflated_ = std::move(block);
  inflated_at_ = 0;
  inflated_offset_ = offset;
}

bool RecordStream::next_inflated(RecordView& record) {
  const Bytes rest = Bytes(inflated_->bytes).subspan(inflated_at_);
  if (rest.size() < kRecordHeaderSize) return false;
  Cursor in(rest, order_);
  const std::uint32_t type = in.u32();
  const std::uint16_t misc = in.u16();
  const std::size_t size = in.u16();
  if (is_impossible(type, size)) {
    diagnostics_->add(Damage::BadRecord, inflated_offset_,
                      "no record has such a type and size; the rest of this compressed record is left out");
    inflated_.reset();
    return false;
  }
  if (rest.size() < size) return false;
  record.type = type;
  record.misc = misc;
  record.bytes = rest.first(size);
  record.payload = {};
  record.offset = inflated_offset_;
  record.order = order_;
  inflated_at_ += size;
  return true;
}

bool RecordStream::next(RecordView& record) {
  for (;;) {
    if (inflated_ && next_inflated(record)) {
      if (given_ != inflated_) given_ = inflated_;
      return true;
    }
    // Records that nothing stands before go straight out.
    if (ahead_.empty() && next_plain(record)) {
      if (given_ != outer_) given_ = outer_;
      return true;
    }
    look_ahead();
    if (ahead_.empty()) {
      if (inflated_ && inflated_at_ < inflated_->bytes.size())
        diagnostics_->add(Damage::CutShort, inflated_offset_,
                          "a compressed record ends in the middle of a record");
      inflated_.reset();
      return false;
    }
    const Ahead item = std::move(ahead_.front());
    ahead_.pop_front();
    if (item.job) {
      --jobs_ahead_;
      auto block = pool_->take(item.job);
      if (block)
        open_inflated(std::move(*block), item.record.offset);
      else
        diagnostics_->add(Damage::BadFrame, item.record.offset, block.error().what);
    } else if (is_compressed(item.record.type)) {
      inflate(item.record);
    } else {
      if (given_ != item.block) given_ = item.block;
      record = item.record;
      return true;
    }
  }
}

}  // namespace tacho::format
