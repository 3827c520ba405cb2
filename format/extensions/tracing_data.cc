#include "format/extensions/tracing_data.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

namespace tacho::format {

namespace {

constexpr std::string_view kMagic =
    "\x17\x08\x44"
    "tracing";
constexpr std::uint32_t kMaxSystems = 65536;
constexpr std::uint32_t kMaxFormats = 1U << 20;
constexpr std::size_t kLongestName = 255;  // bytes

std::string text_of_size(Cursor& in, std::uint64_t size) { return std::string(as_text(in.take_bytes(size))); }

// "header_page" NUL, u64 size, bytes.
Result<> read_named(Cursor& in, std::string_view name, std::string& out) {
  if (in.terminated() != name) return Error{std::string(name) + " is missing"};
  out = text_of_size(in, in.u64());
  if (in.failed()) return Error{std::string(name) + " is truncated"};
  return Done{};
}

Result<> read_formats(Cursor& in, TracingData& out) {
  const std::uint32_t ftrace = in.u32();
  if (ftrace > kMaxFormats) return Error{std::to_string(ftrace) + " ftrace formats are too many"};
  for (std::uint32_t i = 0; i < ftrace && !in.failed(); ++i)
    out.ftrace_formats.push_back(text_of_size(in, in.u64()));
  const std::uint32_t systems = in.u32();
  if (systems > kMaxSystems) return Error{std::to_string(systems) + " tracepoint systems are too many"};
  for (std::uint32_t i = 0; i < systems && !in.failed(); ++i) {
    const std::string system(in.terminated());
    // The limit of a folder's name in tracefs: each format keeps a copy.
    if (system.size() > kLongestName)
      return Error{"a tracepoint system has a name of " + std::to_string(system.size()) + " bytes"};
    const std::uint32_t count = in.u32();
    if (count > kMaxFormats) return Error{"system '" + system + "' has too many formats"};
    for (std::uint32_t k = 0; k < count && !in.failed(); ++k)
      out.formats.push_back({system, text_of_size(in, in.u64())});
  }
  if (in.failed()) return Error{"tracepoint formats are truncated"};
  return Done{};
}

}  // namespace

std::optional<std::uint64_t> tracepoint_id(std::string_view format_text) {
  const auto at = format_text.find("ID: ");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = format_text.substr(at + 4);
  std::uint64_t id = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), id).ec != std::errc{})
    return std::nullopt;
  return id;
}

Result<TracingData> parse_tracing_data(Bytes section) {
  Cursor start(section);
  if (start.text(kMagic.size()) != kMagic) return Error{"does not start with the tracing magic"};
  const std::string_view version = start.terminated();
  TracingData data;
  data.is_big_endian = start.u8() != 0;
  data.long_size = start.u8();
  // From here on numbers have the recording machine's byte order.
  Cursor in(start.rest(), data.is_big_endian ? std::endian::big : std::endian::little);
  data.page_size = in.u32();
  if (start.failed() || in.failed()) return Error{"is truncated"};
  if (auto page = read_named(in, "header_page", data.header_page); !page) return std::move(page.error());
  if (auto event = read_named(in, "header_event", data.header_event); !event) return std::move(event.error());
  if (auto formats = read_formats(in, data); !formats) return std::move(formats.error());
  in.skip(in.u32());  // kallsyms: perf always writes none
  data.printk_formats = text_of_size(in, in.u32());
  if (version >= "0.6") data.saved_cmdlines = text_of_size(in, in.u64());
  if (in.failed()) return Error{"is truncated after the tracepoint formats"};
  return data;
}

void write_tracing_data(ByteWriter& out, const TracingData& data) {
  const auto text = [&](std::string_view bytes) { out.bytes(std::as_bytes(std::span(bytes))); };
  const auto terminated = [&](std::string_view bytes) {
    text(bytes);
    out.u8(0);
  };
  // Numbers keep the byte order of the data, which is also that of the payloads.
  const bool is_foreign = data.is_big_endian != (std::endian::native == std::endian::big);
  const auto u32 = [&](std::size_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    out.u32(is_foreign ? Cursor::swapped(number) : number);
  };
  const auto sized = [&](std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    out.u64(is_foreign ? Cursor::swapped(size) : size);
    text(bytes);
  };
  text(kMagic);
  terminated("0.6");
  out.u8(data.is_big_endian ? 1 : 0).u8(data.long_size);
  u32(data.page_size);
  terminated("header_page");
  sized(data.header_page);
  terminated("header_event");
  sized(data.header_event);
  u32(data.ftrace_formats.size());
  for (const std::string& format : data.ftrace_formats) sized(format);
  // Formats are grouped by system.
  std::vector<std::span<const TracepointFormat>> systems;
  for (std::span<const TracepointFormat> rest(data.formats); !rest.empty();) {
    const auto end = std::ranges::find_if_not(
        rest, [&](const std::string& system) { return system == rest.front().system; },
        &TracepointFormat::system);
    systems.push_back(rest.first(static_cast<std::size_t>(end - rest.begin())));
    rest = rest.subspan(systems.back().size());
  }
  u32(systems.size());
  for (const auto formats : systems) {
    terminated(formats.front().system);
    u32(formats.size());
    for (const TracepointFormat& format : formats) sized(format.text);
  }
  u32(0);  // kallsyms
  u32(data.printk_formats.size());
  text(data.printk_formats);
  sized(data.saved_cmdlines);
}

ConstantStrings::ConstantStrings(std::string_view printk_formats) {
  for (std::size_t at = 0; at < printk_formats.size();) {
    const auto end = std::min(printk_formats.find('\n', at), printk_formats.size());
    std::string_view line = printk_formats.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("0x")) line.remove_prefix(2);
    Row row;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), row.address, 16);
    line.remove_prefix(static_cast<std::size_t>(parsed.ptr - line.data()));
    constexpr std::string_view kBetween = " : \"", kEnd = "\"";
    if (parsed.ec != std::errc{} || !line.starts_with(kBetween)) continue;
    line.remove_prefix(kBetween.size());
    if (line.ends_with(kEnd)) line.remove_suffix(kEnd.size());
    if (line.ends_with("\\n")) line.remove_suffix(2);
    row.text = line.substr(0, line.find('\0'));  // libtraceevent takes C strings
    rows_.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows_, {}, &Row::address);
  const auto is_same = [](const Row& a, const Row& b) { return a.address == b.address; };
  rows_.erase(std::unique(rows_.begin(), rows_.end(), is_same), rows_.end());
}

const std::string* ConstantStrings::find_string(std::uint64_t address) const {
  const auto row = std::ranges::lower_bound(rows_, address, {}, &Row::address);
  return row == rows_.end() || row->address != address ? nullptr : &row->text;
}

}  // namespace tacho::format
