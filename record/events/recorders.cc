#include "record/events/recorders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/records/perf_abi.h"
#include "record/events/event_names.h"
#include "record/events/sample_fields.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

// 99 Hz, so that samples are not in step with work that is done 100 times a second.
constexpr std::uint64_t kProfileHz = 99;

// Views of several rows: one line for each event.
constexpr std::string_view kEach = "tacho script --columns auto";
constexpr std::string_view kHeaviest = "tacho report --no-children";
constexpr std::string_view kStarts = "tacho script --columns time,comm,pid,ppid,error,args";
constexpr std::string_view kSlow = "tacho script --columns time,comm,pid,op,bytes,lat_ns,fs,name";

// Each recorder, followed by the names of similar bcc and bpftrace tools.
constexpr RecorderRow kRecorders[] = {
    {"exec", "exec", "", "programs that are started, with their arguments, and attempts that fail", kStarts},
    {"execsnoop", "exec", "", "as exec", kStarts},
    {"open", "open", "", "files that are opened, and attempts that fail", "tacho table --by path,error"},
    {"opensnoop", "open", "", "as open", "tacho script --columns time,comm,pid,fd,error,path"},
    {"syscall", "syscall", "", "system calls: which, how long, what they returned", "tacho table --by call"},
    {"syscount", "syscount", "",
     "system calls counted and timed in the kernel, by process, call and result, without an event for each",
     "tacho table --by call"},
    {"stackcount", "stackcount", "",
     "which stacks lead to functions or a tracepoint, counted in the kernel: name='libc.so.6:malloc'",
     "tacho folded"},
    {"runqlat", "runqlat", "", "how long threads that could run waited for a CPU", "tacho hist --by none"},
    {"runqslower", "runqlat", "min_us=10000", "waits for a CPU that last 10 ms and more", kEach},
    {"offcpu", "offcpu", "", "how long threads slept, with the stack that went to sleep and the waker",
     "tacho folded"},
    {"offcputime", "offcputime", "preempted=true",
     "how long threads were off the CPU, added up in the kernel by stack, without an event for each wait",
     "tacho folded"},
    {"waking", "waking", "", "who ends the waits of threads: the waker's stack, and how long the other slept",
     "tacho table --by woken,waker"},
    {"wakeuptime", "waking", "", "as waking", "tacho folded --weight blocked_ns"},
    {"calls", "calls", "", "every call of a program's functions, with its duration: binary='./prog'",
     "tacho calls"},
    {"fastcalls", "fastcalls", "",
     "as calls, of a program compiled with -pg or -finstrument-functions, at a tenth of the cost",
     "tacho calls"},
    {"alloc", "alloc", "",
     "memory that programs allocated with the C library and did not free, by the allocating stack",
     kHeaviest},
    {"memleak", "alloc", "", "as alloc", kHeaviest},
    {"kalloc", "kalloc", "", "memory that the kernel allocated and did not free, by the allocating stack",
     kHeaviest},
    {"follow", "follow", "",
     "calls of all functions of the kernel that take a pointer to one kind of struct: type=struct bio",
     "tacho calls"},
    {"func", "func", "",
     "functions of programs or the kernel: how many calls, how long: name='libc.so.6:getenv*'",
     "tacho table --by function"},
    {"funccount", "func", "count=true", "as func, calls alone", "tacho table --by function --columns count"},
    {"funclatency", "func", "", "as func", "tacho hist --by function"},
    {"funcslower", "calls", "min_us=1000",
     "calls of a program's functions that take 1 ms and more: binary='./prog'",
     "tacho script --columns auto"},
    {"profile", "", "", "where programs and the kernel spend their time: samples of the clock with stacks",
     "tacho report"},
    {"bio", "bio", "", "block I/O: size, time in the queue and on the disk, with the submitting stack",
     "tacho hist --by op"},
    {"biolatency", "bio", "", "as bio", "tacho hist --by none"},
    {"biosnoop", "bio", "", "as bio",
     "tacho script --columns time,comm,pid,op,disk,sector,bytes,queue_ns,lat_ns"},
    {"bitesize", "bio", "", "as bio", "tacho hist --field bytes --by comm"},
    {"biotop", "bio", "", "as bio", "tacho table --by comm,op --value bytes --interval 1"},
    {"vfsio", "vfsio", "",
     "reads, writes and syncs of files: how long, how much, of which file and file system",
     "tacho table --by fs,op"},
    {"filetop", "vfsio", "", "as vfsio", "tacho table --by comm,name,op --value bytes --interval 1"},
    {"fileslower", "vfsio", "min_us=10000", "reads, writes and syncs of files that take 10 ms and more",
     kSlow},
    {"ext4slower", "vfsio", "fs=ext4,min_us=10000", "the same on ext4", kSlow},
    {"xfsslower", "vfsio", "fs=xfs,min_us=10000", "the same on xfs", kSlow},
    {"btrfsslower", "vfsio", "fs=btrfs,min_us=10000", "the same on btrfs", kSlow},
    {"nfsslower", "vfsio", "fs=nfs,min_us=10000", "the same on nfs", kSlow},
    {"ext4dist", "vfsio", "fs=ext4", "how long reads, writes and syncs on ext4 take", "tacho hist --by op"},
    {"xfsdist", "vfsio", "fs=xfs", "the same on xfs", "tacho hist --by op"},
    {"btrfsdist", "vfsio", "fs=btrfs", "the same on btrfs", "tacho hist --by op"},
    {"nfsdist", "vfsio", "fs=nfs", "the same on nfs", "tacho hist --by op"},
    {"bigreads", "vfsio", "op=read,min_bytes=1048576", "reads of 1 MiB and more",
     "tacho hist --field bytes --by comm"},
    {"pagecache", "pagecache", "", "the page cache: pages that were requested, missed, dirtied",
     "tacho table --by what --columns sum --interval 1"},
    {"cachestat", "pagecache", "", "as pagecache", "tacho table --by what --columns sum --interval 1"},
    {"cachetop", "pagecache", "", "as pagecache", "tacho table --by comm,what --columns sum --interval 1"},
    {"tcp", "tcp", "", "TCP connections: made, accepted, refused, closed; how long, how many bytes",
     "tacho table --by what,comm,remote"},
    {"tcplife", "tcp", "", "as tcp",
     "tacho script --where 'what == close' --columns "
     "time,comm,pid,local,local_port,remote,remote_port,tx_bytes,rx_bytes,lat_ns"},
    {"tcpconnect", "tcp", "", "as tcp",
     "tacho script --where 'what == connect || what == refused' --columns "
     "time,comm,pid,what,remote,remote_port,lat_ns"},
    {"tcpaccept", "tcp", "", "as tcp",
     "tacho script --where 'what == accept' --columns time,comm,pid,remote,remote_port,local_port"},
    {"tcpconnlat", "tcp", "", "as tcp",
     "tacho script --where 'what == connect' --columns time,comm,pid,remote,remote_port,lat_ns"},
    {"tcptop", "tcp", "", "as tcp",
     "tacho table --by comm,remote --value 'rx_bytes + tx_bytes' --where 'what == close'"},
    {"tcpretrans", "tcpretrans", "", "TCP segments that are sent once more", "tacho table --by state,remote"},
    {"dns", "dns", "", "names of hosts that programs look up through the C library", "tacho table --by host"},
    {"gethostlatency", "dns", "", "as dns", kEach},
    {"klock", "klock", "", "waits for the kernel's own locks: spinlocks, mutexes, semaphores",
     "tacho table --by kind,comm"},
    {"klockstat", "klock", "", "as klock", "tacho table --by kind,comm"},
    {"lock", "lock", "", "waits for locks and conditions of programs (futexes)",
     "tacho table --by lock,holder"},
    {"signals", "signals", "", "signals: sender, receiver, and whether they are delivered", kEach},
    {"killsnoop", "signals", "", "as signals", kEach},
    {"sigsnoop", "signals", "", "as signals", kEach},
    {"oom", "oom", "", "processes that are killed because memory ran out", kEach},
    {"oomkill", "oom", "", "as oom", kEach},
    {"cap", "cap", "", "capability checks of the kernel", "tacho table --by comm,cap,error"},
    {"capable", "cap", "", "as cap", kEach},
    {"bpfstat", "bpfstat", "", "what BPF programs cost: how often each runs, and for how long",
     "tacho table --by program,type --columns count,sum,mean"},
    {"trace", "probe", "", "any probe or tracepoint with its values: probe='uprobe:FILE:FUNCTION(NAME=arg1)'",
     kEach},
    {"argdist", "probe", "",
     "how a value at any probe is distributed: probe='uprobe:libc.so.6:malloc(size=arg1)',value=size",
     "tacho hist --field VALUE --by KEY"},
};

