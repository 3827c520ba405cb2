#include "bpf/attach/raw_program.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tacho::bpf {

Result<format::Fd> load_program(bpf_prog_type type, const char* name, std::span<const bpf_insn> program,
                                const std::string& what) {
  format::Fd loaded(bpf_prog_load(type, name, "GPL", program.data(), program.size(), nullptr));
  if (loaded) return loaded;
  return system_error(what, errno);
}

// Not by libbpf, which would enable the event now and close it later.
Result<format::Fd> link_to_event(int program, int event_fd, std::uint64_t cookie) {
  LIBBPF_OPTS(bpf_link_create_opts, options);
  options.perf_event.bpf_cookie = cookie;
  format::Fd link(bpf_link_create(program, event_fd, BPF_PERF_EVENT, &options));
  if (link) return link;
  if (errno == EEXIST || errno == EBUSY) return Error{"the event already runs another BPF program", errno};
  return system_error("a BPF program cannot be attached to the event", errno);
}

Result<> run_once(int program_fd) {
  LIBBPF_OPTS(bpf_test_run_opts, options);
  const int code = bpf_prog_test_run_opts(program_fd, &options);
  if (code == 0) return Done{};
  return system_error("it cannot be run", -code);
}

Result<> run_iterator(int link_fd, RunUntil until) {
  const format::Fd reading(bpf_iter_create(link_fd));
  if (!reading) return system_error("the iterator cannot be opened", errno);
  return read_iterator(reading.get(), until);
}

Result<> read_iterator(int fd, RunUntil until) {
  std::array<char, 4096> written;
  for (;;) {
    const ssize_t count = ::read(fd, written.data(), written.size());
    if (count == 0) return Done{};
    // EAGAIN: the iterator visited many objects without output; continue.
    if (count < 0 && errno != EAGAIN && errno != EINTR)
      return system_error("the iterator cannot be read", errno);
    if (std::chrono::steady_clock::now() >= until)
      return Error{"the iterator did not end in time; it must visit fewer objects or write less", ETIMEDOUT};
  }
}

}  // namespace tacho::bpf
