#include "record/doctor/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "bpf/attach/follower.h"
#include "bpf/object/compile.h"
#include "bpf/support/kernel_support.h"
#include "bpf/unwinder/stack_walker.h"
#include "cli/completion.h"
#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "record/events/target.h"
#include "record/host/running_kernel.h"
#include "record/kernel/perf_event.h"
#include "record/list/listing.h"
#include "record/messages.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

// Checks the effective rights: access(2) does not count capabilities of users other than root.
bool can_access(const std::string& path, int how) {
  return faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0;
}
bool exists(const std::string& path) { return can_access(path, F_OK); }

// The word in brackets, of "none [integrity] confidentiality".
std::string lockdown_of(const std::string& text) {
  const auto begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos ? ""
                                                                : text.substr(begin + 1, end - begin - 1);
}

std::string refusal_of(const PlannedEvent& event, int task, int cpu) {
  const auto fd = open_event(event, task, cpu);
  return fd ? std::string() : std::strerror(fd.error().code);
}

void try_events(HostFacts& facts) {
  PlannedEvent event = trial_clock();
  const int cpu = facts.host.online_cpus.empty() ? 0 : facts.host.online_cpus.front();
  facts.system_refusal = refusal_of(event, -1, cpu);
  facts.kernel_refusal = refusal_of(event, 0, -1);
  event.attr.flags |= abi::kExcludeKernel | abi::kExcludeHv;
  facts.own_refusal = refusal_of(event, 0, -1);
  PlannedEvent cycles = event;
  cycles.attr.type = abi::kHardware;
  cycles.attr.config = 0;
  facts.hardware_refusal = refusal_of(cycles, 0, -1);
  PlannedEvent newer = event;
  newer.attr.read_format |= abi::kReadLost;
  facts.counts_losses = refusal_of(newer, 0, -1).empty();
  newer = event;
  newer.attr.flags |= abi::kMmap | abi::kMmap2 | abi::kBuildId;
  facts.has_build_ids = refusal_of(newer, 0, -1).empty();
  facts.cgroup_refusal = "no cgroup file system is mounted";
  if (facts.cgroup_mount.empty()) return;
  if (const auto root = open_cgroup(facts.cgroup_mount, "/")) {
    event = trial_clock();
    event.cgroup = root->get();
    facts.cgroup_refusal = refusal_of(event, -1, cpu);
  }
}

void look_at_names(HostFacts& facts) {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (!facts.tracefs.empty() || !exists(std::string(folder) + "/events")) continue;
    facts.tracefs = folder;
    facts.can_read_tracefs = can_access(facts.tracefs + "/events/sched/sched_switch/format", R_OK);
  }
  // Without the right to search the directory its content is invisible, but mountinfo shows the mount.
  if (facts.tracefs.empty() && text_of_file("/proc/self/mountinfo").find(" - tracefs ") != std::string::npos)
    facts.tracefs = "/sys/kernel/tracing";
  facts.shows_kernel_symbols = find_kernel_text(text_of_file("/proc/kallsyms")).has_value();
  facts.kptr_restrict = number_at<int>(text_of_file("/proc/sys/kernel/kptr_restrict"));
  facts.has_btf = can_access("/sys/kernel/btf/vmlinux", R_OK);
}

std::uint64_t hard_limit(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  return getrlimit(which, &limit) == 0 ? limit.rlim_max : 0;
}

HostFacts look_at_host() {
  HostFacts facts;
  const auto [release, machine] = bpf::kernel_name();
  facts.kernel = release;
  facts.machine = machine;
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0) facts.program.assign(self.data(), static_cast<std::size_t>(length));
  facts.is_root = geteuid() == 0;
  facts.is_in_pid_namespace = bpf::is_in_pid_namespace();
  facts.is_in_user_namespace = bpf::is_in_user_namespace();
  const std::string status = text_of_file("/proc/self/status");
  facts.capabilities = number_at<std::uint64_t>(field_of_status(status, "CapEff"), 16);
  facts.lockdown = lockdown_of(text_of_file("/sys/kernel/security/lockdown"));
  if (auto host = read_host()) facts.host = std::move(*host);
  const std::string mounts = text_of_file("/proc/self/mountinfo");
  facts.cgroup_mount = cgroup_mount(mounts);
  facts.has_cgroups_v1 = mounts.find(" " + facts.cgroup_mount + " ") != std::string::npos &&
                         !exists(facts.cgroup_mount + "/cgroup.controllers");
  try_events(facts);
  look_at_names(facts);
  facts.has_kprobes = exists("/sys/bus/event_source/devices/kprobe/type");
  facts.has_uprobes = exists("/sys/bus/event_source/devices/uprobe/type");
  facts.programs = bpf::try_programs();
  if (const auto walker = bpf::StackWalker::load({}, {}); !walker)
    facts.unwinding_refusal = walker.error().what;
  if (auto clang = bpf::find_clang()) facts.clang = std::move(*clang);
  facts.ring_kib = number_at<std::uint64_t>(text_of_file("/proc/sys/kernel/perf_event_mlock_kb"));
  facts.locked_bytes = hard_limit(RLIMIT_MEMLOCK);
  facts.descriptors = hard_limit(RLIMIT_NOFILE);
  return facts;
}

