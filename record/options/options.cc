#include "record/options/options.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/absent_options.h"
#include "cli/completion.h"
#include "cli/option_rows.h"
#include "format/base/units.h"
#include "record/host/event_candidates.h"
#include "record/host/pfm_events.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

// Collected while options are parsed; choose_target() checks the whole.
struct Gathered {
  RecordOptions options;
  TargetOptions target;
  bool takes_off_cpu = false;
};

constexpr std::uint64_t kMostRingBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kLeastBudget = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostUsualBudget = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostBudget = std::uint64_t{64} << 30;

// -m auto: a hundredth of the machine's memory.
std::uint64_t usual_budget() {
  const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  const auto page_size = static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
  return std::clamp(pages * page_size / 100, kLeastBudget, kMostUsualBudget);
}

// "auto", "auto,64M": for all rings together.
Result<> set_ring_budget(RecordOptions& options, std::string_view text) {
  options.ring_pages.reset();
  options.ring_bytes.reset();
  options.ring_budget = usual_budget();
  if (text.empty()) return Done{};
  const auto bytes = parse_size("-m auto", text.substr(1));
  if (!bytes) return bytes.error();
  if (*bytes < kLeastBudget || *bytes > kMostBudget)
    return use_error("-m auto: a budget for all rings is 1M to 64G");
  options.ring_budget = *bytes;
  return Done{};
}

// "512": pages; "2M", "64K": bytes.
Result<> set_ring_size(RecordOptions& options, std::string_view text) {
  if (text == "auto" || text.starts_with("auto,")) return set_ring_budget(options, text.substr(4));
  options.ring_budget.reset();
  const auto wrong = [&] {
    return use_error("-m: '" + std::string(text) +
                     "' is neither a number of pages nor a size such as 512K or 2M, at most 4G");
  };
  const auto too_large = [&](const std::string& most) {
    return use_error("-m: '" + std::string(text) + "' is too large: at most " + most);
  };
  constexpr std::uint64_t kMostPages = kMostRingBytes / 4096;
  std::string_view unit = text;
  const std::uint64_t value = take_number<std::uint64_t>(unit).value_or(0);
  if (value == 0) return wrong();
  if (unit.empty()) {
    if (value > kMostPages) return too_large(std::to_string(kMostPages) + " pages");
    options.ring_pages = value;
    options.ring_bytes.reset();
    return Done{};
  }
  const format::Unit* const known = format::find_unit(unit, format::Quantity::Size);
  if (known == nullptr) return wrong();
  if (value > kMostRingBytes / known->size) return too_large("4G");
  options.ring_bytes = value * known->size;
  options.ring_pages.reset();
  return Done{};
}

Result<> set_compression(RecordOptions& options, std::string_view text) {
  const auto level = text.empty() ? Result<std::uint64_t>(1) : cli::parse_number("-z", text, 0, 22);
  if (!level) return level.error();
  options.files.is_compression_chosen = true;
  options.compression_level.reset();
  if (*level != 0) options.compression_level = static_cast<int>(*level);
  return Done{};
}

using cli::flag;
using cli::Takes;

constexpr std::string_view kTraces = "processor traces (AUX) are not recorded; perf record does that";
constexpr std::string_view kThreads =
    "no effect: one thread reads all rings, and another one compresses and writes; if events are "
    "lost, larger rings help (-m 8M)";
constexpr std::string_view kSoon = "no effect: every event is written to the file within half a second";
constexpr std::string_view kDescribed = "no effect: one thread reads the running processes at the start";
constexpr std::string_view kClang =
    "TACHO_CLANG in the environment names the clang; to use other options, compile by hand: -e "
    "./PROG.bpf.o";