// bcc and bpftrace tools that need no recorder, only other events and a view.
struct OtherTool {
  std::string_view name, events, view;
};
constexpr OtherTool kOtherTools[] = {
    {"offwaketime", "-e offcpu,waking", "tacho folded --wakers"},
    {"bashreadline", "-e 'uretprobe:/bin/bash:readline(line=ret:string)'", "tacho script --columns auto"},
    {"softirqs", "-e irq:softirq_entry,irq:softirq_exit",
     "tacho hist --between irq:softirq_entry,irq:softirq_exit --key cpu+vec --by vec"},
    {"hardirqs", "-e irq:irq_handler_entry,irq:irq_handler_exit",
     "tacho hist --between irq:irq_handler_entry,irq:irq_handler_exit --key cpu+irq --by irq"},
    {"syncsnoop", "-e syscalls:sys_enter_fsync,syscalls:sys_enter_sync,syscalls:sys_enter_fdatasync",
     "tacho script"},
    {"statsnoop", "-e syscalls:sys_enter_newfstatat,syscalls:sys_exit_newfstatat", "tacho script"},
    {"threadsnoop", "-g -e uprobe:libc.so.6:pthread_create", "tacho script"},
    {"biopattern", "-e bio", "tacho table --by comm,op,bytes --value sector --columns count,min,max"},
    {"biostacks", "-e bio", "tacho folded"},
    {"faults", "-g -e page-faults -c 1", "tacho folded"},
    {"llcstat", "-e cache-references,cache-misses", "tacho report"},
    {"strace", "-e syscount", "tacho table --by call"},
};

