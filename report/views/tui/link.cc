#include "report/views/tui/link.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "format/base/printable.h"

namespace tacho::report {

std::optional<KeyPress> Link::show(Frame frame) {
  frame.begins = std::exchange(begins_, false);
  out_.text(encode(frame));
  out_.flush();
  if (out_.is_done()) return std::nullopt;
  std::array<std::byte, kKeyBytes> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = ::read(keys_, bytes.data() + got, bytes.size() - got);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return std::nullopt;
    got += static_cast<std::size_t>(more);
  }
  auto press = decode_key(bytes);
  if (!press) return std::nullopt;
  size_ = press->size;
  return *press;
}

std::optional<KeyPress> Link::ask() {
  Frame frame(size_);
  frame.rows.clear();
  frame.waits = frame.draws = false;
  return show(std::move(frame));
}

ScreenSize Link::size() {
  if (begins_) {
    Frame first(size_);
    first.waits = false;
    (void)show(std::move(first));
  }
  return size_;
}

Result<std::optional<std::string>> Link::save(Frame frame, SavedAs as, const std::string& name,
                                              std::span<const format::Bytes> parts) {
  if (::lseek(saved_file_, 0, SEEK_SET) < 0) return system_error("the file in memory", errno);
  std::uint64_t size = 0;
  for (format::Bytes left : parts) {
    while (!left.empty()) {
      const ssize_t count = ::write(saved_file_, left.data(), left.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error("the file in memory", errno);
      left = left.subspan(static_cast<std::size_t>(count));
      size += static_cast<std::uint64_t>(count);
    }
  }
  frame.saved_bytes = size;
  frame.saved_as = as;
  frame.saved_name = name;
  const auto answer = show(std::move(frame));
  if (!answer) return std::optional<std::string>();
  const bool is_saved = answer->key == Key::Saved;
  const std::string path = printable(saved_path(as, name, is_saved ? answer->column : 0));
  if (!is_saved) return system_error(path, answer->column);
  return std::optional(path);
}

}  // namespace tacho::report
