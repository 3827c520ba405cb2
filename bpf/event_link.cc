#include "bpf/event_link.h"

#include <bpf/bpf.h>

#include <cerrno>

namespace tacho::bpf {

// Not through libbpf's own links, which would enable the event at once and close it in the end.
Result<format::Fd> link_to_event(int program, int event_fd, std::uint64_t number) {
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.perf_event.bpf_cookie = number;
  format::Fd link(bpf_link_create(program, event_fd, BPF_PERF_EVENT, &options));
  if (link) return link;
  if (errno == EEXIST || errno == EBUSY) return Error{"the event runs another BPF program already", errno};
  return system_error("a BPF program cannot be attached to the event", errno);
}

}  // namespace tacho::bpf
