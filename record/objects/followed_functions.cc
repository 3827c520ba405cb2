#include "record/objects/followed_functions.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bpf/attach/function_probes.h"
#include "bpf/object/kernel_btf.h"
#include "bpf/support/kernel_support.h"
#include "cli/nearest.h"
#include "format/base/file.h"
#include "record/events/tracepoint.h"
#include "record/host/host.h"
#include "record/host/probe_offsets.h"
#include "record/host/report_program.h"
#include "record/host/running_kernel.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

// The limit of user functions: each probe is a breakpoint that slows down every call.
constexpr std::size_t kMostFunctions = 20'000;
// The limit for kernels that attach probes one by one, which takes time.
constexpr std::size_t kMostOneByOne = 600;

// As in bpf/programs/recorders/recorder.h.
constexpr std::uint64_t kBehindMark = 1U << 7, kMarkBytes = 4;

// Functions that return probes would break, as patterns of fnmatch(3). During a followed call the return
// address on the stack is that of the kernel's trampoline. These functions use the return address, are not
// entered by a call (so that something else is in its place), or run before the program starts.
constexpr const char* kNeverFollowed[] = {
    "_start",
    "_init",
    "_fini",
    "__do_global_dtors_aux",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "_dl_relocate_static_pie",
    "__libc_csu_init",
    "__libc_csu_fini",
    // They save it for a later return: longjmp() would return to a finished probe.
    "setjmp",
    "_setjmp",
    "__setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "getcontext",
    "__getcontext",
    "swapcontext",
    "__swapcontext",
    "makecontext",
    "__makecontext",
    "vfork",
    "__vfork",
    "__libc_vfork",
    // They look it up in unwind tables.
    "_Unwind_*",
    "__cxa_throw",
    "__cxa_rethrow",
    // They use it as a number.
    "__x86.get_pc_thunk.*",
    "__morestack",
    "mcount",
    "_mcount",
    "__fentry__",
    // They are entered by a jump, or by a return of the kernel or of another function.
    "_dl_start_user",
    "_dl_runtime_resolve*",
    "_dl_runtime_profile*",
    "__restore_rt",
    "__restore",
    "__start_context",
};

bool is_never_followed(const std::string& name) {
  const std::string plain = name.substr(0, name.find('@'));  // without the version
  return std::ranges::any_of(kNeverFollowed,
                             [&](const char* pattern) { return ::fnmatch(pattern, plain.c_str(), 0) == 0; });
}

// The linker's name, or the C++ source's: there all instances of a template have one name.
bool is_called(const std::string& symbol, const std::string& pattern) {
  if (::fnmatch(pattern.c_str(), symbol.c_str(), 0) == 0) return true;
  const auto in_source = source_name(symbol);
  return in_source && ::fnmatch(without_template_arguments(pattern).c_str(), in_source->c_str(), 0) == 0;
}

void report_instances(const EventRequest& request, const std::string& pattern, const Messages& messages) {
  if (const std::string name = without_template_arguments(pattern); name != pattern)
    messages.warn(fmt::format(
        "-e {}: template arguments are not compared: all instances of '{}' are recorded; filter the capture "
        "with --where 'function ~ \"{}\"'",
        request.text, name, pattern));
}

// Values of a `const volatile` global.
std::string text_of(const bpf::UserObject& object, std::string_view name) {
  return std::string(format::text_of(object.constant(name)));
}
std::uint32_t number_of(const bpf::UserObject& object, std::string_view name) {
  const auto constant = object.constant(name);
  std::uint32_t number = 0;
  if (constant.size() == sizeof number) std::memcpy(&number, constant.data(), sizeof number);
  return number;
}

Error wrong(const EventRequest& request, const std::string& what) {
  return use_error(fmt::format("-e {}: {}", request.text, what));
}