// Options of perf record that are refused, with what to use instead.
constexpr cli::AbsentOption kAbsent[] = {
    {"-n,--no-samples", Takes::Nothing, "events are recorded one by one here; tacho stat counts them"},
    {"-r,--realtime", Takes::Value,
     "the thread that drains the rings raises its own priority; chrt -f PRIORITY tacho record gives it more"},
    {"-S,--snapshot", Takes::Optional, kTraces},
    {"--aux-sample", Takes::Optional, kTraces},
    {"--clang-opt", Takes::Value, kClang},
    {"--clang-path", Takes::Value, kClang},
    {"--debuginfod", Takes::Optional,
     "symbols are not looked up while recording; tacho script and tacho report have this option"},
    {"--dry-run", Takes::Nothing, "record something short instead: -o /tmp/try.data -- true"},
    {"--group", Takes::Nothing, "braces make a group: -e '{cpu-clock,page-faults}'"},
    {"--kcore", Takes::Nothing,
     "the kernel's code is not copied while it records; tacho pack FILE --level code --kcore /proc/kcore "
     "adds that of sampled functions"},
    {"--no-bpf-event", Takes::Nothing,
     "BPF programs are always recorded: else their frames would have no names"},
    {"--synth", Takes::Value, "running processes are always recorded: else their frames would have no names"},
    {"--running-time", Takes::Nothing, "times of counters are kept with -s, for each thread that ends"},
    {"--wakers", Takes::Optional,
     "-e offcpu,waking -g records waits and their wakers; tacho report and tacho folded take --wakers"},
    {"--vmlinux", Takes::Value,
     "symbols are not looked up while recording; tacho script and tacho report have -k FILE"},
};

// perf's options about how it records, not what: they are accepted, since existing command lines have them.
struct WithoutEffect {
  std::string_view names;
  Takes takes;
  std::string_view reason;
};
constexpr WithoutEffect kWithoutEffect[] = {
    {"--affinity", Takes::Value, kThreads},           {"--aio", Takes::Optional, kThreads},
    {"--threads", Takes::Optional, kThreads},         {"--mmap-flush", Takes::Value, kSoon},
    {"--no-buffering", Takes::Nothing, kSoon},        {"--num-thread-synthesize", Takes::Value, kDescribed},
    {"--proc-map-timeout", Takes::Value, kDescribed}, {"--tail-synthesize", Takes::Nothing, kDescribed},
};

// The effect of these options is the default in every capture.
constexpr std::string_view kAlways[] = {
    "-T,--timestamp",        "-P,--period",   "--sample-cpu",   "--sample-identifier",
    "-N,--no-buildid-cache", "--buildid-all", "--buildid-mmap", "--timestamp-boundary",
    "--namespaces",          "--all-cgroups",
};

// Appends these options of perf record, which --help does not list. Those without effect add a message to
// `notes`, which must outlive the parsing.
void add_unlisted_options(std::vector<cli::Option>& rows, std::vector<std::string>& notes) {
  cli::add_absent_options(rows, kAbsent);
  for (const WithoutEffect& row : kWithoutEffect) {
    const auto note = [&row, &notes](std::string_view) -> Result<> {
      const std::string line = std::string(row.names) + ": " + std::string(row.reason);
      if (std::ranges::find(notes, line) == notes.end()) notes.push_back(line);
      return Done{};
    };
    rows.push_back({std::string(row.names), row.takes, "VALUE", "", note});
  }
  for (const std::string_view names : kAlways)
    rows.push_back(cli::accepted(std::string(names), Takes::Nothing, ""));
}

using FindCgroup = Result<std::string> (*)(const std::string& mount, const std::string& name);

Result<> add_found(TargetOptions& target, FindCgroup find, std::string_view name) {
  const auto mount = mounted_cgroups();
  if (!mount) return mount.error();
  auto cgroup = find(*mount, std::string(name));
  if (!cgroup) return std::move(cgroup.error());
  target.each_cgroup.push_back(std::move(*cgroup));
  return Done{};
}

