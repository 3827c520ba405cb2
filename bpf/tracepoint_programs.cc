#include "bpf/tracepoint_programs.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "bpf/return_value.h"
#include "format/file.h"

namespace tacho::bpf {
namespace {

constexpr std::size_t kMostPrograms = 64;                      // the kernel takes no more on a tracepoint
constexpr std::uint32_t kMostInstructionBytes = 8U * 1000000;  // what its verifier takes

// struct perf_event_query_bpf, whose array of unknown length C++ cannot declare.
struct Query {
  std::uint32_t room = kMostPrograms, count = 0;
  std::array<std::uint32_t, kMostPrograms> ids{};
};

TracepointProgram describe(std::uint32_t id) {
  TracepointProgram program{id, {}, true};
  const format::Fd fd(bpf_prog_get_fd_by_id(id));
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (!fd || bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) return program;
  program.name.assign(info.name, ::strnlen(info.name, sizeof info.name));
  const std::uint32_t length = info.xlated_prog_len;
  if (length == 0 || length > kMostInstructionBytes) return program;
  std::vector<std::byte> instructions(length);
  info = {};
  info.xlated_prog_insns = reinterpret_cast<std::uint64_t>(instructions.data());
  info.xlated_prog_len = length;
  size = sizeof info;
  const bool is_told = bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0 && info.xlated_prog_insns != 0 &&
                       info.xlated_prog_len == length;
  program.may_drop = !is_told || may_drop_events(instructions);
  return program;
}

}  // namespace

std::vector<TracepointProgram> programs_on_tracepoint(int event_fd) {
  Query query;
  std::vector<TracepointProgram> programs;
  if (::ioctl(event_fd, PERF_EVENT_IOC_QUERY_BPF, &query) != 0) return programs;
  const std::size_t count = std::min<std::size_t>(query.count, query.ids.size());
  for (const std::uint32_t id : std::span(query.ids).first(count)) programs.push_back(describe(id));
  return programs;
}

}  // namespace tacho::bpf
