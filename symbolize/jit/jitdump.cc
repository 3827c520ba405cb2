#include "symbolize/jit/jitdump.h"

#include <algorithm>
#include <span>
#include <utility>

#include "format/base/byte_writer.h"
#include "symbolize/files/decompress.h"

namespace tacho::symbolize {
namespace {

using format::Bytes;
using format::Cursor;

constexpr std::uint32_t kMagic = 0x4A695444;  // "JiTD" in the writer's byte order
constexpr std::uint32_t kMagicSwapped = 0x4454694A;
constexpr std::uint32_t kHeaderSize = 40, kPrefixSize = 16;  // bytes
constexpr std::uint64_t kArchTimestamp = 1;                  // header flag
constexpr std::string_view kSameFile = "\377";
constexpr std::uint32_t kLoad = 0, kMove = 1, kLines = 2, kUnwinding = 4;  // ids of records

struct Reading {
  std::vector<JitEvent>& events;
  std::vector<JitLine> lines;     // of the next function, by address
  std::optional<Bytes> eh_frame;  // of the next function
};

JitEvent read_event(Cursor& in, std::uint64_t time) {
  JitEvent event{.time = time};
  event.address = in.u64();
  event.size = in.u64();
  event.index = in.u64();
  return event;
}

// The other read_*() functions parse one kind of record each. False: the record is too short.
bool read_load(Cursor in, std::uint64_t time, Reading& reading) {
  in.skip(16);  // pid, tid, vma
  JitEvent event = read_event(in, time);
  event.name = in.terminated();
  if (in.failed()) return false;
  if (event.size <= in.left()) event.code = in.take_bytes(static_cast<std::size_t>(event.size));
  event.eh_frame = std::exchange(reading.eh_frame, std::nullopt);
  event.lines = std::exchange(reading.lines, {});
  // Lines outside of the function.
  std::erase_if(event.lines, [&](const JitLine& line) {
    return line.offset < event.address || line.offset - event.address >= event.size;
  });
  for (JitLine& line : event.lines) line.offset -= event.address;
  std::ranges::stable_sort(event.lines, {}, &JitLine::offset);
  reading.events.push_back(std::move(event));
  return true;
}

bool read_move(Cursor in, std::uint64_t time, Reading& reading) {
  in.skip(24);  // pid, tid, vma, old address
  JitEvent event = read_event(in, time);
  event.is_move = true;
  if (in.failed()) return false;
  reading.events.push_back(std::move(event));
  return true;
}

bool read_lines(Cursor in, std::uint64_t /*time*/, Reading& reading) {
  in.skip(8);  // address of the code, which follows
  const std::uint64_t count = in.u64();
  reading.lines.clear();
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    JitLine line;
    line.offset = in.u64();
    line.line = in.u32();
    in.skip(4);  // discriminator
    line.file = in.terminated();
    if (line.file == kSameFile) line.file = reading.lines.empty() ? "" : reading.lines.back().file;
    if (!in.failed()) reading.lines.push_back(line);
  }
  return !in.failed();
}

// If the sizes are damaged, only the next function's unwinding information is lost.
bool read_unwinding(Cursor in, std::uint64_t /*time*/, Reading& reading) {
  const std::uint64_t size = in.u64(), header_size = in.u64();
  in.u64();  // mapped size
  const Bytes eh_frame = header_size <= size ? in.take_bytes(size - header_size) : Bytes();
  if (!in.failed() && header_size <= size) reading.eh_frame = eh_frame;
  return true;
}

struct RecordRow {
  std::uint32_t id;
  bool (*read)(Cursor in, std::uint64_t time, Reading& reading);
};

// Other records are skipped.
constexpr RecordRow kRecords[] = {
    {kLoad, read_load}, {kMove, read_move}, {kLines, read_lines}, {kUnwinding, read_unwinding}};

}  // namespace

Result<Jitdump> Jitdump::parse(std::vector<std::byte> bytes) {
  Jitdump dump;
  dump.bytes_ = std::move(bytes);
  const Bytes all = dump.bytes_;
  const std::uint32_t magic = Cursor(all, std::endian::little).u32();
  if (magic != kMagic && magic != kMagicSwapped)
    return Error{"it is not a jitdump: it does not start with JiTD"};
  dump.order_ = magic == kMagic ? std::endian::little : std::endian::big;
  Cursor in(all, dump.order_);
  in.skip(4);
  const std::uint32_t version = in.u32(), size = in.u32();
  in.skip(8);  // machine, pad
  dump.pid_ = in.u32();
  in.skip(8);  // time
  dump.counts_ticks_ = (in.u64() & kArchTimestamp) != 0;
  if (in.failed() || size < kHeaderSize) return Error{"a jitdump with a truncated header"};
  if (version != 1)
    return Error{"a jitdump of version " + std::to_string(version) + "; only version 1 is known"};
  in.skip(size - kHeaderSize);
  if (in.failed()) return Error{"a jitdump with a truncated header"};

  Reading reading{dump.events_, {}, std::nullopt};
  while (in.left() > 0 && !dump.is_cut_short_) {
    const std::uint32_t id = in.u32(), record_size = in.u32();
    const std::uint64_t time = in.u64();
    const Bytes body = record_size < kPrefixSize ? Bytes() : in.take_bytes(record_size - kPrefixSize);
    if (in.failed() || record_size < kPrefixSize) {
      dump.is_cut_short_ = true;
      break;
    }
    const auto* const row = std::ranges::find(kRecords, id, &RecordRow::id);
    if (row != std::end(kRecords)) dump.is_cut_short_ = !row->read(in.over(body), time, reading);
  }
  return dump;
}