using State = Finding::State;

struct Capability {
  unsigned bit;
  std::string_view name, loss;
};
constexpr std::array<Capability, 5> kCapabilities{
    {{38, "cap_perfmon", "processes of other users, kernel mode or -a"},
     {39, "cap_bpf", "BPF programs"},
     {34, "cap_syslog", "names of kernel functions"},
     {19, "cap_sys_ptrace", "symbols in processes of other users (their mappings cannot be read)"},
     {2, "cap_dac_read_search", "tracepoints (only root can read tracefs)"}}};
constexpr unsigned kSysAdmin = 21;
constexpr unsigned kIpcLock = 14;
constexpr std::uint64_t kRingBytes = (std::uint64_t{2} << 20) + (std::uint64_t{256} << 10);  // of a CPU
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

bool holds(const HostFacts& facts, unsigned bit) { return (facts.capabilities >> bit & 1) != 0; }
bool holds_or_admin(const HostFacts& facts, unsigned bit) {
  return holds(facts, bit) || holds(facts, kSysAdmin);
}

// The setcap command with every capability that the recorder can use. setcap replaces the set of the file, so
// all findings give this one command.
std::string grant(const HostFacts& facts) {
  std::string capabilities;
  for (const Capability& each : kCapabilities)
    capabilities += (capabilities.empty() ? "" : ",") + std::string(each.name);
  if (holds(facts, kSysAdmin)) capabilities += ",cap_sys_admin";
  if (holds(facts, kIpcLock)) capabilities += ",cap_ipc_lock";
  return "sudo setcap " + capabilities + "+ep " + cli::shell_word(facts.program);
}

// Root lacks rights only in a container.
std::string more_rights(const HostFacts& facts) {
  if (!facts.is_root) return grant(facts);
  return "allow perf_event_open in the container (docker run --cap-add PERFMON --cap-add BPF --security-opt "
         "seccomp=unconfined)";
}

Finding good(std::string name, std::string value) {
  return {std::move(name), State::Good, std::move(value), {}, {}};
}

Finding kernel(const HostFacts& facts) {
  const std::string value = facts.kernel + " (" + facts.machine + ")";
  if (!facts.has_build_ids)
    return {"kernel", State::Limited, value,
            "MMAP records have no build ids (before Linux 5.12): a file that changes later gives wrong "
            "symbols",
            ""};
  if (!facts.counts_losses)
    return {"kernel", State::Limited, value,
            "lost samples are counted by CPU, not by event (before Linux 6.0)", ""};
  return good("kernel", value);
}

Finding rights(const HostFacts& facts) {
  if (facts.is_in_user_namespace)
    return {"rights", State::Limited, "those of a user namespace (a rootless container)",
            "no -a, no kernel mode and no BPF programs, whatever its capabilities are",
            "record on the host, or in a container of the host's root"};
  std::string held, lacking, losses;
  for (const Capability& each : kCapabilities) {
    const bool is_held = holds(facts, each.bit) || (each.bit >= 38 && holds(facts, kSysAdmin));
    std::string& list = is_held ? held : lacking;
    list += (list.empty() ? "" : ",") + std::string(each.name);
    if (!is_held) losses += (losses.empty() ? "without them no " : "; no ") + std::string(each.loss);
  }
  if (lacking.empty()) return good("rights", facts.is_root ? "root" : "a user with " + held);
  return {"rights", State::Limited, std::string(facts.is_root ? "root" : "a user") + " without " + lacking,
          losses,
          facts.is_root ? "run outside of the container, or give it these capabilities (docker run --cap-add)"
                        : grant(facts) + "  (or run as root)"};
}

