#include "record/messages.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Whether bytes can be written without waiting longer than `patience`.
bool has_room(int fd, milliseconds& patience) {
  const auto began = Clock::now();
  pollfd room{fd, POLLOUT, 0};
  const int ready = poll(&room, 1, static_cast<int>(patience.count()));
  patience -= std::min(patience, std::chrono::duration_cast<milliseconds>(Clock::now() - began));
  return ready > 0 || (ready < 0 && errno == EINTR);
}

// Bytes at the start of `text` that must not reach a terminal as they are: control characters of ASCII and of
// Latin-1, and what turns the direction of writing. 0: none.
std::size_t length_of_hidden(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const unsigned first = byte(0);
  if ((first < 0x20 && first != '\n' && first != '\t') || first == 0x7f) return 1;
  if (first == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  const unsigned rest = byte(1) << 8U | byte(2);
  const bool turns = rest == 0x808e || rest == 0x808f || (rest >= 0x80aa && rest <= 0x80ae) ||
                     (rest >= 0x81a6 && rest <= 0x81a9);
  return first == 0xe2 && turns ? 3 : 0;
}

}  // namespace

void write_patiently(int fd, std::string_view bytes, milliseconds& patience) {
  while (!bytes.empty() && has_room(fd, patience)) {
    // A pipe that can be written to at all takes PIPE_BUF bytes without waiting.
    const ssize_t written = write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return;  // the reader is gone: the recording goes on
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

std::string shown_safely(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t hidden = length_of_hidden(text.substr(at));
    for (std::size_t i = 0; i < hidden; ++i)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    if (hidden == 0) out += text[at];
    at += std::max<std::size_t>(hidden, 1);
  }
  return out;
}

void Messages::print(std::string_view line) const {
  write_patiently(STDERR_FILENO, fmt::format("tacho record: {}\n", shown_safely(line)), *patience_);
}
void Messages::note(std::string_view line) const {
  if (!quiet_) print(line);
}
void Messages::detail(std::string_view line) const {
  if (verbose_) print(line);
}
void Messages::warn(std::string_view line) const { print(line); }
void Messages::bracketed(std::string_view line) const {
  if (!quiet_)
    write_patiently(STDERR_FILENO, fmt::format("[ tacho record: {} ]\n", shown_safely(line)), *patience_);
}

void tell_failure(const Error& error, std::string_view command) {
  milliseconds patience = kPatienceWithReaders;
  write_patiently(STDERR_FILENO, fmt::format("tacho {}: {}\n", command, shown_safely(error.what)), patience);
}

}  // namespace tacho::record