Result<FunctionOffsets> functions_in(const EventRequest& request, const std::string& path) {
  const auto file = format::read_file(path);
  if (!file) return file.error();
  auto functions = functions_of(*file);
  if (!functions) return wrong(request, fmt::format("{}: {}", path, functions.error().what));
  return functions;
}

// Offsets of the functions that match, each once. `with_all`: also of functions that return probes would
// break. IFUNC resolvers are left out: they run when a program starts, and calls go to other functions.
std::vector<std::uint64_t> matching(const FunctionOffsets& functions, const std::string& pattern,
                                    bool with_all) {
  std::unordered_set<std::uint64_t> left_out;  // by any name
  for (const FunctionOffset& each : functions.functions)
    if (!with_all && is_never_followed(each.name)) left_out.insert(each.offset);
  std::vector<std::uint64_t> offsets;
  for (const FunctionOffset& each : functions.functions) {
    const bool is_wanted =
        !each.is_chooser && (pattern.empty() || is_called(each.name.substr(0, each.name.find('@')), pattern));
    if (is_wanted && !left_out.contains(each.offset)) offsets.push_back(each.offset);
  }
  std::ranges::sort(offsets);
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

// Their names, as in the source if known.
std::vector<std::string> names_of(const FunctionOffsets& functions, std::span<const std::uint64_t> offsets) {
  std::unordered_map<std::uint64_t, std::string_view> names;
  for (const FunctionOffset& each : functions.functions)
    if (!each.is_chooser) names.try_emplace(each.offset, each.name);
  std::vector<std::string> called;
  for (const std::uint64_t offset : offsets) {
    const std::string name(names[offset].substr(0, names[offset].find('@')));
    called.push_back(source_name(name).value_or(name));
  }
  return called;
}

// Offsets of is_changed_copy() functions, ascending.
std::vector<std::uint64_t> changed_copies(const FunctionOffsets& functions) {
  std::vector<std::uint64_t> offsets;
  for (const FunctionOffset& each : functions.functions)
    if (is_changed_copy(each.name)) offsets.push_back(each.offset);
  std::ranges::sort(offsets);
  return offsets;
}

Result<std::vector<std::uint64_t>> matching_in_kernel(const std::string& pattern, bool one_by_one) {
  const auto folder = bpf::find_tracefs({});
  if (!folder) return folder.error();
  // The list has addresses of ftrace hooks; single probes are at the function's start.
  const auto with_addresses =
      format::read_file(one_by_one ? std::string() : *folder + "/available_filter_functions_addrs");
  const auto names =
      with_addresses ? with_addresses : format::read_file(*folder + "/available_filter_functions");
  if (!names)
    return use_error(
        "this kernel does not list which of its functions can be probed (CONFIG_DYNAMIC_FTRACE)");
  const auto kallsyms = format::read_file("/proc/kallsyms");
  if (!kallsyms) return kallsyms.error();
  auto addresses = traceable_functions(format::as_text(*names), static_cast<bool>(with_addresses),
                                       format::as_text(*kallsyms), pattern);
  if (addresses.empty())
    return use_error(fmt::format("the kernel has no function that matches '{}'", pattern));
  return addresses;
}

// The colon in "FILE:PATTERN" (not a "::" of C++ names); npos: there is no file.
std::size_t colon_after_file(std::string_view name) {
  for (std::size_t at = name.rfind(':'); at != std::string_view::npos && at > 0;
       at = name.rfind(':', at - 1)) {
    if (name[at - 1] != ':') return at;
    --at;  // both of "::"
    if (at == 0) break;
  }
  return std::string_view::npos;
}

// -e stackcount: the tracepoint of its setting `tracepoint`.
Result<bpf::FunctionTargets> named_tracepoint(const EventRequest& request, const std::string& tracepoint) {
  const std::size_t colon = tracepoint.find(':');
  const auto tracefs = Tracefs::find();
  if (!tracefs) return Error{tracefs.error()}.in("-e " + request.text);
  const std::string system = tracepoint.substr(0, colon);
  const auto found = colon == std::string::npos
                         ? Result<std::vector<Tracepoint>>(use_error("a tracepoint is SYSTEM:NAME"))
                         : tracefs->matching(system, tracepoint.substr(colon + 1));
  if (!found) return Error{found.error()}.in("-e " + request.text + ": tracepoint");
  if (found->size() != 1) return wrong(request, fmt::format("tracepoint: {} match; name one", found->size()));
  bpf::FunctionTargets targets;
  targets.tracepoint = found->front().system + "/" + found->front().name;
  return targets;
}

// -e func: the functions of its settings `name` ("FILE:PATTERN", or a pattern for the kernel) and `count`.
Result<bpf::FunctionTargets> counted_functions(const EventRequest& request, const bpf::UserObject& object,
                                               const Messages& messages) {
  const std::string name = text_of(object, "name");
  const std::uint32_t pid = number_of(object, "pid");
  const auto count = object.constant("count");
  const std::size_t colon = colon_after_file(name);
  const std::string tracepoint = text_of(object, "tracepoint");
  if (!tracepoint.empty() && !name.empty()) return wrong(request, "name or tracepoint, not both");
  if (!tracepoint.empty()) return named_tracepoint(request, tracepoint);
  if (name.empty())
    return wrong(
        request,
        "functions are missing: name='libc.so.6:getenv*', or of the kernel name='vfs_*'" +
            std::string(object.constant("tracepoint").empty() ? "" : "; or tracepoint='SYSTEM:NAME'"));
  bpf::FunctionTargets targets;
  targets.entries_only = !count.empty() && count.front() != std::byte{0};
  if (colon == std::string::npos) {
    targets.in_kernel = true;
    targets.notice = [messages](std::string_view line) { messages.note("func: " + std::string(line)); };
    targets.one_by_one = !bpf::has_kprobe_multi();
    auto addresses = matching_in_kernel(name, targets.one_by_one);
    if (!addresses) return wrong(request, addresses.error().what);
    if (targets.one_by_one && addresses->size() > kMostOneByOne)
      return wrong(request, fmt::format("{} functions match, more than the {} that can be probed one by one "
                                        "(without CONFIG_FPROBE this "
                                        "kernel cannot probe them together); choose fewer",
                                        addresses->size(), kMostOneByOne));
    targets.offsets = std::move(*addresses);
  } else {
    targets.process = pid == 0 ? -1 : static_cast<int>(pid);
    const auto path = library_file(name.substr(0, colon), targets.process);
    if (!path) return wrong(request, path.error().what);
    targets.path = *path;
    const auto functions = functions_in(request, *path);
    if (!functions) return functions.error();
    if (functions->is_go && !targets.entries_only)
      return wrong(
          request,
          fmt::format(
              "{} is a Go program, whose stacks move: return probes would crash it; count needs none: it "
              "counts calls",
              *path));
    targets.offsets = matching(*functions, name.substr(colon + 1), targets.entries_only);
    targets.shown_names = names_of(*functions, targets.offsets);
    const auto is_chosen_at_start = [pattern = name.substr(colon + 1)](const FunctionOffset& each) {
      return each.is_chooser && is_called(each.name.substr(0, each.name.find('@')), pattern);
    };
    if (targets.offsets.empty() && std::ranges::any_of(functions->functions, is_chosen_at_start))
      return wrong(
          request,
          fmt::format(
              "{} of {} is an IFUNC: calls go to one of several functions, chosen when a program starts; "
              "tacho list 'uprobe:{}:*{}*' shows them if the file has their names",
              name.substr(colon + 1), *path, *path, name.substr(colon + 1)));
    if (targets.offsets.empty())
      return wrong(
          request,
          fmt::format("{} has no function that matches '{}'; tacho list 'uprobe:{}:*' lists its functions",
                      *path, name.substr(colon + 1), *path));
    if (functions->throws && !targets.entries_only)
      messages.warn(fmt::format(
          "warning: -e {}: {} throws exceptions: an exception through a timed function would terminate "
          "its process, recorded or not; count needs no return probes: it counts calls",
          request.text, *path));
  }
  if (!targets.in_kernel) report_instances(request, name.substr(colon + 1), messages);
  if (targets.offsets.size() > kMostFunctions)
    return wrong(request, fmt::format("{} functions match, more than {}; choose fewer",
                                      targets.offsets.size(), kMostFunctions));
  return targets;
}

// The functions of a library that the object's programs name.
Result<bpf::FunctionTargets> named_functions(const EventRequest& request, const bpf::UserObject& object,
                                             const std::vector<std::string>& names) {
  const std::uint32_t pid = number_of(object, "pid");
  const int process = pid == 0 ? -1 : static_cast<int>(pid);
  const auto path = library_file(text_of(object, "lib"), process);
  if (!path) return wrong(request, path.error().what + "; lib='...' names the library or program");
  const auto functions = functions_in(request, *path);
  if (!functions) return functions.error();
  bpf::FunctionTargets targets;
  targets.path = *path;
  targets.process = process;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(functions->functions, name, &FunctionOffset::name);
    if (found == functions->functions.end()) continue;
    targets.names.push_back(name);
    targets.offsets.push_back(found->offset);
  }
  if (targets.names.empty() || targets.names.front() != names.front())
    return wrong(request,
                 fmt::format("{} has no function {}(); lib='...' names the library or program that has it",
                             *path, names.front()));
  return targets;
}

