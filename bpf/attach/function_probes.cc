#include "bpf/attach/function_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "bpf/attach/raw_program.h"
#include "bpf/support/kernel_support.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {

namespace {

// The argument of BPF_LINK_CREATE for uprobe.multi (Linux 6.6).
struct LinkAttr {
  std::uint32_t program_fd = 0, target_fd = 0;
  std::uint32_t attach_type = kFunctionsAttachType;
  std::uint32_t flags = 0;
  std::uint64_t path = 0, offsets = 0, counters = 0, cookies = 0;  // addresses
  std::uint32_t count = 0, probe_flags = 0, pid = 0, pad = 0;
};
static_assert(offsetof(LinkAttr, path) == 16 && sizeof(LinkAttr) == 64);

constexpr std::uint32_t kAtReturn = 1;

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// Whether the kernel filters by process. Linux 6.6 to 6.9 filter by thread, and miss calls of the process's
// other threads. Later ones refuse pid -1 (EINVAL) before they look at the path; these fail at the path.
bool compares_processes(int program_fd) {
  const std::uint64_t offset = 0;
  LinkAttr attr;
  attr.program_fd = static_cast<std::uint32_t>(program_fd);
  attr.path = address_of("/");
  attr.offsets = address_of(&offset);
  attr.count = 1;
  attr.pid = ~0U;
  const long link = ::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  const int why = errno;
  if (link >= 0) ::close(static_cast<int>(link));
  return link < 0 && why == EINVAL;
}

}  // namespace

ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target) {
  if (section_target.empty()) return {targets.offsets, targets.cookies};
  ChosenFunctions chosen;
  std::string_view rest = section_target;
  for (std::uint64_t number = 0; !rest.empty(); ++number) {
    const auto found = std::ranges::find(targets.names, format::take_until(rest, ','));
    if (found == targets.names.end()) continue;
    chosen.offsets.push_back(targets.offsets[static_cast<std::size_t>(found - targets.names.begin())]);
    chosen.cookies.push_back(number);
  }
  return chosen;
}

Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end) {
  // For all processes, unless the user named one: a filter by process misses the processes that it starts.
  LinkAttr attr;
  attr.program_fd = static_cast<std::uint32_t>(program_fd);
  attr.path = address_of(targets.path.c_str());
  attr.offsets = address_of(functions.offsets.data());
  attr.cookies = functions.cookies.empty() ? 0 : address_of(functions.cookies.data());
  attr.count = static_cast<std::uint32_t>(functions.offsets.size());
  attr.probe_flags = end == FunctionEnd::Return ? kAtReturn : 0;
  const bool one_process = targets.process > 0 && compares_processes(program_fd);
  attr.pid = one_process ? static_cast<std::uint32_t>(targets.process) : 0;
  const long link = ::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  if (link < 0) return system_error(targets.path, errno);
  return format::Fd(static_cast<int>(link));
}