// Options with which a recorder needs another view.
struct OptionView {
  std::string_view object, option, view;
};
constexpr OptionView kOptionViews[] = {
    {"bio", "max", "tacho script --columns time,comm,pid,op,disk,bytes,queue_ns,service_ns,lat_ns"},
    {"func", "count", "tacho table --by function --columns count"},
    {"syscount", "count", "tacho table --by call --columns count"},
};

struct Silence {
  std::string_view object, why;
};
constexpr Silence kSilences[] = {
    {"bio",
     "reads of cached files read no disk, and data is written to disk later, by kernel threads "
     "(-a)"},
    {"pagecache", "files in tmpfs exist only in memory"},
    {"runqlat", "a thread that finds its CPU free does not wait"},
    {"waking", "a wait that began before the recording is not recorded"},
    {"calls", "inlined functions are not called, and a call is reported when it returns"},
    {"fastcalls", "inlined functions are not called, and a call is reported when it returns"},
    {"func", "inlined functions are not called, and a call is timed when it returns"},
    {"stackcount", "inlined functions are not called"},
    {"alloc",
     "freed memory is not reported, nor memory from mmap() or from an allocator of the program's "
     "own (lib=)"},
    {"kalloc", "freed memory is not reported"},
    {"dns", "programs that do not use the resolver of the C library (Go's, for example) are not seen"},
    {"lock", "a free lock is taken without a system call"},
    {"klock", "a free lock is taken without waiting"},
    {"vfsio", "reads by io_uring or mmap are not recorded"},
    {"tcp", "of connections from before the recording only the end is recorded"},
};

}  // namespace