// -e calls: the functions of its settings `binary` and `functions`. Warns of exceptions if there are return
// probes.
Result<bpf::FunctionTargets> functions_of_binary(const EventRequest& request, const Messages& messages,
                                                 bool has_returns) {
  const std::string binary = unquoted(request.value_of("binary"));
  const std::string pattern = unquoted(request.value_of("functions"));
  if (binary.empty()) return wrong(request, "the program is missing: binary='./prog'");
  const auto path = binary.find('/') == std::string::npos ? path_of_program(binary) : std::optional(binary);
  std::error_code failed;
  const auto whole = std::filesystem::canonical(path.value_or(binary), failed);
  if (failed) return wrong(request, fmt::format("{}: {}", binary, failed.message()));
  const auto functions = functions_in(request, whole);
  if (!functions) return functions.error();
  if (functions->is_go && has_returns)
    return wrong(request,
                 fmt::format("{} is a Go program, whose stacks move: return probes would crash it", binary));
  bpf::FunctionTargets targets;
  targets.path = whole;
  targets.offsets = matching(*functions, pattern, false);
  targets.shown_names = names_of(*functions, targets.offsets);
  std::ranges::set_intersection(targets.offsets, changed_copies(*functions),
                                std::back_inserter(targets.changed_copies));
  if (targets.offsets.empty())
    return wrong(
        request,
        functions->functions.empty()
            ? fmt::format("{} has no symbols (it was stripped), so its functions are unknown", binary)
            : fmt::format("{} has no function that matches '{}'", binary, pattern));
  if (targets.offsets.size() > kMostFunctions)
    return wrong(request, fmt::format("{} has {} functions, more than {}; choose some: functions='parse_*'",
                                      binary, targets.offsets.size(), kMostFunctions));
  report_instances(request, pattern, messages);
  if (functions->throws && has_returns && request.refuses_exceptions)
    return wrong(request,
                 fmt::format("{} throws exceptions: one through a followed function would terminate its "
                             "process; --may-abort records all the same",
                             binary));
  if (functions->throws && has_returns)
    messages.warn(fmt::format(
        "warning: -e {}: {} throws exceptions: an exception through a followed function would terminate its "
        "process, recorded or not; choose functions through which none is thrown: functions='parse_*'",
        request.text, binary));
  return targets;
}

