#include "report/decode/comments.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "format/base/printable.h"

namespace tacho::report {
namespace {

constexpr std::string_view kCommentsAttachment = "comments";
constexpr std::uint64_t kMostComments = std::uint64_t{1} << 20;  // bytes

}  // namespace

Result<format::Attachment> attach_comments(const std::vector<std::string>& lines, const std::string& source) {
  std::string text;
  for (const std::string& line : lines) {
    if (text.size() + line.size() >= kMostComments) break;
    text += line + "\n";
  }
  return format::pack_attachment(std::string(kCommentsAttachment), source, std::as_bytes(std::span(text)));
}

std::vector<std::string> attached_comments(const format::Features& features) {
  const format::Attachment* const attached = features.attachment(kCommentsAttachment);
  if (attached == nullptr) return {};
  const auto text = format::unpack_attachment(*attached, kMostComments);
  std::vector<std::string> lines;
  for (std::string_view rest = text ? format::as_text(*text) : std::string_view(); !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    lines.push_back(format::printable(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

}  // namespace tacho::report