std::string instead_of_tool(std::string_view name) {
  const auto tool = std::ranges::find(kOtherTools, name, &OtherTool::name);
  if (tool == std::end(kOtherTools)) return {};
  return "; what that tool does: tacho record " + std::string(tool->events) + ", then " +
         std::string(tool->view);
}

std::string_view view_of(const RecorderRow& row, std::span<const ConstantSetting> options) {
  if (row.name != row.object && !row.view.starts_with("tacho hist")) return row.view;
  const auto is_set = [&](std::string_view name) {
    const auto one = std::ranges::find(options, name, &ConstantSetting::name);
    return one != options.end() && one->value.value_or("true") != "false" && one->value.value_or("1") != "0";
  };
  for (const OptionView& each : kOptionViews)
    if (each.object == row.object && is_set(each.option)) return each.view;
  return row.view;
}

std::string_view why_silent(std::string_view object) {
  const auto row = std::ranges::find(kSilences, object, &Silence::object);
  return row == std::end(kSilences) ? std::string_view() : row->why;
}

std::span<const RecorderRow> recorders() { return kRecorders; }

const RecorderRow* find_recorder(std::string_view name) {
  const auto row = std::ranges::find(kRecorders, name, &RecorderRow::name);
  return row == std::end(kRecorders) ? nullptr : row;
}

const RecorderRow* recorder_at(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(",/:={}"), text.size());
  const bool ends = end == text.size() || text[end] == ',' || text[end] == '/' || text[end] == '}';
  const RecorderRow* const row = find_recorder(text.substr(0, end));
  // The clock takes modifiers; another name followed by a colon is a tracepoint of that system.
  const bool has_modifiers = row != nullptr && row->object.empty() && text.substr(end).starts_with(':');
  return ends || has_modifiers ? row : nullptr;
}

namespace {

std::vector<ConstantSetting> preset_of(const RecorderRow& row) {
  std::vector<ConstantSetting> settings;
  for (std::string_view rest = row.preset; !rest.empty();) {
    std::string_view value = take_until(rest, ',');
    const std::string_view name = take_until(value, '=');
    settings.push_back({std::string(name), std::string(value), 0, 0});
  }
  return settings;
}

}  // namespace

EventRequest request_of(const RecorderRow& row) {
  EventRequest request;
  request.recorder = row.name;
  if (row.object.empty()) {
    request.type = format::abi::kSoftware;
    request.config = format::abi::kCpuClock;
    request.name = row.name;
    request.frequency = kProfileHz;
    request.call_graph = CallGraph::Best;
    return request;
  }
  request.what = ObjectRequest{.path = std::string(row.name), .bindings = {}, .constants = preset_of(row)};
  return request;
}

