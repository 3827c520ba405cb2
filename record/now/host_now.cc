#include "record/now/host_now.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include "record/host/report_program.h"

namespace tacho::record {

Result<format::Fd> memory_for_capture() {
  format::Fd memory(::memfd_create("tacho", MFD_CLOEXEC));
  if (!memory) return system_error("memory for a capture", errno);
  return memory;
}

Result<format::CaptureWriter> capture_in_memory(const format::Fd& memory, const format::EventSet& events,
                                                format::Features features) {
  format::Fd copy(::dup(memory.get()));
  if (!copy) return system_error("memory for a capture", errno);
  return format::CaptureWriter::create(std::move(copy), events, std::move(features),
                                       {.compression_level = {}});
}

Result<int> show_capture(std::vector<std::string> words, const format::Fd* memory, const PinnedFiles& pinned,
                         StopSignals& signals) {
  auto files = arguments_for(pinned);
  if (!files) return std::move(files.error());
  words.insert(words.end(), files->words.begin(), files->words.end());
  const int descriptor = memory == nullptr ? -1 : memory->get();
  if (memory != nullptr) files->inherited.push_back(descriptor);
  if (memory != nullptr)
    words.insert(words.end(),
                 {"-i", fmt::format("/proc/self/fd/{}", descriptor), "--input-name", "this host"});
  const auto child = start_report_program(std::move(words), STDOUT_FILENO, STDERR_FILENO, files->inherited);
  if (!child) return child.error();
  const format::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, *child, 0)));
  for (;;) {
    int status = 0;
    const pid_t got = ::waitpid(*child, &status, WNOHANG);
    if (got < 0 && errno != EINTR) return system_error("waiting for tacho-report", errno);
    if (got == *child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    constexpr int kLookEvery = 200;  // ms
    pollfd news[] = {{ended.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    (void)::poll(news, 2, ended ? kLookEvery : 1);
    if (signals.ends_start()) ::kill(-*child, SIGTERM);
  }
}

}  // namespace tacho::record