ChosenFunctions part_of(const ChosenFunctions& functions, std::size_t from, std::size_t to) {
  const auto cut = [&](const std::vector<std::uint64_t>& all) {
    if (all.empty()) return all;
    return std::vector<std::uint64_t>(all.begin() + static_cast<std::ptrdiff_t>(from),
                                      all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  return {cut(functions.offsets), cut(functions.cookies)};
}

Result<std::vector<OwnedLink>> probe_one_by_one(const bpf_program* program, const FunctionTargets& targets,
                                                const ChosenFunctions& functions, FunctionEnd end) {
  std::vector<OwnedLink> links;
  for (std::size_t i = 0; i < functions.offsets.size(); ++i) {
    errno = 0;
    LIBBPF_OPTS(bpf_uprobe_opts, options);
    options.retprobe = end == FunctionEnd::Return;
    options.bpf_cookie = functions.cookies.empty() ? 0 : functions.cookies[i];
    bpf_link* const link =
        bpf_program__attach_uprobe_opts(program, targets.process, targets.path.c_str(),
                                        static_cast<std::size_t>(functions.offsets[i]), &options);
    if (link != nullptr)
      links.emplace_back(link);
    else if (errno != kNotSupportedInKernel)
      return system_error(targets.path, errno);
  }
  return links;
}

namespace {

constexpr std::string_view kPmu = "/sys/bus/event_source/devices/kprobe/";
constexpr std::size_t kFewProbes = 50;
constexpr int kRetries = 3;
constexpr const char* kSubject = "probes on the kernel's functions";
constexpr const char* kTestFunction = "bpf_fentry_test1";
// Errnos that say nothing of a function; all others mean that it cannot be probed. To be tried again; then:
// rights, memory or descriptors are missing.
constexpr int kTransient[] = {EINTR, EAGAIN};
constexpr int kNotOfOneFunction[] = {EPERM, EACCES, ENOMEM, E2BIG, EMFILE, ENFILE};

// The number in a file of sysfs, after the text `before`.
std::optional<std::uint32_t> number_in(const std::string& path, std::string_view before) {
  const auto bytes = format::read_file(path);
  if (!bytes) return std::nullopt;
  std::string_view text = format::as_text(*bytes);
  return format::take_prefix(text, before) ? format::take_number<std::uint32_t>(text) : std::nullopt;
}

// The kprobe PMU: its type, and the config bit for return probes.
struct SingleProbes {
  std::uint32_t type = 0, return_bit = 0;
};
Result<SingleProbes> single_probes() {
  const auto type = number_in(std::string(kPmu) + "type", "");
  const auto bit = number_in(std::string(kPmu) + "format/retprobe", "config:");
  constexpr std::uint32_t kBits = 32;
  if (type && bit && *bit < kBits) return SingleProbes{*type, *bit};
  return Error{
      "this kernel has no probes on its functions (CONFIG_KPROBE_EVENTS, or CONFIG_FPROBE for many at "
      "once)",
      EOPNOTSUPP};
}

Result<format::Fd> link_together(int program_fd, const ChosenFunctions& functions, FunctionEnd end) {
  LIBBPF_OPTS(bpf_link_create_opts, options);
  std::vector<unsigned long> addresses(functions.offsets.begin(), functions.offsets.end());
  options.kprobe_multi.addrs = addresses.data();
  options.kprobe_multi.cookies =
      functions.cookies.empty() ? nullptr : reinterpret_cast<const __u64*>(functions.cookies.data());
  options.kprobe_multi.cnt = static_cast<__u32>(addresses.size());
  options.kprobe_multi.flags = end == FunctionEnd::Return ? BPF_F_KPROBE_MULTI_RETURN : 0;
  format::Fd link(bpf_link_create(program_fd, 0, BPF_TRACE_KPROBE_MULTI, &options));
  if (!link) return system_error(kSubject, errno);
  return link;
}

// Opens a kprobe event and attaches the program to it; it stays as long as the link.
format::Fd link_one(int program_fd, std::uint32_t pmu, std::uint32_t config, std::uint64_t address,
                    std::uint64_t cookie) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = pmu;
  attr.config = config;
  attr.kprobe_addr = address;
  const format::Fd event(
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return {};
  LIBBPF_OPTS(bpf_link_create_opts, options);
  options.perf_event.bpf_cookie = cookie;
  return format::Fd(bpf_link_create(program_fd, event.get(), BPF_PERF_EVENT, &options));
}

// "126 functions: 252 probes detached in 0.412 s".
std::string timing_text(std::size_t functions, std::size_t links, const char* what,
                        std::chrono::steady_clock::time_point begin) {
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%ld.%03ld", passed / 1000, passed % 1000);
  return std::to_string(functions) + " functions: " + std::to_string(links) + " probes " + what + " in " +
         seconds + " s";
}

}  // namespace

bool has_kprobe_multi() {
  const LibbpfLog quiet;
  Assembler nothing;
  nothing.exit_with(0);
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = BPF_TRACE_KPROBE_MULTI;
  const auto code = nothing.instructions();
  const format::Fd program(
      bpf_prog_load(BPF_PROG_TYPE_KPROBE, "tacho_trial", "GPL", code.data(), code.size(), &options));
  LIBBPF_OPTS(bpf_link_create_opts, link_options);
  const char* symbols[] = {kTestFunction};
  link_options.kprobe_multi.syms = symbols;
  link_options.kprobe_multi.cnt = 1;
  const format::Fd link(program ? bpf_link_create(program.get(), 0, BPF_TRACE_KPROBE_MULTI, &link_options)
                                : -1);
  return static_cast<bool>(link);
}

Result<> check_single_kprobes() {
  const auto single = single_probes();
  return single ? Result<>(Done{}) : Result<>(single.error());
}

KernelProbes::~KernelProbes() {
  if (links_.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t links = links_.size();
  if (is_one_by_one_ && links > kFewProbes && notice_)
    say(notice_, "detaching " + std::to_string(links) + " probes, which takes some seconds on this kernel");
  links_.clear();
  if (log_) say(log_, timing_text(functions_, links, "detached", begin));
}

Result<std::size_t> link_functions(const ChosenFunctions& functions, const LinkFunctions& link,
                                   std::vector<format::Fd>& links) {
  const auto failed_with = [](const Result<format::Fd>& made, std::span<const int> codes) {
    return !made && std::ranges::find(codes, made.error().code) != codes.end();
  };
  auto made = link(functions);
  for (int again = 0; again < kRetries && failed_with(made, kTransient); ++again) made = link(functions);
  if (made) {
    links.push_back(std::move(*made));
    return std::size_t{0};
  }
  if (made.error().code == EMFILE)
    return Error{std::string(kSubject) + ": too many open files; raise `ulimit -n`", EMFILE};
  if (failed_with(made, kTransient) || failed_with(made, kNotOfOneFunction)) return std::move(made.error());
  // The kernel refuses the whole link if it refuses one function: bisects to find that one.
  const std::size_t count = functions.offsets.size();
  if (count <= 1) return count;
  auto first = link_functions(part_of(functions, 0, count / 2), link, links);
  if (!first) return first;
  auto second = link_functions(part_of(functions, count / 2, count), link, links);
  if (!second) return second;
  return *first + *second;
}

Result<std::size_t> KernelProbes::add_one_by_one(int program_fd, const ChosenFunctions& functions,
                                                 FunctionEnd end) {
  const auto single = single_probes();
  if (!single) return single.error();
  const std::uint32_t config = end == FunctionEnd::Return ? 1U << single->return_bit : 0;
  int why = 0;
  const auto link = [&](const ChosenFunctions& one) -> Result<format::Fd> {
    auto made = link_one(program_fd, single->type, config, one.offsets.front(),
                         one.cookies.empty() ? 0 : one.cookies.front());
    if (made) return made;
    why = errno;
    return system_error(kSubject, why);
  };
  is_one_by_one_ = true;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < functions.offsets.size(); ++i) {
    const auto left_out = link_functions(part_of(functions, i, i + 1), link, links_);
    if (!left_out) return left_out;
    refused += *left_out;
  }
  if (refused == functions.offsets.size() && why != 0) return system_error(kSubject, why);
  return refused;
}

Result<> KernelProbes::add_program(int program_fd, const FunctionTargets& targets, FunctionEnd end) {
  const ChosenFunctions functions{targets.offsets, targets.cookies};
  if (functions.offsets.empty()) return Error{"no kernel functions were named", ENOENT};
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t before = links_.size();
  const auto together = [&](const ChosenFunctions& some) { return link_together(program_fd, some, end); };
  const auto refused = targets.one_by_one ? add_one_by_one(program_fd, functions, end)
                                          : link_functions(functions, together, links_);
  if (!refused) return refused.error();
  if (*refused == functions.offsets.size())
    return Error{"the kernel refuses probes on all of these functions", EOPNOTSUPP};
  refused_ = std::max(refused_, *refused);
  functions_ = functions.offsets.size() - refused_;
  log_ = targets.log;
  notice_ = targets.notice;
  if (log_) say(log_, timing_text(functions_, links_.size() - before, "attached", begin));
  return Done{};
}

}  // namespace tacho::bpf