// Appends the options that choose the target; they set `target`, which must outlive the parsing.
void add_target_options(TargetOptions& target, std::vector<cli::Option>& rows) {
  std::vector<cli::Option> own{
      cli::flag("-a,--all-cpus", "Record the whole system", target.all_cpus),
      {"-p,--pid", Takes::Value, "PID[,PID]", "Record these processes with all their threads",
       [&target](std::string_view text) { return store(target.processes, parse_id_list(text), "-p"); }},
      {"-t,--tid", Takes::Value, "TID[,TID]", "Record only these threads",
       [&target](std::string_view text) { return store(target.threads, parse_id_list(text), "-t"); }},
      {"-u,--uid", Takes::Value, "USER",
       "Record the current processes of this user (name or id), and their children",
       [&target](std::string_view text) { return store(target.user, parse_user(std::string(text))); }},
      {"-C,--cpu", Takes::Value, "CPUS", "Record these CPUs, as in 0-3,6",
       [&target](std::string_view text) { return store(target.cpus, parse_cpu_list(text), "-C"); }},
      {"-G,--cgroup", Takes::Value, "NAME[,NAME]",
       "Record this cgroup and the cgroups below it, by the path below the mount point "
       "(system.slice/nginx.service) or the full path. One cgroup applies to all events, several to one "
       "event each",
       [&target](std::string_view text) -> Result<> {
         std::ranges::move(parse_cgroup_list(text), std::back_inserter(target.cgroups));
         return Done{};
       }},
      {"--for-each-cgroup", Takes::Value, "NAME[,NAME]",
       "Record all events in each of these cgroups (names as for -G)",
       [&target](std::string_view text) -> Result<> {
         std::ranges::move(parse_cgroup_list(text), std::back_inserter(target.each_cgroup));
         return Done{};
       }},
      {"--container", Takes::Value, "ID",
       "Record this container, found by its cgroup: a prefix of its id (docker, containerd, CRI-O, podman), "
       "or the name of an LXC container or systemd machine. Repeat it for more containers",
       [&target](std::string_view text) { return add_found(target, cgroup_of_container, text); }},
      {"--pod", Takes::Value, "UID",
       "Record all containers of this Kubernetes pod: a prefix of its uid (metadata.uid of kubectl get pod "
       "-o yaml)",
       [&target](std::string_view text) { return add_found(target, cgroup_of_pod, text); }},
      cli::flag("--per-thread",
                "A ring for each recorded thread instead of one for each CPU; without children",
                target.per_thread),
      cli::flag("-i,--no-inherit", "Do not record children of the recorded processes", target.no_inherit),
  };
  std::ranges::move(own, std::back_inserter(rows));
}

constexpr std::string_view kCompileOption = "--compile";

std::vector<cli::Option> rows(Gathered& to) {
  RecordOptions& options = to.options;
  std::vector<cli::Option> rows{
      {"-e,--event", Takes::Value, "EVENT",
       "The events to record, repeated or separated by commas, in perf's language (see below): cpu-clock, "
       "cycles:u, SUBSYSTEM:TRACEPOINT (sched:*), kprobe:FUNCTION, {a,b}:S, ./PROG.bpf.o or ./PROG.bpf.c. "
       "Default: cpu-clock. Programs of SEC(\"perf_event\") run on the sampling events of -e, one on each in "
       "this order; without any, each on a cpu-clock event (rate: -F or -c)",
       [&options](std::string_view text) { return add_events(options.events, text); }},
      {"--pfm-events", Takes::Value, "EVENT",
       "CPU events by the vendor's names, repeated or separated by commas; braces make a group: "
       "inst_retired:any_p, skl::uops_issued:any:c=1:u. Needs libpfm4; tacho list 'skl::*' lists the events. "
       "-e accepts EVENT:MASK too, unless a tracepoint has that name",
       [&options](std::string_view text) { return add_parsed(options.events, parse_pfm_events(text)); }},
      flag("--off-cpu",
           "Also record what threads wait for, how long, and with which stack: adds the recorder -e offcpu",
           to.takes_off_cpu),
      {"-m,--mmap-pages", Takes::Value, "PAGES",
       "Size of each CPU's ring, in pages or as a size (512K, 2M). auto: share 1 % of the memory, at most "
       "256M, among all CPUs; auto,SIZE: share SIZE. Default: 2M",
       [&options](std::string_view text) { return set_ring_size(options, text); }},
      {"-z,--compression-level", Takes::Optional, "LEVEL",
       "zstd level, 1 to 22; -z0: not compressed. Default: 1",
       [&options](std::string_view text) { return set_compression(options, text); }},
      flag("-q,--quiet", "Print only errors and warnings", options.quiet),
      flag("-v,--verbose", "Print what is opened, attached and left out", options.verbose),
      flag("--version", "Print the version and exit", options.show_version),
      cli::text(std::string(kCompileOption), "FILE",
                "Compile the C source of a BPF program into an object (-o; default: its name with .o), and "
                "record nothing. Hosts without clang then record it: -e ./PROG.bpf.o",
                options.compiled_source),
  };
  add_target_options(to.target, rows);
  add_sampling_rows(rows, options.sampling, options.events);
  add_time_options(options.time, rows);
  add_output_options(options.output, options.files, rows);
  add_repeat_options(options.repeat, rows);
  rows.push_back(
      {"--switch-output-event", Takes::Value, "EVENT",
       "Start another file (with --overwrite: write a capture) when EVENT happens; repeated or separated by "
       "commas as in -e. EVENT has the same target as the other events, and is not recorded. Events that "
       "happen while a file is started (about 0.1 s) share one file; the closing lines count them",
       [&options](std::string_view text) { return add_events(options.switch_events, text); }});
  add_unlisted_options(rows, options.notes);
  return rows;
}