Finding pid_namespace(const HostFacts& facts) {
  if (!facts.is_in_pid_namespace) return good("pid namespace", "the host's");
  return {"pid namespace", State::Limited, "a container's",
          "with -a, processes outside of it have pid 0, and their user code has no stacks and no names",
          "record on the host, or in a container with its pid namespace (docker run --pid=host)"};
}

Finding paranoid(const HostFacts& facts) {
  Finding found = good("perf_event_paranoid", std::to_string(facts.host.perf_event_paranoid));
  if (holds_or_admin(facts, 38) || facts.host.perf_event_paranoid < 0) return found;
  found.state = State::Limited;
  found.consequence = facts.host.perf_event_paranoid >= 2
                          ? "without cap_perfmon only user mode of own processes can be recorded"
                          : "without cap_perfmon tracepoints cannot be recorded";
  found.remedy = "sudo sysctl kernel.perf_event_paranoid=-1";
  return found;
}

Finding sampling(std::string name, const std::string& refusal, State state, std::string consequence,
                 std::string remedy) {
  if (refusal.empty()) return good(std::move(name), "yes");
  return {std::move(name), state, "no: " + refusal, std::move(consequence), std::move(remedy)};
}

Finding tracepoints(const HostFacts& facts) {
  if (facts.can_read_tracefs) return good("tracepoints", facts.tracefs);
  if (facts.tracefs.empty()) {
    return {"tracepoints", State::Missing, "tracefs is not mounted", "tracepoints cannot be recorded",
            "sudo mount -t tracefs none /sys/kernel/tracing"};
  }
  return {"tracepoints", State::Missing, facts.tracefs + " is not readable for this user",
          "tracepoints cannot be recorded",
          "sudo mount -o remount,mode=755 " + facts.tracefs + "  (or run as root)"};
}

Finding kernel_names(const HostFacts& facts) {
  const std::string value = "kernel.kptr_restrict is " + std::to_string(facts.kptr_restrict);
  if (facts.shows_kernel_symbols) return good("kernel symbols", value);
  // kptr_restrict 0: readable by all users who may sample the kernel; 1: with CAP_SYSLOG; 2: by nobody.
  const std::string remedy = facts.kptr_restrict > 1 ? "sudo sysctl kernel.kptr_restrict=1  (and run as root)"
                             : facts.kptr_restrict == 1
                                 ? "sudo sysctl kernel.kptr_restrict=0  (or run as root)"
                                 : grant(facts) + "  (or run as root)";
  return {"kernel symbols", State::Limited, value + "; addresses in /proc/kallsyms are hidden",
          "kernel frames have no symbols", remedy};
}

Finding btf(const HostFacts& facts) {
  if (facts.has_btf) return good("BTF", "/sys/kernel/btf/vmlinux");
  return {"BTF", State::Missing, "the kernel has none",
          "BPF programs can be neither compiled nor attached to functions",
          "boot a kernel with CONFIG_DEBUG_INFO_BTF=y"};
}

Finding lockdown(const HostFacts& facts) {
  if (facts.lockdown != "confidentiality")
    return good("lockdown", facts.lockdown.empty() ? "none" : facts.lockdown);
  return {"lockdown", State::Limited, facts.lockdown,
          "BPF programs cannot read kernel memory, and perf events cannot sample kernel mode",
          "boot with lockdown=integrity"};
}

Finding probes(const HostFacts& facts) {
  const auto yes_or_no = [](bool has) { return std::string(has ? "yes" : "no"); };
  const std::string both =
      "kprobes: " + yes_or_no(facts.has_kprobes) + ", uprobes: " + yes_or_no(facts.has_uprobes);
  if (facts.has_kprobes && facts.has_uprobes) return good("probes", both);
  std::string targets, settings;
  const auto add_missing = [&](std::string_view target, std::string_view setting) {
    targets.append(targets.empty() ? "" : " and ").append(target);
    settings.append(settings.empty() ? "" : " and ").append(setting);
  };
  if (!facts.has_kprobes) add_missing("kernel functions", "CONFIG_KPROBE_EVENTS=y");
  if (!facts.has_uprobes) add_missing("user functions", "CONFIG_UPROBE_EVENTS=y");
  return {"probes", State::Limited, both, "events and BPF programs cannot be attached to " + targets,
          "boot a kernel with " + settings};
}

