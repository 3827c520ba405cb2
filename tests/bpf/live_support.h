// What live tests of BPF need: a reason to skip, a source file, and an event to receive what a program
// writes.
#pragma once

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "bpf/object/compile.h"
#include "format/base/file.h"

namespace tacho::bpf::live {

// Empty when programs can be compiled and loaded here.
inline std::string why_skip() {
  if (::geteuid() != 0) return "needs root";
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) return "needs a kernel with BTF";
  if (!find_clang()) return "needs clang";
  return "";
}

// A program with what nearly every one has: headers, license, a channel and OUT(number).
class Source {
 public:
  explicit Source(const std::string& body, const std::string& name = "program.bpf.c")
      : folder_(std::move(*PrivateFolder::create())), path_(folder_.path() + "/" + name) {
    std::ofstream(path_)
        << "#include \"vmlinux.h\"\n#include <bpf/bpf_helpers.h>\n#include <bpf/bpf_tracing.h>\n"
           "#include <tacho/event.h>\nchar LICENSE[] SEC(\"license\") = \"Dual BSD/GPL\";\n"
           "struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __uint(max_entries, 1); }"
           " channel SEC(\".maps\");\n"
           "#define OUT(number) ({ __u64 out = (number); bpf_perf_event_output(ctx, &channel, "
           "BPF_F_CURRENT_CPU, &out, sizeof out); 1; })\n"
        << body;
  }
  const std::string& path() const { return path_; }

 private:
  PrivateFolder folder_;
  std::string path_;
};

// What a program sent: the first eight bytes of the payload, and in which process.
struct Arrival {
  pid_t process;
  std::uint64_t number;
};

// A bpf-output event of one CPU with its ring.
class Receiver {
 public:
  explicit Receiver(int cpu) : cpu_(cpu) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_BPF_OUTPUT;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_RAW;
    attr.sample_period = 1;
    event_ = format::Fd(
        static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    const auto size = static_cast<std::size_t>(257 * ::sysconf(_SC_PAGESIZE));
    void* ring = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, event_.get(), 0);
    if (ring != MAP_FAILED) ring_ = format::Mapping(ring, size);
  }
  int cpu() const { return cpu_; }
  int fd() const { return event_.get(); }
  std::vector<Arrival> arrivals() const {
    std::vector<Arrival> found;
    if (ring_.bytes().empty()) return found;
    const auto* page = reinterpret_cast<const perf_event_mmap_page*>(ring_.bytes().data());
    const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    const auto data = ring_.bytes().subspan(page->data_offset, page->data_size);
    format::Cursor in(data.first(std::min<std::uint64_t>(head, data.size())));
    while (in.left() >= 28) {
      in.skip(6);
      const std::uint16_t size = in.u16();
      format::Cursor body(in.take_bytes(size - 8U));
      const auto process = static_cast<pid_t>(body.u32());
      body.skip(4 + 4);  // thread, size of what follows
      found.push_back({process, body.u64()});
    }
    return found;
  }

 private:
  int cpu_;
  format::Fd event_;
  format::Mapping ring_;
};

inline std::vector<Receiver> receivers() {
  std::vector<Receiver> all;
  for (int cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_ONLN); ++cpu) all.emplace_back(cpu);
  return all;
}

inline std::vector<Arrival> arrivals(const std::vector<Receiver>& all) {
  std::vector<Arrival> found;
  for (const Receiver& each : all) {
    const auto more = each.arrivals();
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

inline std::vector<std::uint64_t> received(const std::vector<Receiver>& all) {
  std::vector<std::uint64_t> numbers;
  for (const Arrival& each : arrivals(all)) numbers.push_back(each.number);
  return numbers;
}

}  // namespace tacho::bpf::live
