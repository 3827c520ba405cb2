#include "format/record_stream.h"

#include <algorithm>
#include <string>

#include "format/perf_abi.h"
#include "format/record.h"

namespace tacho::format {

namespace {

// A record of this size may swallow many others when its size is wrong: it is looked at before it is given.
constexpr std::size_t kLarge = 2048;

bool is_compressed(std::uint32_t type) {
  return type == abi::kRecordCompressed || type == abi::kRecordCompressed2;
}

// Whether a record of one of the kernel's types, or the mark of a round, may begin with these 8 bytes. What
// it says no to is looked at more closely.
bool begins_known(Bytes bytes, std::endian order) {
  const RecordHeader header = record_header(bytes, order);
  const bool is_kernel = header.type - 1 < abi::kRecordCallchainDeferred && header.size % 8 == 0;
  const bool is_round = header.type == abi::kRecordFinishedRound && header.size == kRecordHeaderSize;
  return (is_kernel || is_round) && header.size >= kRecordHeaderSize && header.has_possible_misc();
}

bool is_text(std::byte byte) {
  const auto c = static_cast<unsigned char>(byte);
  return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

class RecordStream::OuterArea : public SearchArea {
 public:
  explicit OuterArea(ByteWindow& window) : window_(window) {}
  Bytes have(std::size_t size) override {
    window_.ensure(size);
    return window_.bytes();
  }

 private:
  ByteWindow& window_;
};

class RecordStream::InflatedArea : public SearchArea {
 public:
  explicit InflatedArea(Bytes rest) : rest_(rest) {}
  Bytes have(std::size_t) override { return rest_; }

 private:
  Bytes rest_;
};

RecordStream::RecordStream(const Source& source, InflateLimits limits, const EventSet& events,
                           Diagnostics& diagnostics)
    : window_(source.fd, source.offset, source.size, source.grows, diagnostics),
      order_(source.order),
      limits_(limits),
      diagnostics_(&diagnostics),
      may_look_ahead_(source.size != kUntilTheEnd && !source.grows),
      search_(events, source.order) {}

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
  const std::size_t left = window_.bytes().size();
  if (left > 0 && !torn_end_is_told_)
    diagnostics_->add(Damage::CutShort, window_.offset(), "the last record should go on beyond the end");
  window_.skip(left);
}

// The next record when it stands in the block as a whole, followed by another, and has nothing special about
// it.
bool RecordStream::next_plain(RecordView& record) {
  const Bytes bytes = window_.bytes();
  const std::size_t left = bytes.size();
  if (left < 2 * kRecordHeaderSize) return false;
  const RecordHeader header = record_header(bytes.first(kRecordHeaderSize), order_);
  if (header.type >= abi::kRecordUserStart || !begins_known(bytes, order_)) return false;
  if (header.size > left - kRecordHeaderSize || header.size >= kLarge) return false;
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
  if (next_plain(record)) return true;
  for (;;) {
    if (!window_.ensure(kRecordHeaderSize)) {
      if (!grows()) cut_short();
      return false;
    }
    const RecordHeader header = record_header(window_.bytes(), order_);
    if (!is_possible(header)) {
      if (!skips_simpleperf(simpleperf_record_size(header))) search();
      continue;
    }
    const auto payload = window_.ensure(header.size) ? payload_behind(header.size) : std::nullopt;
    if (!payload && grows()) return false;  // its rest will come
    if (!payload) {
      // The capture ends inside this record, or what says its size is damaged.
      OuterArea area(window_);
      const std::size_t left = area.have(header.size).size();
      if (const auto found = search_.next_sound(area, 1, left)) {
        leave_out(window_.offset(), *found, false, false);
        window_.skip(*found);
        continue;
      }
      cut_short();
      return false;
    }
    const std::size_t whole = header.size + *payload;
    const bool is_beyond_doubt =
        header.has_possible_misc() && is_followed(header, whole) &&
        ((header.size < kLarge && header.size % 8 == 0) || header.type >= abi::kRecordUserStart ||
         record_name(header.type).empty() || search_.is_sound(window_.bytes().first(header.size)));
    if (!is_beyond_doubt && !recovers(whole)) continue;
    return take_outer(record, header.size, *payload);
  }
}

// TRACING_DATA and AUXTRACE are followed by bytes that are no records: how many. Nothing when the capture
// ends before they do.
std::optional<std::size_t> RecordStream::payload_behind(std::size_t size) {
  const RecordView record = header_at(window_.bytes().first(size));
  Cursor body = record.body();
  std::uint64_t payload = 0;
  if (record.type == abi::kRecordTracingData) payload = body.u32();
  if (record.type == abi::kRecordAuxtrace) payload = body.u64();
  if (payload == 0 || body.failed()) return 0;
  if (payload > ~std::size_t{0} - size || !window_.ensure(size + static_cast<std::size_t>(payload)))
    return std::nullopt;
  return static_cast<std::size_t>(payload);
}

// Whether what stands behind the next `size` bytes can be a record, or is the end. A pipe is not waited for.
bool RecordStream::is_followed(const RecordHeader& header, std::size_t size) {
  const std::size_t left = window_.bytes().size();
  if (!may_look_ahead_ && left < size + kRecordHeaderSize) return true;
  // The end; what is torn there is told in its turn.
  if (!window_.ensure(size + kRecordHeaderSize)) return window_.bytes().size() == size;
  const Bytes next = window_.bytes().subspan(size);
  if (begins_known(next, order_) && !record_name(header.type).empty()) return true;
  OuterArea area(window_);
  return search_.leads_on(area, size);
}

// The record of `size` bytes at the window's start is followed by what is none. True when it is sound itself;
// otherwise the window goes to the next sound one.
bool RecordStream::recovers(std::size_t size) {
  OuterArea area(window_);
  if (const auto next = search_.swallowed(area, size)) {
    leave_out(window_.offset(), *next, false, false);
    window_.skip(*next);
    return false;
  }
  const RecordHeader header = record_header(window_.bytes(), order_);
  if (search_.is_sound(window_.bytes().first(header.size))) return true;
  search();
  return false;
}

// A record of simpleperf's own, `size` bytes long: simpleperf_start.h reads those that tell something.
bool RecordStream::skips_simpleperf(std::size_t size) {
  if (size == 0 || !window_.ensure(size)) return false;
  if (OuterArea area(window_); !search_.leads_on(area, size)) return false;
  window_.skip(size);
  return true;
}

// Gives the record at the window's start, which stands in the block with all that belongs to it.
bool RecordStream::take_outer(RecordView& record, std::size_t size, std::size_t payload) {
  const Bytes all = window_.bytes().first(size + payload);
  record = header_at(all.first(size));
  record.payload = all.subspan(size);
  record.offset = window_.offset();
  window_.skip(all.size());
  return true;
}

// No record begins at the window's start: forward to the next sound one, or to the end.
void RecordStream::search() {
  constexpr std::size_t kPiece = 64 * 1024;
  const std::uint64_t start = window_.offset();
  OuterArea area(window_);
  bool is_all_text = true;
  for (std::size_t from = 1;; from = 0) {
    const auto found = search_.next_sound(area, from, kPiece);
    const Bytes rest = found ? area.have(*found) : area.have(kPiece + kRecordHeaderSize);
    const bool is_at_end = !found && rest.size() < kPiece + kRecordHeaderSize;
    const std::size_t skipped = found ? *found : is_at_end ? rest.size() : kPiece;
    is_all_text = is_all_text && std::ranges::all_of(rest.first(skipped), is_text);
    window_.skip(skipped);
    if (!found && !is_at_end) {
      if (window_.skip_hole()) is_all_text = false;
      continue;
    }
    return leave_out(start, window_.offset() - start, is_all_text, is_at_end);
  }
}

void RecordStream::leave_out(std::uint64_t offset, std::uint64_t bytes, bool is_text, bool is_at_end) {
  const std::string size = std::to_string(bytes) + " bytes";
  if (is_text)  // a recorder that writes to a pipe may have its messages there too
    return diagnostics_->add(Damage::Note, offset, size + " of text between the records are left out");
  diagnostics_->add(Damage::BadRecord, offset,
                    "no record has such a type and size, or its end is missing; " + size +
                        (is_at_end ? " up to the end" : " up to the next sound record") + " are left out",
                    1, bytes);
}

namespace {

// The zstd bytes of a COMPRESSED or COMPRESSED2 record; nothing when the latter says more than it holds.
std::optional<Bytes> packed_content(const RecordView& record) {
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
  const std::size_t limit = std::min(limits_.record, 4 * RecordCompressor::kMaxInput);
  while (ahead_.empty() || (jobs_ahead_ > 0 && jobs_ahead_ < kJobs)) {
    RecordView record;
    if (!next_outer(record)) return;
    Ahead item{record, window_.block(), nullptr};
    if (is_compressed(record.type)) {
      ++compressed_records_;
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

// A small capture must not keep its reader busy for hours. What recorders compress has at least a few bytes
// for each record, as its time is never foreseen.
bool RecordStream::may_inflate(const RecordView& record) {
  constexpr std::uint64_t kBytes = std::uint64_t{256} << 20, kBytesForEach = 256;
  constexpr std::uint64_t kRecords = std::uint64_t{2} << 20, kRecordsForEach = 1;
  packed_bytes_ += record.bytes.size();
  if (!limits_.total || (inflated_bytes_ <= kBytes + kBytesForEach * packed_bytes_ &&
                         inflated_records_ <= kRecords + kRecordsForEach * packed_bytes_))
    return true;
  diagnostics_->add(Damage::BadFrame, record.offset,
                    "the compressed records before hold " + std::to_string(inflated_records_) +
                        " records of " + std::to_string(inflated_bytes_) +
                        " bytes, far more than recorders make of so small a " +
                        "capture; the rest is left out, --inflate-all reads it");
  stream_broken_ = true;
  return false;
}

// One record of a stream that goes over many.
void RecordStream::inflate(const RecordView& record) {
  const auto packed = packed_content(record);
  if (!packed) return diagnostics_->add(Damage::BadFrame, record.offset, "holds fewer bytes than it says");
  constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
  const bool starts_frame = Cursor(packed_bytes(*packed).frames, std::endian::little).u32() == kFrameMagic;
  if (stream_broken_ && !starts_frame)
    return diagnostics_->add(Damage::BadFrame, record.offset, "belongs to a stream that broke before");
  if (!inflater_) {
    auto created = RecordInflater::create();
    if (!created) return diagnostics_->add(Damage::BadFrame, record.offset, created.error().what);
    inflater_ = std::move(*created);
  }
  auto block = std::make_shared<Block>();
  block->packed = record.bytes.size();
  // The block before may be as large as this one becomes: it goes first.
  block->bytes.append(rest_of_inflated());
  inflated_.reset();
  given_.reset();
  auto done = inflater_->inflate(*packed, limits_.record, block->bytes);
  open_inflated(std::move(block), record.offset);
  stream_broken_ = !done;
  if (done) return;
  diagnostics_->add(Damage::BadFrame, record.offset, done.error().what);
  inflater_->reset();
}

// Of a record that began in the compressed record before and goes on in the next one.
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
    const std::size_t size = header.size;
    if (is_possible(header) && rest.size() < size) return false;
    const bool is_followed =
        is_possible(header) && header.has_possible_misc() &&
        (rest.size() < size + kRecordHeaderSize || begins_known(rest.subspan(size), order_));
    if (!is_followed && !recovers_inflated(is_possible(header) ? size : 0)) continue;
    record.type = header.type;
    record.misc = header.misc;
    record.bytes = rest.first(size);
    record.payload = {};
    record.offset = inflated_offset_;
    record.order = order_;
    inflated_at_ += size;
    ++inflated_records_;
    return true;
  }
}

// As recovers(), in an inflated block; `size` is 0 when no record has such a header.
bool RecordStream::recovers_inflated(std::size_t size) {
  const Bytes rest = Bytes(inflated_->bytes).subspan(inflated_at_);
  InflatedArea area(rest);
  std::optional<std::size_t> next;
  if (size != 0) {
    if (record_header(rest, order_).has_possible_misc() && search_.leads_on(area, size)) return true;
    next = search_.swallowed(area, size);
    if (!next && search_.is_sound(rest.first(size))) return true;
  }
  if (!next) next = search_.next_sound(area, 1, rest.size());
  leave_out(inflated_offset_, next.value_or(rest.size()), false, !next);
  inflated_at_ += next.value_or(rest.size());
  return false;
}

bool RecordStream::next(RecordView& record) {
  for (;;) {
    if (inflated_ && next_inflated(record)) {
      if (given_ != inflated_) given_ = inflated_;
      return true;
    }
    // Records that nothing stands before go straight out.
    if (ahead_.empty() && next_plain(record)) {
      if (given_ != window_.block()) given_ = window_.block();
      return true;
    }
    look_ahead();
    if (ahead_.empty()) {
      if (grows()) return false;
      if (inflated_ && inflated_at_ < inflated_->bytes.size())
        diagnostics_->add(Damage::CutShort, inflated_offset_,
                          "a compressed record ends in the middle of a record");
      inflated_.reset();
      // Whatever is made of the records now may take long.
      window_.forget();
      return false;
    }
    const Ahead item = std::move(ahead_.front());
    ahead_.pop_front();
    if (is_compressed(item.record.type) && !may_inflate(item.record)) {
      if (item.job) --jobs_ahead_;
    } else if (item.job) {
      --jobs_ahead_;
      auto block = pool_->take(item.job);
      if (!block) {
        diagnostics_->add(Damage::BadFrame, item.record.offset, block.error().what);
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