void programs(const HostFacts& facts, std::vector<Finding>& findings) {
  for (const bpf::ProgramTrial& trial : facts.programs) {
    // Uprobes run programs of the kind kprobe, also where the kernel has no kprobes.
    const bool is_for_uprobes = trial.kind == "kprobe" && !facts.has_kprobes;
    Finding found = good("BPF " + std::string(trial.kind), is_for_uprobes ? "yes, for uprobes" : "yes");
    if (!trial.refusal.empty()) {
      found.state = State::Missing;
      found.value = "no: " + trial.refusal;
      found.consequence = std::string(trial.usage) + " cannot be used";
      if (trial.kind == "fentry") found.remedy = "use a tracepoint instead: SEC(\"tp_btf/...\")";
      if (!holds_or_admin(facts, 39)) found.remedy = more_rights(facts);
    }
    findings.push_back(std::move(found));
  }
}

Finding unwinding(const HostFacts& facts) {
  if (facts.unwinding_refusal.empty()) return good("unwinding", "in the kernel (-g, --call-graph ehframe)");
  return {"unwinding", State::Limited, "not in the kernel: " + facts.unwinding_refusal,
          "-g records stack copies of 8 KB and unwinds them when the recording ends; --call-graph ehframe "
          "cannot be used",
          holds_or_admin(facts, 39) ? "" : more_rights(facts)};
}

Finding clang(const HostFacts& facts) {
  if (!facts.clang.empty()) return good("clang", facts.clang);
  return {"clang", State::Limited, "not found", "-e PROG.bpf.c cannot be compiled here; -e PROG.bpf.o works",
          "sudo apt-get install clang"};
}

Finding cgroups(const HostFacts& facts) {
  Finding found = good("cgroups", facts.cgroup_mount.empty()
                                      ? "not mounted"
                                      : std::string(facts.has_cgroups_v1 ? "version 1, " : "version 2, ") +
                                            facts.cgroup_mount);
  if (facts.cgroup_refusal.empty()) return found;
  found.state = State::Limited;
  found.value += "; no cgroup events: " + facts.cgroup_refusal;
  found.consequence = "-G cannot be used";
  if (!facts.system_refusal.empty()) found.remedy = "sudo sysctl kernel.perf_event_paranoid=-1";
  if (facts.cgroup_mount.empty()) found.remedy = "sudo mount -t cgroup2 none /sys/fs/cgroup";
  return found;
}

// Not limited with CAP_IPC_LOCK, or if perf_event_paranoid is -1.
Finding ring_memory(const HostFacts& facts) {
  const bool is_bound =
      !holds(facts, kIpcLock) && facts.host.perf_event_paranoid >= 0 && facts.locked_bytes < kUnlimited;
  const std::size_t cpus = facts.host.online_cpus.size();
  const std::uint64_t wanted = kRingBytes * cpus;
  const std::uint64_t allowed = (facts.ring_kib << 10) * cpus + facts.locked_bytes;
  const std::string needs =
      fmt::format("{:.1f} MB wanted for {} CPUs", static_cast<double>(wanted) / (1 << 20), cpus);
  if (!is_bound) return good("ring memory", needs + ", no limit");
  const std::string value =
      fmt::format("{}, {:.1f} MB allowed", needs, static_cast<double>(allowed) / (1 << 20));
  if (allowed >= wanted) return good("ring memory", value);
  return {"ring memory", State::Limited, value,
          "rings are smaller than the default, so more samples are lost",
          fmt::format("sudo sysctl kernel.perf_event_mlock_kb={}", (kRingBytes >> 10) + 32)};
}

Finding descriptors(const HostFacts& facts) {
  const std::uint64_t wanted = 64 + 16 * facts.host.online_cpus.size();
  if (facts.descriptors >= wanted) return good("descriptors", std::to_string(facts.descriptors));
  return {"descriptors", State::Limited, std::to_string(facts.descriptors),
          "an event needs one for each CPU and thread", "ulimit -Hn 65536  (as root)"};
}

Finding rate(const HostFacts& facts) {
  const std::string value = std::to_string(facts.host.max_sample_rate) + " Hz";
  if (facts.host.max_sample_rate >= 4000) return good("sample rate", value + " at most");
  return {"sample rate", State::Limited, value + " at most",
          "events are sampled at less than the default of 4000 Hz",
          "sudo sysctl kernel.perf_event_max_sample_rate=100000"};
}