namespace {

// Sets the size of the record that begins at `start`.
void finish_record(format::ByteWriter& out, std::size_t start) {
  out.patch<std::uint32_t>(start + sizeof(std::uint32_t), static_cast<std::uint32_t>(out.size() - start));
}

std::size_t begin_record(format::ByteWriter& out, std::uint32_t id, std::uint64_t time) {
  const std::size_t start = out.size();
  out.u32(id).u32(0).u64(time);
  return start;
}

void write_text(format::ByteWriter& out, std::string_view text) {
  out.bytes(std::as_bytes(std::span(text))).u8(0);
}

// Without texts and unwinding information.
constexpr std::uint64_t kLoadSize = 57, kMoveSize = 64, kLinesSize = 32, kLineSize = 17, kUnwindingSize = 40;

// Whether the line has the previous one's file, and so gets the name "\377": names written out at each line
// could take far more than the input. Long names are compared by their address in the input.
bool repeats_file(const std::vector<JitLine>& lines, std::size_t number) {
  constexpr std::size_t kLong = 256;
  if (number == 0) return false;
  const std::string_view file = lines[number].file, before = lines[number - 1].file;
  if (file.size() != before.size()) return false;
  return file.data() == before.data() || (file.size() < kLong && file == before);
}

std::string_view written_file(const std::vector<JitLine>& lines, std::size_t number) {
  return repeats_file(lines, number) ? kSameFile : lines[number].file;
}

void write_lines(format::ByteWriter& out, const JitEvent& event) {
  if (event.lines.empty()) return;
  const std::size_t start = begin_record(out, kLines, event.time);
  out.u64(event.address).u64(event.lines.size());
  for (std::size_t i = 0; i < event.lines.size(); ++i) {
    out.u64(event.address + event.lines[i].offset).u32(event.lines[i].line).u32(0);
    write_text(out, written_file(event.lines, i));
  }
  finish_record(out, start);
}

void write_unwinding(format::ByteWriter& out, const JitEvent& event) {
  if (!event.eh_frame) return;
  const std::size_t start = begin_record(out, kUnwinding, event.time);
  out.u64(event.eh_frame->size()).u64(0).u64(0).bytes(*event.eh_frame);
  finish_record(out, start);
}

struct Limits {
  bool has_lines = true;
  std::uint64_t most = kLargestText;  // bytes; also keeps sizes of records within their 32 bits
};

std::uint64_t size_of(const JitEvent& event, const Limits& limits) {
  if (event.is_move) return kMoveSize;
  std::uint64_t size = kLoadSize + event.name.size();
  if (event.eh_frame) size += kUnwindingSize + event.eh_frame->size();
  if (!limits.has_lines || event.lines.empty()) return size;
  size += kLinesSize;
  for (std::size_t i = 0; i < event.lines.size(); ++i)
    size += kLineSize + written_file(event.lines, i).size();
  return size;
}

using Events = std::span<const JitEvent* const>;

// The first events, as many as fit into the limit.
Events fitting(Events events, const Limits& limits) {
  std::uint64_t size = kHeaderSize;
  for (std::size_t i = 0; i < events.size(); ++i) {
    size += size_of(*events[i], limits);
    if (size > limits.most) return events.first(i);
  }
  return events;
}

std::vector<std::byte> write_jitdump(std::uint32_t pid, Events events, const Limits& limits) {
  format::ByteWriter out;
  out.u32(kMagic).u32(1).u32(kHeaderSize).u32(0).u32(0).u32(pid).u64(0).u64(0);
  for (const JitEvent* const event : events) {
    if (!event->is_move && limits.has_lines) write_lines(out, *event);
    if (!event->is_move) write_unwinding(out, *event);
    const std::size_t start = begin_record(out, event->is_move ? kMove : kLoad, event->time);
    out.u32(pid).u32(pid).u64(event->address);
    if (event->is_move) out.u64(0);  // old address
    out.u64(event->address).u64(event->size).u64(event->index);
    if (!event->is_move) write_text(out, event->name);
    finish_record(out, start);
  }
  return std::move(out).take_bytes();
}

}  // namespace

Result<AttachedJitdump> attach_jitdump(const std::string& path, std::uint32_t pid,
                                       const std::vector<const JitEvent*>& events) {
  const bool has_lines =
      std::ranges::any_of(events, [](const JitEvent* event) { return !event->lines.empty(); });
  constexpr Limits kLast{false,
                         kAlwaysAllowed};  // below the limit that readers accept at any compression ratio
  for (const Limits& limits : {Limits{true, kLargestText}, Limits{false, kLargestText}, kLast}) {
    const Events kept = fitting(events, limits);
    const bool is_last = limits.most == kLast.most;
    if (kept.size() < events.size() && !is_last) continue;
    auto packed =
        format::pack_attachment(std::string(kAttachedJitdump) + path, path, write_jitdump(pid, kept, limits));
    if (!packed) return std::move(packed.error());
    if (!is_last && !check_attached_size(*packed)) continue;
    return AttachedJitdump{std::move(*packed), has_lines && !limits.has_lines, events.size() - kept.size()};
  }
  return Error{"it is too large"};  // not reached: the last limits always fit
}

const JitLine* line_at(const std::vector<JitLine>& lines, std::uint64_t offset) {
  const auto after = std::ranges::upper_bound(lines, offset, {}, &JitLine::offset);
  return after == lines.begin() ? nullptr : &*std::prev(after);
}

}  // namespace tacho::symbolize