namespace {

constexpr std::string_view kArgdist = "argdist";
constexpr ProbeRecorderOption kOptions[] = {
    {"probe",
     "the probe and its values: probe='uprobe:libc.so.6:write(fd=arg1:s32, count=arg3)', or a tracepoint"},
    {"if",
     "only hits with this condition: if='count > 4096'; evaluated in the kernel, on the values, and on pid, "
     "tid, comm, cgroup, uid, gid and cpu"},
    {"pid", "only this process"},
    {"tid", "only this thread"},
    {"comm", "only threads of this name"},
};
constexpr ProbeRecorderOption kOfArgdist[] = {
    {"value",
     "a value whose distribution is shown, in powers of two: value='count'; without it, hits are counted; an "
     "expression (value='count / 1024') needs a sample for each hit"},
    {"key", "group by these: key='comm,fd'"},
};

Error wrong(const EventRequest& request, std::size_t at, const std::string& what) {
  return error_at(request.text, at, what);
}

Result<> check_options(const EventRequest& request) {
  std::vector<std::string> names;
  for (const ProbeRecorderOption& each : probe_recorder_options(request.recorder))
    names.emplace_back(each.name);
  for (const ConstantSetting& each : request.constants()) {
    if (std::ranges::find(names, each.name) == names.end())
      return wrong(
          request, each.name_at,
          fmt::format("{}: there is no such option{}", each.name, cli::suggestion(each.name, names)));
    if (!each.value || each.value->empty())
      return wrong(request, each.name_at, each.name + ": a value is missing");
  }
  if (request.setting("probe") != nullptr) return Done{};
  return use_error(fmt::format(
      "-e {}: the probe is missing: probe='uprobe:libc.so.6:write(fd=arg1:s32, count=arg3)'", request.text));
}

// Names that the kernel can compare besides a hit's own values (condition.h).
constexpr std::string_view kKnownToKernel[] = {"pid",       "tid", "comm", "cgroup",
                                               "cgroup_id", "uid", "gid",  "cpu"};

// All options that select hits in the kernel, as one condition. For tracepoints it is in the kernel's filter
// language.
Result<std::string> condition_of(const EventRequest& request, bool is_tracepoint) {
  std::string all;
  const auto add = [&all](const std::string& one) { all += (all.empty() ? "(" : " && (") + one + ")"; };
  for (const char* const number : {"pid", "tid"}) {
    const std::string value = request.value_of(number);
    if (value.empty()) continue;
    const std::size_t at = request.setting(number)->value_at;
    if (value.find_first_not_of("0123456789") != std::string::npos)
      return wrong(request, at, fmt::format("{}: '{}' is not a number", number, value));
    if (is_tracepoint && number == std::string_view("pid"))
      return wrong(request, at,
                   "pid: tracepoints can only filter threads; -p selects a process, tid= a thread");
    add(fmt::format("{} == {}", is_tracepoint ? "common_pid" : number, value));
  }
  if (const std::string name = request.value_of("comm"); !name.empty()) {
    if (name.find_first_of("\"\\") != std::string::npos)
      return wrong(request, request.setting("comm")->value_at, "comm: a name without quotes");
    add(fmt::format("{} == \"{}\"", is_tracepoint ? "COMM" : "comm", name));
  }
  const std::string written = request.value_of("if");
  if (written.empty()) return all;
  if (!is_tracepoint) {
    const auto expression = cli::parse_expression("if", written);
    if (!expression) return Error{expression.error()}.in("-e " + request.text);
  }
  add(written);
  return all;
}

constexpr std::string_view kOwnPrefix = "sample.";

bool is_plain_name(std::string_view text) {
  return text.find_first_of(" +-*/%&|()") == std::string_view::npos;
}

// The names that conditions and views have for every sample (report/query/expressions.cc).
constexpr std::string_view kOfEverySample[] = {"comm", "pid",    "tid",    "cpu",
                                               "time", "period", "cgroup", "event"};

// The names in an expression; none of an invalid one, which its parser reports.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  const auto expression = cli::parse_expression("", text);
  if (!expression) return names;
  for (const cli::ExpressionNode& node : expression->nodes)
    if (node.operation == cli::Operation::Name && node.text != "true" && node.text != "false")
      names.push_back(node.text);
  return names;
}

std::vector<std::string> names_in_list(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) names.emplace_back(take_until(text, ','));
  return names;
}

bool is_known_to_kernel(std::string_view name) {
  take_prefix(name, kOwnPrefix);
  return std::ranges::find(kKnownToKernel, name) != std::end(kKnownToKernel);
}