std::string_view mark_of(State state) {
  constexpr std::array<std::string_view, 3> kMarks{"ok", "limited", "missing"};
  return kMarks.at(static_cast<std::size_t>(state));
}

cli::CommandLine command_line(bool& json) {
  cli::CommandLine line;
  line.program = "tacho doctor";
  line.synopsis = "[--json]";
  line.description =
      "Reports what this user can record on this host: for each capability its state, what cannot be "
      "recorded without it, and the command that fixes it. It opens events and loads empty BPF programs to "
      "see whether the kernel allows it, and changes nothing. tacho doctor FILE reports what a capture needs "
      "on another machine (tacho doctor FILE --help).";
  line.options = {
      cli::flag("--json",
                "One JSON object: recording (whether it is possible) and findings, each with name, "
                "state (ok, limited, missing), value, consequence and remedy",
                json)};
  line.epilog = "Exit status: 0 when recording is possible, 2 when it is not, 1 for a wrong command line.\n";
  return line;
}

}  // namespace

bool can_record(const HostFacts& facts) { return facts.own_refusal.empty() || facts.system_refusal.empty(); }

std::vector<Finding> judge(const HostFacts& facts) {
  const std::string remedy = more_rights(facts);
  std::vector<Finding> findings{
      kernel(facts),
      rights(facts),
      pid_namespace(facts),
      paranoid(facts),
      sampling("own processes", facts.own_refusal, State::Missing, "nothing can be recorded", remedy),
      sampling("kernel mode", facts.kernel_refusal, State::Limited,
               "own processes are recorded in user mode only: events get the modifier u", remedy),
      sampling("system-wide", facts.system_refusal, State::Limited, "-a, -C and -G cannot be used", remedy),
      sampling(
          "hardware counters", facts.hardware_refusal, State::Limited,
          "cycles, instructions and other counters cannot be recorded; use -e cpu-clock",
          facts.own_refusal.empty() ? "on a virtual machine: give it a PMU (qemu -cpu host,pmu=on)" : remedy),
      tracepoints(facts),
      kernel_names(facts),
      lockdown(facts),
      btf(facts),
      probes(facts)};
  programs(facts, findings);
  findings.insert(findings.end(), {unwinding(facts), clang(facts), cgroups(facts), ring_memory(facts),
                                   descriptors(facts), rate(facts)});
  return findings;
}

std::string doctor_text(const std::vector<Finding>& findings, bool can_record) {
  std::string out;
  for (const Finding& each : findings) {
    out +=
        fmt::format("{:<8} {:<20} {}\n", mark_of(each.state), each.name, cli::printable_message(each.value));
    if (!each.consequence.empty())
      out += fmt::format("{:9}  so: {}\n", "", cli::printable_message(each.consequence));
    if (!each.remedy.empty()) out += fmt::format("{:9}  fix: {}\n", "", cli::printable_message(each.remedy));
  }
  return out + (can_record ? "Recording is possible here.\n" : "Nothing can be recorded here.\n");
}

std::string doctor_json(const std::vector<Finding>& findings, bool can_record) {
  std::string out = fmt::format("{{\"recording\":{},\"findings\":[", can_record);
  for (const Finding& each : findings) {
    if (&each != &findings.front()) out += ",";
    out += fmt::format("{{\"name\":{},\"state\":{},\"value\":{},\"consequence\":{},\"remedy\":{}}}",
                       json_text(each.name), json_text(mark_of(each.state)), json_text(each.value),
                       json_text(each.consequence), json_text(each.remedy));
  }
  return out + "]}\n";
}

int run_doctor(const std::vector<std::string>& arguments) {
  bool json = false;
  const auto parsed = cli::parse_or_complete(command_line(json), arguments, {});
  if (!parsed) {
    print_failure(parsed.error(), "doctor");
    return cli::status_of(parsed.error());
  }
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  const HostFacts facts = look_at_host();
  const auto findings = judge(facts);
  const bool possible = can_record(facts);
  const std::string text = json ? doctor_json(findings, possible) : doctor_text(findings, possible);
  if (const auto written = cli::write_stdout(text); !written) {
    print_failure(written.error(), "doctor");
    return cli::kNoOutput;
  }
  return possible ? cli::kWhole : cli::kUnreadable;
}

}  // namespace tacho::record
