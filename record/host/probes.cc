#include "record/host/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "bpf/object/kernel_btf.h"
#include "cli/nearest.h"
#include "format/base/file.h"
#include "record/events/probe_arguments.h"
#include "record/host/probe_offsets.h"
#include "record/host/report_program.h"
#include "record/host/running_kernel.h"

namespace tacho::record {
namespace {

Error wrong(const EventRequest& request, const std::string& what) {
  return use_error(fmt::format("-e {}: {}", request.text, what));
}

// Finds the file: the kernel opens a path as this process sees it, the capture has the full path. A bare name
// is looked up as a library or program.
Result<std::string> whole_path(const EventRequest& request) {
  std::string path = request.probe()->path;
  if (std::error_code failed; path.find('/') == std::string::npos && !std::filesystem::exists(path, failed)) {
    if (auto library = library_file(path, -1)) path = std::move(*library);
  }
  const std::unique_ptr<char, decltype(&std::free)> found(realpath(path.c_str(), nullptr), &std::free);
  if (!found) return wrong(request, fmt::format("there is no file {}", request.probe()->path));
  return std::string(found.get());
}

// Sets a field of the PMU that this kernel may lack.
Result<> set_field(EventRequest& request, const Pmu& pmu, std::string_view name, std::uint64_t value) {
  if (value == 0) return Done{};
  for (const PmuField& field : pmu.fields) {
    if (field.name != name || field.word != 0 || value > largest_value(field)) continue;
    request.config |= placed(field, value);
    return Done{};
  }
  return wrong(request, fmt::format("this kernel's PMU {} has no '{}'", pmu.name, name));
}

Result<Pmu> pmu_for(const EventRequest& request, const Pmus& pmus) {
  const bool is_kernel = request.probe()->kind == ProbeKind::Kernel;
  auto pmu = pmus.read_pmu(is_kernel ? "kprobe" : "uprobe");
  if (pmu) return std::move(*pmu);
  return Error{fmt::format("-e {}: this kernel has no {} (Linux 4.17, {})", request.text,
                           is_kernel ? "kprobes for perf" : "uprobes for perf",
                           is_kernel ? "CONFIG_KPROBE_EVENTS" : "CONFIG_UPROBE_EVENTS")};
}

Result<> set_arguments(EventRequest& request, const KnownArguments& known) {
  if (request.arguments.empty()) return Done{};
  const auto is_register = [](const ArgumentRequest& one) { return one.source.starts_with('%'); };
  if (request.probe()->offset != 0 && !request.probe()->function.empty() &&
      !std::ranges::all_of(request.arguments, is_register))
    return wrong(request,
                 "after a function's first instruction its arguments may have moved; name registers, as %di");
  auto placed = place_arguments(request.arguments, known);
  if (!placed) return wrong(request, placed.error().what);
  request.placed_arguments = std::move(*placed);
  if (request.sum && request.sum->has_value && bpf::is_text(request.placed_arguments[request.sum->keys]))
    return wrong(request, "a text has no distribution; key= counts each of its values");
  return Done{};
}

Result<> add_marker(const EventRequest& request, const Pmu& pmu, format::Bytes file,
                    std::vector<EventRequest>& out) {
  const auto markers = usdt_markers(file);
  if (!markers) return wrong(request, fmt::format("{}: {}", request.probe()->path, markers.error().what));
  std::vector<std::string> names;
  std::size_t found = 0;
  for (const UsdtMarker& marker : *markers) {
    names.push_back(marker.provider + ":" + marker.name);
    if (marker.provider != request.probe()->provider || marker.name != request.probe()->function) continue;
    EventRequest one = request;
    one.config2 = marker.offset;
    if (auto done = set_field(one, pmu, "ref_ctr_offset", marker.semaphore); !done) return done;
    const auto known = marker_arguments(marker.arguments);
    if (auto done = set_arguments(one, {.kind = ProbeKind::Marker, .marker = known}); !done) return done;
    out.push_back(std::move(one));
    ++found;
  }
  if (found != 0) return Done{};
  const std::string wanted = request.probe()->provider + ":" + request.probe()->function;
  return wrong(request, fmt::format("{} has no marker {}{}", request.probe()->path, wanted,
                                    names.empty() ? "; it has no markers" : cli::suggestion(wanted, names)));
}

bool asks_what_there_is(const EventRequest& request) {
  return std::ranges::find(request.arguments, "?", &ArgumentRequest::source) != request.arguments.end();
}

// `offset`: of the function, when it was named.
Result<> set_user_offset(EventRequest& request, std::optional<std::uint64_t> offset,
                         const std::function<bool()>& stop) {
  KnownArguments known{.kind = ProbeKind::User, .at_return = request.probe()->at_return};
  if (request.probe()->at_return || !offset || request.probe()->offset != 0)
    return set_arguments(request, known);
  const auto named =
      user_arguments({request.probe_target, *offset, request.probe()->function}, request.arguments, stop);
  std::string missing_reason;
  if (named)
    known.named = *named;
  else if (named.error().code == EINTR)
    return Error{named.error()}.in("-e " + request.text);
  else if (named.error().what.starts_with('\'') || asks_what_there_is(request))
    return wrong(request, named.error().what);  // the error names the argument
  else
    missing_reason = named.error().what;
  known.missing_reason = missing_reason;
  return set_arguments(request, known);
}

Result<> add_user_probe(EventRequest request, const Pmu& pmu, std::vector<EventRequest>& out,
                        const std::function<bool()>& stop) {
  auto path = whole_path(request);
  if (!path) return std::move(path.error());
  request.probe_target = std::move(*path);
  if (request.probe()->kind == ProbeKind::User && request.probe()->function.empty()) {
    request.config2 = request.probe()->offset;
    if (auto done = set_user_offset(request, std::nullopt, stop); !done) return done;
    out.push_back(std::move(request));
    return Done{};
  }
  const auto file = format::read_file(request.probe_target);
  if (!file) return wrong(request, file.error().what);
  if (request.probe()->kind == ProbeKind::Marker) return add_marker(request, pmu, *file, out);
  const auto offset = function_offset(*file, request.probe()->function);
  if (!offset) return wrong(request, fmt::format("{}: {}", request.probe()->path, offset.error().what));
  request.config2 = *offset + request.probe()->offset;
  if (auto done = set_user_offset(request, *offset, stop); !done) return done;
  out.push_back(std::move(request));
  return Done{};
}

// Without a list of functions only the kernel can check it.
Result<> add_kernel_probe(EventRequest request, std::vector<EventRequest>& out) {
  if (const auto kallsyms = format::read_file("/proc/kallsyms"); kallsyms && !kallsyms->empty()) {
    const auto found =
        check_kernel_function(format::as_text(*kallsyms), request.probe()->function, request.probe()->offset);
    if (!found) return wrong(request, found.error().what);
  }
  // Without type information only positions and registers can be used.
  std::vector<bpf::FunctionArgument> known;
  if (!request.arguments.empty()) {
    if (auto found = bpf::kernel_function_arguments(request.probe()->function)) known = std::move(*found);
  }
  if (auto done = set_arguments(
          request, {.kind = ProbeKind::Kernel, .at_return = request.probe()->at_return, .function = known});
      !done)
    return done;
  request.probe_target = request.probe()->function;
  request.config2 = request.probe()->offset;
  out.push_back(std::move(request));
  return Done{};
}

}  // namespace

Result<std::vector<EventRequest>> find_probes(std::vector<EventRequest> requests,
                                              const std::function<bool()>& stop, const Pmus& pmus) {
  std::vector<EventRequest> out;
  for (EventRequest& request : requests) {
    if (request.probe() == nullptr) {
      out.push_back(std::move(request));
      continue;
    }
    const auto pmu = pmu_for(request, pmus);
    if (!pmu) return pmu.error();
    request.type = pmu->type;
    if (auto done = set_field(request, *pmu, "retprobe", request.probe()->at_return ? 1 : 0); !done)
      return std::move(done.error());
    auto done = request.probe()->kind == ProbeKind::Kernel
                    ? add_kernel_probe(std::move(request), out)
                    : add_user_probe(std::move(request), *pmu, out, stop);
    if (!done) return std::move(done.error());
  }
  return out;
}

std::vector<std::string> warnings_of_return_probes(std::span<const EventRequest> requests) {
  std::vector<std::string> warnings, seen;
  for (const EventRequest& request : requests) {
    const ProbeRequest* const probe = request.probe();
    if (probe == nullptr || !probe->at_return || probe->kind == ProbeKind::Kernel) continue;
    if (std::ranges::find(seen, request.probe_target) != seen.end()) continue;
    seen.push_back(request.probe_target);
    const auto file = format::read_file(request.probe_target);
    const auto functions = file ? functions_of(*file) : Result<FunctionOffsets>(Error{});
    if (!functions) continue;
    if (functions->is_go)
      warnings.push_back(
          fmt::format("-e {}: {} is a Go program, whose stacks move: a return probe may crash it",
                      request.text, request.probe_target));
    else if (functions->throws)
      warnings.push_back(fmt::format(
          "-e {}: {} throws exceptions: an exception through a probed function would terminate its process, "
          "recorded or not; probe functions through which none is thrown",
          request.text, request.probe_target));
  }
  return warnings;
}

}  // namespace tacho::record