// Whether a function begins with endbr64 (for indirect calls), which the kernel must single-step, and then an
// instruction that it emulates, which is much faster.
bool has_cheap_place_after(std::string_view code) {
  constexpr std::string_view kMark = "\xf3\x0f\x1e\xfa";
  static_assert(kMark.size() == kMarkBytes);
  if (!code.starts_with(kMark)) return false;
  code.remove_prefix(kMark.size());
  if (code.starts_with('\x41')) code.remove_prefix(1);  // REX prefix of r8 to r15
  constexpr char kFirstPush = '\x50', kLastPush = '\x57';
  return !code.empty() && code.front() >= kFirstPush && code.front() <= kLastPush;
}

// Why a preloaded library cannot report calls of the file; empty: it can. The program must survive it: an
// exception cannot unwind through a replaced return address, and with switched stacks calls are not nested.
std::string refusal_of(const CallFacts& calls, const std::string& path) {
  if (!calls.has_libraries)
    return fmt::format(
        "{} is statically linked, so no library can be preloaded; -e calls works for any program", path);
  if (!calls.reports_entries && !calls.reports_both)
    return fmt::format(
        "{} was compiled neither with -pg nor with -finstrument-functions; -e calls works for any program",
        path);
  if (calls.reports_entries && calls.handles_exceptions)
    return fmt::format(
        "{} was compiled with -pg and handles exceptions, which would terminate it while its calls are "
        "recorded; compile it with -finstrument-functions",
        path);
  if (calls.reports_entries && !calls.switches_stacks.empty())
    return fmt::format(
        "{} was compiled with -pg and switches stacks ({}()); compile it with -finstrument-functions", path,
        calls.switches_stacks);
  return {};
}