// The names in `if`, value and key. `is_filtered`: the kernel's filter evaluates `if`.
Result<std::vector<NeededField>> needed_fields(const EventRequest& request, bool is_filtered) {
  std::vector<NeededField> needed;
  const auto add = [&](std::string_view option, const std::vector<std::string>& names) {
    const ConstantSetting* const one = request.setting(option);
    for (const std::string& name : names)
      needed.push_back({name, std::string(option), request.text, one->value_at});
  };
  const std::string condition = request.value_of("if"), value = request.value_of("value"),
                    key = request.value_of("key");
  if (!condition.empty() && !is_filtered) {
    std::vector<std::string> names = names_in(condition);
    std::erase_if(names, is_known_to_kernel);
    add("if", names);
  }
  if (!value.empty()) {
    const auto expression = cli::parse_expression("value", value);
    if (!expression) return Error{expression.error()}.in("-e " + request.text);
    add("value", names_in(value));
  }
  add("key", names_in_list(key));
  return needed;
}

// Fields of a probe are known here; tracefs has the fields of a tracepoint.
Result<> check_fields(const EventRequest& request, EventRequest& probe, bool counts) {
  auto needed = needed_fields(request, probe.tracepoint() != nullptr && !counts);
  if (!needed) return std::move(needed.error());
  if (TracepointRequest* const tracepoint = probe.tracepoint()) {
    tracepoint->needs = std::move(*needed);
    return Done{};
  }
  std::vector<std::string> fields;
  for (const ArgumentRequest& argument : probe.arguments) fields.push_back(argument.name);
  for (const NeededField& one : *needed)
    if (auto wrong = unknown_field(one, probe.name, fields)) return std::move(*wrong);
  return Done{};
}

// The view of argdist: a distribution of a value, or the number of samples of each key.
std::string plain_view_of(const EventRequest& request) {
  const std::string value = request.value_of("value"), key = request.value_of("key");
  if (request.recorder != kArgdist) return std::string(find_recorder(request.recorder)->view);
  if (value.empty())
    return fmt::format("tacho table --by {} --columns count", cli::shell_word(key.empty() ? "comm" : key));
  if (!is_plain_name(value))
    return fmt::format("tacho table --value {} --by {}", cli::shell_word(value),
                       cli::shell_word(key.empty() ? "comm" : key));
  return fmt::format("tacho hist --field {} --by {}", cli::shell_word(value),
                     cli::shell_word(key.empty() ? "none" : key));
}

// Makes argdist count hits in the kernel: moves the values by which they are counted before the others, keys
// first, as ProbeSum expects. For a tracepoint it requests fields, including the condition's. Returns why
// hits cannot be counted in the kernel; empty: they can.
std::string count_in_kernel(const EventRequest& request, EventRequest& probe) {
  const std::string value = request.value_of("value"), key = request.value_of("key");
  const bool is_tracepoint = probe.tracepoint() != nullptr;
  std::vector<ArgumentRequest> front;
  bpf::ProbeSum sum;
  sum.has_value = !value.empty();
  const auto take = [&](const std::string& name) {
    const auto known = std::ranges::find(probe.arguments, name, &ArgumentRequest::name);
    if (known != probe.arguments.end())
      front.push_back(*known);
    else if (is_tracepoint)
      front.push_back({name, name, {}});
    else
      return false;
    return true;
  };
  if (sum.has_value && !is_plain_name(value))
    return fmt::format("the value '{}' is an expression, which only views compute", value);
  for (const std::string& written : names_in_list(key.empty() ? "comm" : key)) {
    std::string_view plain = written;
    const bool is_own = take_prefix(plain, kOwnPrefix);
    const std::string name(plain);
    const bool is_among_values =
        std::ranges::find(probe.arguments, name, &ArgumentRequest::name) != probe.arguments.end();
    const bool is_every = std::ranges::find(kOfEverySample, name) != std::end(kOfEverySample);
    if (is_among_values && !is_own && is_every)
      return fmt::format(
          "the key '{0}' is a value of the probe and of every sample; give it another name: x={0}", name);
    if (name == "pid") continue;  // always
    bool* const flag = name == "tid"    ? &sum.by_thread
                       : name == "cpu"  ? &sum.by_cpu
                       : name == "comm" ? &sum.by_name
                                        : nullptr;
    if (flag != nullptr)
      *flag = true;
    else if (is_every)
      return fmt::format("the key '{}' is known only in samples", name);
    else if (name == value)
      return fmt::format("'{}' is key and value", name);
    else if (std::ranges::find(front, name, &ArgumentRequest::name) == front.end() && take(name))
      ++sum.keys;
  }
  if (sum.has_value && !take(value)) return fmt::format("the value '{}' is known only in samples", value);
  for (const ArgumentRequest& other : probe.arguments)
    if (std::ranges::find(front, other.name, &ArgumentRequest::name) == front.end()) front.push_back(other);
  if (is_tracepoint)
    for (const std::string& name : names_in(request.value_of("if")))
      if (!is_known_to_kernel(name) && std::ranges::find(front, name, &ArgumentRequest::name) == front.end())
        front.push_back({name, name, {}});
  if (front.size() > bpf::kMostProbeArguments)
    return fmt::format("key, value and condition name more than {} values", bpf::kMostProbeArguments);
  probe.arguments = std::move(front);
  probe.sum = sum;
  return {};
}