constexpr const char* kEpilog = R"(Events:
  cycles, L1-dcache-load-misses, faults   by perf's names; a counter that this machine lacks is an error,
                                          cpu-clock works everywhere
  r1a8, cpu/event=0x3c,umask=1/           by number, or by the terms of a PMU in sysfs (also cpu/cpu-cycles/)
  sched:sched_switch, sched:*             tracepoints
  mem:0x404060/8:w                        a breakpoint: address, length (1, 2, 4, 8), r, w or x
  uprobe:/lib/libc.so.6:malloc            a function of a program or library (+OFFSET, or 0xOFFSET in the file);
                                          uretprobe: its return
  usdt:/usr/bin/x:provider:name           a USDT marker in a program or library (sys/sdt.h)
  kprobe:vfs_read, kretprobe:vfs_read     a function of the kernel, and its return. The kernel removes probes
                                          when the recorder ends, in whatever way
  uprobe:FILE:FUNCTION(ARGUMENT,...)      also records values at a probe: arg1, NAME=arg2, %di; names of arguments
                                          (kprobes: by BTF; programs: by debug information) and members:
                                          size, request->head.length (? lists them); at a USDT marker arg1 and so
                                          on by its note; at returns ret. :TYPE may follow:
                                          u8 to u64, s8 to s64, x8 to x64, string, ustring
  {cycles,faults}, name{a,b}:S            a group, counted together; with S each sample of the first has the
                                          counts of all
  EVENT/TERM,.../                         period=N, freq=HZ, name=NAME, call-graph=fp|dwarf|ehframe|lbr|no,
                                          stack-size=BYTES, max-stack=FRAMES, branch_type=FILTER, inherit,
                                          no-inherit, config=N, config1=N, config2=N
  ./PROG.bpf.c/GLOBAL=VALUE,.../          sets `const volatile` globals of a BPF program by name and type (numbers,
                                          true, 'text', enumerators, ports=80:443, limits.low, ports[1]);
                                          map:MAP.event=EVENT: events of the map become samples of EVENT
  exec, open/failed,min_us=100/           a ready-made recorder: tacho list recorders; NAME/help/
                                          shows its options, as ./PROG.bpf.c/help/ does
  EVENT:LETTERS                           u user, k kernel, h hypervisor, p to ppp and P precise, G guest,
                                          H host, I not when idle, S group, D pinned, e exclusive

Examples:
  tacho record -g -- ./program            where a program spends its time
  tacho record -a -g -e sched:sched_switch -- sleep 5
  tacho record -a -g -e ./bigreads.bpf.c -- dd if=/dev/zero of=/dev/null bs=2M count=3
  tacho record -e open/failed/ -a -- sleep 5   files that programs look for and do not find
  tacho record --repeat 10 --interleave -g -- ./old.sh ./new.sh   ten captures of each, to be compared

All other options of perf record are accepted: their effect is the default here (-T, -P, -N), or they have no
effect, which a message says (--threads, --aio), or they are refused with the option to use instead.

Signals: INT, TERM, HUP (unless it was ignored at the start), QUIT, USR1, PIPE and XFSZ end the recording with a
complete file, and are passed on to COMMAND (USR1, PIPE and XFSZ as TERM); a second one ends the wait for COMMAND.
USR2 starts another file (--switch-output) or writes a capture of the rings (--overwrite).