// The dynamic linker splits LD_PRELOAD at blanks and colons, and expands `$`.
bool can_be_preloaded(const std::string& library) {
  return library.find_first_of(" :$") == std::string::npos;
}

}  // namespace

std::size_t choose_cheap_places(bpf::FunctionTargets& targets) {
  if (targets.in_kernel) return 0;
  if (!targets.shown_names.empty()) targets.cookies.resize(targets.offsets.size());
  for (std::size_t i = 0; i < targets.shown_names.size(); ++i)
    targets.cookies[i] |= std::uint64_t{i + 1} << bpf::FunctionTargets::kNumberBit;
  const auto file = format::read_file(targets.path);
  if (!file) return 0;  // attaching reports the error
  const std::string_view bytes = format::as_text(*file);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < targets.offsets.size(); ++i) {
    std::uint64_t& offset = targets.offsets[i];
    if (offset >= bytes.size() || !has_cheap_place_after(bytes.substr(offset))) continue;
    if (targets.names.empty()) {  // else the cookie is the name's number
      targets.cookies.resize(targets.offsets.size());
      targets.cookies[i] |= kBehindMark;
    }
    offset += kMarkBytes;
    ++chosen;
  }
  return chosen;
}

Result<bpf::FunctionTargets> followed_functions(const EventRequest& request, const bpf::UserObject& object,
                                                const Messages& messages) {
  if (const auto names = object.wanted_functions(); !names.empty())
    return named_functions(request, object, names);
  if (!object.constant("name").empty()) return counted_functions(request, object, messages);
  return functions_of_binary(request, messages, true);
}

