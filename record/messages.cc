#include "record/messages.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "cli/options.h"

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

void Messages::print(std::string_view line) const {
  write_patiently(STDERR_FILENO, fmt::format("tacho record: {}\n", cli::printable_message(line)), *patience_);
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
    write_patiently(STDERR_FILENO, fmt::format("[ tacho record: {} ]\n", cli::printable_message(line)),
                    *patience_);
}

void print_failure(const Error& error, std::string_view command) {
  milliseconds patience = kPatienceWithReaders;
  write_patiently(STDERR_FILENO, fmt::format("tacho {}: {}\n", command, cli::printable_message(error.what)),
                  patience);
}

int report_failure(const Error& error, std::string_view command) {
  print_failure(error, command);
  return cli::status_of(error);
}

int print_line(const std::string& line, std::string_view command) {
  const auto written = cli::write_stdout(line + '\n');
  return written ? cli::kWhole : report_failure(written.error(), command);
}

}  // namespace tacho::record