Exit status: that of COMMAND (128 + the signal that ended it) when it ran; else 0 for a whole capture, 1 for a
wrong command line (also a COMMAND that does not exist), 2 when the kernel or a file refuses, 4 when the capture
could not be written.)";

cli::CommandLine command_line(Gathered& to) {
  cli::CommandLine line;
  line.program = "tacho record";
  line.synopsis =
      "[-e EVENT]... [-a | -p PID[,PID] | -C CPUS | -G CGROUP | --container ID | COMMAND] [OPTION]...";
  line.description =
      "Records events with their stacks into one compressed file that perf and tacho read anywhere. With a "
      "COMMAND it records while the command runs, and only the command, unless -a, -C, -p or -t say "
      "otherwise; without one it records until it is interrupted. BPF objects have the same target: with a "
      "COMMAND, -p or -t their events are limited to these threads, with the first two also to their "
      "children. Probes (uprobe:, usdt:, kprobe:) record the threads that exist at the start, since the "
      "kernel does not inherit them; -a records all threads.";
  line.options = rows(to);
  line.stop_at_first_word = true;
  line.words = [&to](std::vector<std::string> words) -> Result<> {
    to.options.command = std::move(words);
    return Done{};
  };
  line.epilog = kEpilog;
  return line;
}

// Adds the options of `record` after those of another command.
void reshape(cli::CommandLine& line, CommandShape shape) {
  const auto spellings = [](std::string_view names) {
    std::vector<std::string> out;
    while (!names.empty()) out.emplace_back(take_until(names, ','));
    return out;
  };
  std::vector<std::string> taken;
  for (const cli::Option& own : shape.options)
    std::ranges::move(spellings(own.names), std::back_inserter(taken));
  const std::size_t first = shape.options.size();
  for (cli::Option& option : line.options) {
    std::string left;
    for (const std::string& one : spellings(option.names))
      if (std::ranges::find(taken, one) == taken.end()) left.append(left.empty() ? "" : ",").append(one);
    option.names = std::move(left);
    if (!option.names.empty()) shape.options.push_back(std::move(option));
  }
  cli::mark_common(shape.options, first);
  line.options = std::move(shape.options);
  line.program = std::move(shape.program);
  line.synopsis = std::move(shape.synopsis);
  line.description = std::move(shape.description);
  line.epilog = std::move(shape.epilog);
}

}  // namespace

Result<ParsedOptions> parse_options(const std::vector<std::string>& arguments,
                                    std::optional<CommandShape> shape) {
  Gathered gathered;
  cli::CommandLine line = command_line(gathered);
  if (shape) {
    std::erase_if(line.options, [](const cli::Option& option) {
      return is_about_series(option.names) || option.names == kCompileOption;
    });
    reshape(line, std::move(*shape));
  }
  const auto outcome = cli::parse_or_complete(line, arguments, complete_recording);
  if (!outcome) return outcome.error();
  ParsedOptions out{*outcome, {}};
  if (*outcome == cli::Parsed::HelpShown) return out;

  RecordOptions& options = gathered.options;
  if (auto done = check_sampling(options.sampling); !done) return std::move(done.error());
  if (!options.switch_events.empty()) {
    options.files.switch_rule.is_on = true;
    options.files.is_named_by_time |= !options.files.overwrite;
  }
  auto target = choose_target(gathered.target, !options.command.empty());
  if (!target) return std::move(target.error());
  options.target = std::move(*target);
  if (auto checked = check_time_options(options.time, !options.command.empty()); !checked)
    return std::move(checked.error());
  if (auto checked = check_repeat_options(options.repeat, !options.command.empty()); !checked)
    return std::move(checked.error());
  if (options.events.empty()) {
    if (auto added = add_events(options.events, "cpu-clock"); !added) return std::move(added.error());
  }
  if (gathered.takes_off_cpu) {
    if (auto added = add_events(options.events, "offcpu"); !added) return std::move(added.error());
  }
  out.options = std::move(options);
  return out;
}

}  // namespace tacho::record
