#include "record/events/call_graph.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tacho::record {
namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::uint32_t> parse_stack_bytes(std::string_view text) {
  const auto bytes = number_in(text);
  const std::uint64_t rounded = bytes.value_or(0) > kMostStackBytes ? 0 : (bytes.value_or(0) + 7) / 8 * 8;
  if (rounded == 0) {
    return use_error(
        fmt::format("'{}' is no size of a piece of stack: 1 to {} bytes", text, kMostStackBytes));
  }
  return static_cast<std::uint32_t>(rounded);
}

Result<StackOptions> parse_call_graph(std::string_view text) {
  const std::string_view method = text.substr(0, text.find(','));
  const bool has_more = method.size() != text.size();
  const std::string_view more = has_more ? text.substr(method.size() + 1) : std::string_view{};
  StackOptions out;
  if (method == "fp" || method == "eh") {
    out.method = method == "fp" ? CallGraph::FramePointers : CallGraph::Unwound;
    if (!has_more) return out;
    const auto frames = number_in(more);
    const std::uint64_t most = method == "fp" ? kMostStackFrames : kMostUnwoundFrames;
    if (!frames || *frames == 0 || *frames > most)
      return use_error(fmt::format("'{}' is no number of frames: 1 to {}", more, most));
    out.max_frames = static_cast<std::uint16_t>(*frames);
    return out;
  }
  if (method == "dwarf") {
    out.method = CallGraph::Dwarf;
    if (!has_more) return out;
    const auto bytes = parse_stack_bytes(more);
    if (!bytes) return bytes.error();
    out.bytes = *bytes;
    return out;
  }
  if (method == "lbr" && !has_more) {
    out.method = CallGraph::LastBranches;
    return out;
  }
  return use_error(fmt::format(
      "'{}' is not understood; known: fp[,FRAMES] (frame pointers), dwarf[,BYTES] (a piece of "
      "the stack, unwound "
      "when the capture is read), lbr (the processor's branch records), eh[,FRAMES] (unwound in the kernel, "
      "from the binaries' own unwind information)",
      text));
}

}  // namespace tacho::record