Result<std::vector<EventRequest>> probes_of(const EventRequest& request, const ParseEvents& parse) {
  if (auto sound = check_options(request); !sound) return std::move(sound.error());
  auto probes = parse(request.value_of("probe"));
  if (!probes) return Error{std::move(probes.error())}.in(fmt::format("-e {}: probe", request.text));
  for (EventRequest& each : *probes) {
    if (each.probe() == nullptr && each.tracepoint() == nullptr)
      return use_error(
          fmt::format("-e {}: probe: '{}' is neither a probe nor a tracepoint", request.text, each.text));
    const bool counts = request.recorder == kArgdist;
    if (auto known = check_fields(request, each, counts); !known) return std::move(known.error());
    if (counts) each.no_sum = count_in_kernel(request, each);
    auto condition = condition_of(request, each.tracepoint() != nullptr && !each.sum);
    if (!condition) return std::move(condition.error());
    each.filter = std::move(*condition);
    if (!each.filter.empty()) each.filter_place = "-e " + request.text + ": if";
    each.catalogue_name = request.recorder;
    each.view = plain_view_of(request);
  }
  return probes;
}

}  // namespace

std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields) {
  std::string_view name = needed.name;
  if (std::ranges::find(fields, name) != fields.end()) return std::nullopt;
  take_prefix(name, kOwnPrefix);
  if (std::ranges::find(kOfEverySample, name) != std::end(kOfEverySample)) return std::nullopt;
  std::vector<std::string> names(fields.begin(), fields.end());
  names.insert(names.end(), std::begin(kOfEverySample), std::end(kOfEverySample));
  return error_at(
      needed.text, needed.at,
      fmt::format(
          "{}: {} has no '{}'; {}{}; every sample has {}{}", needed.option, event, needed.name,
          fields.empty() ? "it has no fields: a probe has those in its parentheses, as (fd=arg1)" : "it has ",
          fmt::join(fields, ", "), fmt::join(kOfEverySample, ", "), cli::suggestion(needed.name, names)));
}

std::vector<ProbeRecorderOption> probe_recorder_options(std::string_view recorder) {
  std::vector<ProbeRecorderOption> options(std::begin(kOptions), std::end(kOptions));
  if (recorder == kArgdist) options.insert(options.end(), std::begin(kOfArgdist), std::end(kOfArgdist));
  return options;
}

Result<std::vector<EventRequest>> with_their_probes(std::vector<EventRequest> requests,
                                                    const ParseEvents& parse) {
  std::vector<EventRequest> out;
  for (EventRequest& request : requests) {
    const RecorderRow* const row = find_recorder(request.recorder);
    if (row == nullptr || row->object != kProbeObject || request.asks_for_help) {
      out.push_back(std::move(request));
      continue;
    }
    auto probes = probes_of(request, parse);
    if (!probes) return probes;
    std::ranges::move(*probes, std::back_inserter(out));
  }
  return out;
}

}  // namespace tacho::record