Result<std::vector<std::string>> preloaded_calls(const EventRequest& request, bpf::UserObject& object,
                                                 const std::function<bool()>& stop,
                                                 std::vector<format::Attachment>& attachments,
                                                 const Messages& messages) {
  auto targets = functions_of_binary(request, messages, false);
  if (!targets) return std::move(targets.error());
  const auto file = format::read_file(targets->path);
  if (!file) return file.error();
  const auto calls = call_facts(*file);
  if (!calls) return wrong(request, targets->path + ": " + calls.error().what);
  if (const std::string refusal = refusal_of(*calls, targets->path); !refusal.empty())
    return wrong(request, refusal);
  const auto library = own_library("libtacho-calls.so");
  if (!library)
    return Error{fmt::format("-e {}: libtacho-calls.so is not installed beside tacho-record", request.text)};
  if (!can_be_preloaded(*library))
    return wrong(request, *library +
                              ": a path in LD_PRELOAD must not have a blank, a colon or a dollar sign; "
                              "install tacho elsewhere, or use -e calls");
  if (const auto fault = object.set_constant("lib", *library))
    return wrong(request, *library + ": " + fault->what);
  if (calls->reports_entries) {
    if (auto done = add_function_types(object, *targets, stop, attachments, messages); !done)
      return std::move(done.error());
  }
  const char* const before = std::getenv("LD_PRELOAD");
  constexpr std::uint64_t kMostMicroseconds = UINT64_MAX / 1000;
  std::uint64_t min_us = 0;
  if (const auto set = object.constant("min_us"); set.size() == sizeof min_us)
    std::memcpy(&min_us, set.data(), sizeof min_us);
  return std::vector<std::string>{
      fmt::format("LD_PRELOAD={}{}{}", *library, before != nullptr && *before != 0 ? ":" : "",
                  before != nullptr ? before : ""),
      fmt::format("TACHO_CALLS_MIN_NS={}", min_us > kMostMicroseconds ? UINT64_MAX : min_us * 1000),
      fmt::format("TACHO_CALLS_RETURNS_OF={}", calls->reports_entries ? targets->path : std::string()),
      fmt::format("TACHO_CALLS_DEPTH={}", number_of(object, "depth"))};
}

Result<> add_function_types(const bpf::UserObject& object, bpf::FunctionTargets& targets,
                            const std::function<bool()>& stop, std::vector<format::Attachment>& attachments,
                            const Messages& messages) {
  if (object.constant("tacho_wants_types").empty()) return Done{};
  // The debugging information describes a copy as the source's function.
  std::vector<std::uint64_t> typed;
  std::ranges::set_difference(targets.offsets, targets.changed_copies, std::back_inserter(typed));
  const FunctionTypes types = function_types(targets.path, typed, stop);
  if (!types.missing_reason.empty())
    messages.warn(fmt::format("warning: {}: the types of {}arguments are not known: {}", targets.path,
                              types.text.empty() ? "" : "some ", types.missing_reason));
  if (types.text.empty()) return Done{};
  targets.cookies.clear();
  for (const std::uint64_t offset : targets.offsets) {
    const auto texts = types.texts.find(offset);
    targets.cookies.push_back(texts == types.texts.end() ? 0 : texts->second);
  }
  auto packed = format::pack_attachment("prototypes", targets.path, std::as_bytes(std::span(types.text)));
  if (!packed) return std::move(packed.error());
  attachments.push_back(std::move(*packed));
  return Done{};
}

