#include "format/container/record_stream.h"

#include <algorithm>
#include <string>

#include "format/records/perf_abi.h"
#include "format/records/record.h"

namespace tacho::format {

namespace {

bool is_compressed(std::uint32_t type) {
  return type == abi::kRecordCompressed || type == abi::kRecordCompressed2;
}

// Whether these 8 bytes may be the header of a kernel record or of FINISHED_ROUND, as nearly all are.
// RecordSearch checks all other headers.
bool begins_known(Bytes bytes, std::endian order) {
  const RecordHeader header = record_header(bytes, order);
  const bool is_kernel = header.type - 1 < abi::kRecordCallchainDeferred && header.size % 8 == 0;
  const bool is_round = header.type == abi::kRecordFinishedRound && header.size == kRecordHeaderSize;
  return (is_kernel || is_round) && header.size >= kRecordHeaderSize;
}

// The samples at the start of these bytes, each followed by a plausible record header.
SampleRun samples_in(Bytes bytes, std::endian order) {
  std::size_t at = 0, count = 0;
  while (bytes.size() - at >= 2 * kRecordHeaderSize) {
    const RecordHeader header = record_header(bytes.subspan(at, kRecordHeaderSize), order);
    const std::size_t left = bytes.size() - at;
    const bool is_sample = header.type == abi::kRecordSample && header.size % 8 == 0 &&
                           header.size >= kRecordHeaderSize && header.size < kLargeRecord;
    if (!is_sample || header.size > left - kRecordHeaderSize ||
        !begins_known(bytes.subspan(at + header.size, kRecordHeaderSize), order))
      break;
    at += header.size;
    ++count;
  }
  return {.bytes = bytes.first(at), .count = count};
}

bool is_text(std::byte byte) {
  const auto c = static_cast<unsigned char>(byte);
  return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

RecordStream::RecordStream(const Source& source, InflateLimits limits, const EventSet& events,
                           Diagnostics& diagnostics)
    : window_(source.fd, source.offset, source.size, source.grows, diagnostics),
      order_(source.order),
      limits_(limits),
      diagnostics_(&diagnostics),
      may_look_ahead_(source.size != kUntilTheEnd && !source.grows),
      search_(events, source.order),
      outer_([this](std::size_t size) {
        window_.ensure(size);
        return window_.bytes();
      }) {}

// Reports that the capture ends inside the record at `offset`.
void RecordStream::cut_short(std::uint64_t offset) {
  if (!torn_end_is_reported_)
    diagnostics_->add_finding(Damage::CutShort, offset, "the last record extends beyond the end");
  window_.skip(window_.bytes().size());
}

// Fast path: the next record, if it is ordinary and the block has it and the header after it.
bool RecordStream::next_plain(RecordView& record) {
  const Bytes bytes = window_.bytes();
  const std::size_t left = bytes.size();
  if (left < 2 * kRecordHeaderSize) return false;
  const RecordHeader header = record_header(bytes.first(kRecordHeaderSize), order_);
  if (header.type >= abi::kRecordUserStart || !begins_known(bytes, order_)) return false;
  if (header.size > left - kRecordHeaderSize || header.size >= kLargeRecord) return false;
  if (!begins_known(bytes.subspan(header.size), order_)) return false;
  record.type = header.type;
  record.misc = header.misc;
  record.bytes = bytes.first(header.size);
  record.payload = {};
  record.offset = window_.offset();
  record.order = order_;
  window_.skip(header.size);
  return true;
}

bool RecordStream::next_outer(RecordView& record) {
  if (!skip_payload()) return false;
  if (next_plain(record)) return true;
  for (;;) {
    if (!window_.ensure(kRecordHeaderSize)) {
      if (!grows() && !window_.bytes().empty()) cut_short(window_.offset());
      return false;
    }
    const RecordHeader header = record_header(window_.bytes(), order_);
    if (!is_possible(header)) {
      search(IfNone::Damage);
      continue;
    }
    const auto payload = window_.ensure(header.size) ? payload_behind(header) : std::nullopt;
    if (!payload && grows()) return false;  // the rest is yet to be written
    if (!payload) {
      // Either the capture ends inside this record, or its size is damaged.
      search(IfNone::CutShort);
      continue;
    }
    const auto damage = damaged(header, *payload);
    if (!damage) search(IfNone::Damage);
    if (damage && *damage != 0) {
      leave_out(window_.offset(), *damage, false, false);
      window_.skip(*damage);
    }
    if (damage != 0) continue;
    record = whole_record(window_.bytes().first(header.size), order_);
    record.offset = window_.offset();
    record.payload_size = *payload;
    if (header.type == abi::kRecordAuxtrace)
      payload_left_ = *payload;
    else
      record.payload = window_.bytes().subspan(header.size, static_cast<std::size_t>(*payload));
    window_.skip(header.size + record.payload.size());
    return true;
  }
}

// Bytes of payload after the record at the window's start (TRACING_DATA, AUXTRACE). Nothing: the capture
// ends before.
std::optional<std::uint64_t> RecordStream::payload_behind(const RecordHeader& header) {
  Cursor body = whole_record(window_.bytes().first(header.size), order_).body();
  if (header.type == abi::kRecordTracingData) {
    const std::uint32_t payload = body.u32();
    return window_.ensure(header.size + payload) ? std::optional<std::uint64_t>(payload) : std::nullopt;
  }
  if (header.type != abi::kRecordAuxtrace) return 0;
  const std::uint64_t payload = body.u64();
  const auto left = window_.left_in_file();
  return left && !grows() && payload > *left - header.size ? std::nullopt : std::optional(payload);
}

// RecordSearch::damaged() for the record at the window's start. Does not wait for a pipe, and does not read
// an AUX trace.
std::optional<std::size_t> RecordStream::damaged(const RecordHeader& header, std::uint64_t payload) {
  if (header.type == abi::kRecordAuxtrace) {
    if (!search_.is_sound(window_.bytes().first(header.size))) return std::nullopt;
    const std::uint64_t with_next = header.size + kRecordHeaderSize;
    const auto left = window_.left_in_file();
    if (!left || *left < with_next || *left - with_next < payload) return 0;
    const auto next = window_.peek(header.size + payload, kRecordHeaderSize);
    if (next.size() == kRecordHeaderSize && is_possible(record_header(next, order_))) return 0;
    return std::nullopt;
  }
  const std::size_t whole = header.size + static_cast<std::size_t>(payload);
  if (!may_look_ahead_ && window_.bytes().size() < whole + kRecordHeaderSize) return 0;
  return search_.damaged(outer_, whole);
}

Bytes RecordStream::next_payload() {
  if (payload_left_ == 0 || !ahead_.empty() || !window_.ensure(1)) return {};
  const std::size_t there = window_.bytes().size();
  const Bytes piece = window_.bytes().first(std::min<std::uint64_t>(there, payload_left_));
  window_.skip(piece.size());
  payload_left_ -= piece.size();
  return piece;
}

// Skips the rest of a payload. False: the bytes are not there, or not yet.
bool RecordStream::skip_payload() {
  if (payload_left_ == 0) return true;
  payload_left_ -= window_.step_over(payload_left_);
  if (payload_left_ == 0) return true;
  if (!grows()) cut_short(window_.offset());
  torn_end_is_reported_ = torn_end_is_reported_ || !grows();
  return false;
}

// Resynchronizes: moves the window's start to the next sound record, or to the end.
void RecordStream::search(IfNone if_none) {
  constexpr std::size_t kPiece = 64 * 1024;
  const std::uint64_t start = window_.offset();
  bool is_all_text = true;
  for (std::size_t from = 1;; from = 0) {
    const auto found = search_.next_sound(outer_, from, kPiece);
    const Bytes rest = found ? outer_(*found) : outer_(kPiece + kRecordHeaderSize);
    const bool is_at_end = !found && rest.size() < kPiece + kRecordHeaderSize;
    const std::size_t skipped = found ? *found : is_at_end ? rest.size() : kPiece;
    is_all_text = is_all_text && std::ranges::all_of(rest.first(skipped), is_text);
    window_.skip(skipped);
    if (!found && !is_at_end) {
      if (window_.skip_hole()) is_all_text = false;
      continue;
    }
    if (is_at_end && if_none == IfNone::CutShort) return cut_short(start);
    return leave_out(start, window_.offset() - start, is_all_text, is_at_end);
  }
}

void RecordStream::leave_out(std::uint64_t offset, std::uint64_t bytes, bool is_text, bool is_at_end) {
  const std::string size = std::to_string(bytes) + " bytes";
  if (is_text)  // messages of a recorder whose stdout is the pipe
    return diagnostics_->add_finding(Damage::Note, offset, size + " of text between the records are ignored");
  diagnostics_->add_finding(Damage::BadRecord, offset,
                            "no record has such a type and size, or its end is missing; " + size +
                                (is_at_end ? " up to the end" : " up to the next sound record") +
                                " are left out",
                            1, bytes);
}

namespace {

// The zstd bytes of a COMPRESSED or COMPRESSED2 record. Nothing: the size in COMPRESSED2 exceeds the record.
std::optional<Bytes> packed_content(const RecordView& record) {
  if (record.type == abi::kRecordCompressed) return record.bytes.subspan(kRecordHeaderSize);
  Cursor body = record.body();
  const Bytes packed = body.take_bytes(body.u64());
  if (body.failed()) return std::nullopt;
  return packed;
}

}  // namespace

// Reads ahead until enough frames are being inflated. Plain records between them wait in the queue.
void RecordStream::look_ahead() {
  constexpr std::size_t kJobs = 8;
  // Unusually large frames are inflated one at a time, to bound the memory of this queue.
  const std::size_t limit = std::min(limits_.record, 4 * RecordCompressor::kMaxInput);
  while (ahead_.empty() || (payload_left_ == 0 && jobs_ahead_ > 0 && jobs_ahead_ < kJobs)) {
    RecordView record;
    if (!next_outer(record)) return;
    Ahead item{record, window_.block(), nullptr};
    if (is_compressed(record.type)) {
      ++(record.type == abi::kRecordCompressed2 ? compressed2_records_ : compressed_records_);
      const auto packed = packed_content(record);
      const auto size = packed && may_look_ahead_ ? standalone_frame_size(*packed, limit) : std::nullopt;
      if (size) {
        if (!pool_) pool_.emplace();
        item.job = pool_->start(*packed, *size, window_.block());
        ++jobs_ahead_;
      }
    }
    ahead_.push_back(std::move(item));
  }
}

// Limits how much a small capture can inflate to. A recorded record takes at least a few compressed bytes,
// since its time differs from the others.
bool RecordStream::may_inflate(const RecordView& record) {
  constexpr std::uint64_t kBytes = std::uint64_t{256} << 20, kBytesForEach = 256;
  constexpr std::uint64_t kRecords = std::uint64_t{2} << 20, kRecordsForEach = 1;
  packed_bytes_ += record.bytes.size();
  if (!limits_.total || (inflated_bytes_ <= kBytes + kBytesForEach * packed_bytes_ &&
                         inflated_records_ <= kRecords + kRecordsForEach * packed_bytes_))
    return true;
  diagnostics_->add_finding(Damage::BadFrame, record.offset,
                            "the compressed records before hold " + std::to_string(inflated_records_) +
                                " records of " + std::to_string(inflated_bytes_) +
                                " bytes, far more than a recorder writes into so small a " +
                                "capture; the rest is ignored, --inflate-all reads it");
  stream_broken_ = true;
  return false;
}

// Inflates one record of a zstd stream that spans several records.
void RecordStream::inflate(const RecordView& record) {
  const auto packed = packed_content(record);
  if (!packed)
    return diagnostics_->add_finding(Damage::BadFrame, record.offset, "holds fewer bytes than it says");
  constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
  const bool starts_frame = Cursor(packed_bytes(*packed).frames, std::endian::little).u32() == kFrameMagic;
  if (stream_broken_ && !starts_frame)
    return diagnostics_->add_finding(Damage::BadFrame, record.offset, "continues a damaged zstd stream");
  if (!inflater_) {
    auto created = RecordInflater::create();
    if (!created) return diagnostics_->add_finding(Damage::BadFrame, record.offset, created.error().what);
    inflater_ = std::move(*created);
  }
  auto block = std::make_shared<Block>();
  block->packed = record.bytes.size();
  // Frees the previous block first, which may be as large as the next.
  block->bytes.append(rest_of_inflated());
  inflated_.reset();
  given_.reset();
  auto done = inflater_->inflate(*packed, limits_.record, block->bytes);
  open_inflated(std::move(block), record.offset);
  stream_broken_ = !done;
  if (done) return;
  diagnostics_->add_finding(Damage::BadFrame, record.offset, done.error().what);
  inflater_->reset();
}

// The inflated bytes that are left: the start of a record that continues in the next COMPRESSED record.
Bytes RecordStream::rest_of_inflated() const {
  if (!inflated_ || stream_broken_) return {};
  return Bytes(inflated_->bytes).subspan(inflated_at_);
}

void RecordStream::open_inflated(std::shared_ptr<Block> block, std::uint64_t offset) {
  inflated_bytes_ += block->bytes.size();
  inflated_ = std::move(block);
  inflated_at_ = 0;
  inflated_offset_ = offset;
}

bool RecordStream::next_inflated(RecordView& record) {
  for (;;) {
    const Bytes rest = Bytes(inflated_->bytes).subspan(inflated_at_);
    if (rest.size() < kRecordHeaderSize) return false;
    const RecordHeader header = record_header(rest, order_);
    const SearchArea area = [rest](std::size_t) { return rest; };
    std::optional<std::size_t> damage;
    if (is_possible(header)) {
      if (rest.size() < header.size) return false;
      const Bytes next = rest.subspan(header.size);
      const bool is_followed = next.size() < kRecordHeaderSize || begins_known(next, order_);
      damage = is_followed ? 0 : search_.damaged(area, header.size);
    }
    if (damage == 0) {
      record = whole_record(rest.first(header.size), order_);
      record.offset = inflated_offset_;
      inflated_at_ += header.size;
      ++inflated_records_;
      return true;
    }
    if (!damage) damage = search_.next_sound(area, 1, rest.size());
    leave_out(inflated_offset_, damage.value_or(rest.size()), false, !damage);
    inflated_at_ += damage.value_or(rest.size());
  }
}

SampleRun RecordStream::next_samples() {
  const bool is_plain = inflated_ == nullptr;
  if (is_plain && (!ahead_.empty() || payload_left_ != 0)) return {};
  SampleRun run =
      samples_in(is_plain ? window_.bytes() : Bytes(inflated_->bytes).subspan(inflated_at_), order_);
  run.is_plain = is_plain;
  run.offset = is_plain ? window_.offset() : inflated_offset_;
  if (run.count == 0) return run;
  if (const BlockRef& block = is_plain ? window_.block() : inflated_; given_ != block) given_ = block;
  if (is_plain) {
    window_.skip(run.bytes.size());
  } else {
    inflated_at_ += run.bytes.size();
    inflated_records_ += run.count;
  }
  return run;
}

bool RecordStream::next_record(RecordView& record) {
  for (;;) {
    if (inflated_ && next_inflated(record)) {
      if (given_ != inflated_) given_ = inflated_;
      return true;
    }
    // The queue is empty: return this record at once.
    if (ahead_.empty() && payload_left_ == 0 && next_plain(record)) {
      if (given_ != window_.block()) given_ = window_.block();
      return true;
    }
    look_ahead();
    if (ahead_.empty()) {
      if (grows()) return false;
      if (inflated_ && inflated_at_ < inflated_->bytes.size())
        diagnostics_->add_finding(Damage::CutShort, inflated_offset_,
                                  "a compressed record ends in the middle of a record");
      inflated_.reset();
      // Start inflating the next frames now, while the caller processes these records.
      window_.release();
      return false;
    }
    const Ahead item = std::move(ahead_.front());
    ahead_.pop_front();
    if (is_compressed(item.record.type) && !may_inflate(item.record)) {
      if (item.job) --jobs_ahead_;
    } else if (item.job) {
      --jobs_ahead_;
      auto block = pool_->take_block(item.job);
      if (!block) {
        diagnostics_->add_finding(Damage::BadFrame, item.record.offset, block.error().what);
        continue;
      }
      (*block)->packed = item.record.bytes.size();
      (*block)->bytes.prepend(rest_of_inflated());
      open_inflated(std::move(*block), item.record.offset);
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