namespace {

// The limit of followed kernel functions: each takes time and memory to attach, and slows its calls.
constexpr std::size_t kMostTogether = 5000;
constexpr std::string_view kShow = "show", kShownFields = "shown";

std::vector<std::string> members_of(std::string_view list) {
  std::vector<std::string> members;
  while (!list.empty())
    if (const std::string_view one = trimmed(take_until(list, ',')); !one.empty()) members.emplace_back(one);
  return members;
}

// Refuses a member with the name of one of the event's own fields.
bool is_own_field(const bpf::UserObject& object, const std::string& name) {
  return std::ranges::any_of(object.channels(), [&](const bpf::Channel& channel) {
    return channel.schema && std::ranges::find(channel.schema->fields, name, &format::PayloadField::name) !=
                                 channel.schema->fields.end();
  });
}

Result<> set_members(bpf::UserObject& object, const bpf::ObjectTypes& types, const std::string& type) {
  const auto paths = members_of(text_of(object, kShow));
  if (paths.size() > TACHO_MOST_SHOWN)
    return use_error(fmt::format("show: {} members; at most {} are recorded", paths.size(),
                                 static_cast<int>(TACHO_MOST_SHOWN)));
  std::array<tacho_member_offset, TACHO_MOST_SHOWN> locations{};
  std::vector<format::PayloadField> fields;
  for (const std::string& path : paths) {
    auto member = types.member(type, path);
    if (!member) return std::move(member.error()).in("show");
    if (is_own_field(object, path)) member->field.name = "object." + path;
    if (std::ranges::find(fields, member->field.name, &format::PayloadField::name) != fields.end())
      return use_error("show: " + path + " is given twice");
    locations[fields.size()] = member->location;
    fields.push_back(std::move(member->field));
  }
  const auto count = static_cast<std::uint32_t>(fields.size());
  object.set_own("tacho_shown", std::as_bytes(std::span(locations)));
  object.set_own("tacho_shown_count", std::as_bytes(std::span(&count, 1)));
  object.set_fields(kShownFields, fields);
  return Done{};
}

// Chooses among the traceable functions, or, if the kernel does not list these, among all functions.
Result<std::map<std::string, std::vector<std::uint64_t>>> probed_addresses(
    const std::vector<std::string>& names) {
  const auto kallsyms = format::read_file("/proc/kallsyms");
  if (!kallsyms) return kallsyms.error();
  const auto folder = bpf::find_tracefs({});
  const auto listed = format::read_file(folder ? *folder + "/available_filter_functions" : std::string());
  return function_places(listed ? format::as_text(*listed) : std::string_view(), format::as_text(*kallsyms),
                         names);
}

struct Chosen {
  std::vector<bpf::TakingFunction> functions;
  std::vector<std::uint64_t> addresses;  // one for each
  std::size_t not_traceable = 0, ambiguous = 0;
};

Result<Chosen> choose(std::vector<bpf::TakingFunction> functions) {
  std::vector<std::string> names;
  for (const bpf::TakingFunction& each : functions) names.push_back(each.name);
  const auto addresses = probed_addresses(names);
  if (!addresses) return addresses.error();
  Chosen chosen;
  for (bpf::TakingFunction& each : functions) {
    const auto found = addresses->find(each.name);
    if (found == addresses->end() || found->second.empty()) {
      ++chosen.not_traceable;
    } else if (found->second.size() > 1) {
      ++chosen.ambiguous;
    } else {
      chosen.addresses.push_back(found->second.front());
      chosen.functions.push_back(std::move(each));
    }
  }
  return chosen;
}

std::string counted_in_words(const std::string& type, std::size_t taking, const Chosen& chosen) {
  std::string left;
  if (chosen.not_traceable != 0) left += fmt::format("{} that cannot be traced", chosen.not_traceable);
  if (chosen.ambiguous != 0)
    left += fmt::format("{}{} with ambiguous names", left.empty() ? "" : ", ", chosen.ambiguous);
  return fmt::format("{} functions of the kernel take a {} *; {} are followed{}{}", taking, type,
                     chosen.functions.size(), left.empty() ? "" : ", not ", left);
}

// Sets the cookies, and finds `start` and `stop` among the functions.
Result<std::vector<std::uint64_t>> cookies_of(const bpf::UserObject& object, const Chosen& chosen) {
  std::vector<std::uint64_t> cookies;
  std::vector<std::string> names;
  for (const bpf::TakingFunction& each : chosen.functions) {
    cookies.push_back(each.argument);
    names.push_back(each.name);
  }
  for (const auto& [option, bit] : {std::pair{"start", TACHO_STARTS}, std::pair{"stop", TACHO_STOPS}}) {
    const std::string name = text_of(object, option);
    if (name.empty()) continue;
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      return use_error(
          fmt::format("{}: '{}' is not a followed function{}", option, name, cli::suggestion(name, names)));
    cookies[static_cast<std::size_t>(found - names.begin())] |= static_cast<std::uint64_t>(bit);
  }
  if (text_of(object, "start").empty() && !text_of(object, "stop").empty())
    return use_error("stop: needs start=FUNCTION");
  return cookies;
}

Result<bpf::FunctionTargets> found_functions(bpf::UserObject& object, const Messages& messages) {
  const std::string type = text_of(object, "type");
  const std::string pattern = text_of(object, "functions");
  if (type.empty()) return use_error("the type is missing: type='struct bio'");
  const auto types = bpf::ObjectTypes::of_this_kernel();
  if (!types) return types.error();
  auto taking = types->functions_taking(type);
  if (!taking) return taking.error();
  if (auto calls = set_members(object, *types, type); !calls) return std::move(calls.error());
  const std::size_t all = taking->size();
  const std::string start = text_of(object, "start"), stop = text_of(object, "stop");
  std::erase_if(*taking, [&](const bpf::TakingFunction& each) {
    return !pattern.empty() && each.name != start && each.name != stop &&
           ::fnmatch(pattern.c_str(), each.name.c_str(), 0) != 0;
  });
  if (taking->empty())
    return use_error(
        fmt::format("none of the {} functions that take a {} * matches '{}'", all, type, pattern));
  bpf::FunctionTargets targets;
  targets.in_kernel = true;
  targets.notice = [messages](std::string_view line) { messages.note("follow: " + std::string(line)); };
  targets.log = [messages](std::string_view line) { messages.detail("follow: " + std::string(line)); };
  targets.one_by_one = !bpf::has_kprobe_multi();
  auto chosen = choose(std::move(*taking));
  if (!chosen) return chosen.error();
  if (chosen->functions.empty())
    return use_error(counted_in_words(type, all, *chosen) +
                     "; or their addresses are hidden (kernel.kptr_restrict)");
  const std::size_t most = targets.one_by_one ? kMostOneByOne : kMostTogether;
  if (chosen->functions.size() > most)
    return use_error(
        fmt::format("{} functions that take a {} * can be followed, more than {}{}; choose some: "
                    "functions='submit_*'",
                    chosen->functions.size(), type, most,
                    targets.one_by_one ? ", since without CONFIG_FPROBE this kernel attaches each probe "
                                         "by itself"
                                       : ""));
  auto cookies = cookies_of(object, *chosen);
  if (!cookies) return cookies.error();
  // Checked before the message about followed functions.
  if (targets.one_by_one) {
    if (auto taken = bpf::check_single_kprobes(); !taken) return std::move(taken.error());
  }
  targets.offsets = chosen->addresses;
  targets.cookies = std::move(*cookies);
  messages.note(fmt::format("follow: {}{}", counted_in_words(type, all, *chosen),
                            targets.one_by_one ? ", each by its own probe" : ""));
  return targets;
}

}  // namespace

bool follows_objects(const bpf::UserObject& object) {
  return object.wants_functions() && !object.constant("tacho_shown").empty();
}

bool follows_objects_anywhere(const bpf::UserObject& object) {
  return follows_objects(object) && !text_of(object, "start").empty();
}

EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object) {
  const auto own = object.constants();
  std::vector<ConstantSetting> settings;
  for (ConstantSetting& each : request.object()->constants) {
    const bool is_own = std::ranges::find(own, each.name, &bpf::ObjectOption::name) != own.end();
    const bool is_member =
        !is_own && !each.value && !settings.empty() && settings.back().name == kShow && settings.back().value;
    if (is_member)
      *settings.back().value += "," + each.name;
    else
      settings.push_back(std::move(each));
  }
  request.object()->constants = std::move(settings);
  return request;
}

Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages) {
  auto found = found_functions(object, messages);
  if (found) return found;
  Error error = std::move(found.error());
  error.what = fmt::format("-e {}: {}", request.text, error.what);
  return error;
}

}  // namespace tacho::record
