#include "record/followed_functions.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/file.h"
#include "record/host/elf_places.h"
#include "record/workload.h"

namespace tacho::record {
namespace {

// Each is a breakpoint, which a program's every call runs into.
constexpr std::size_t kMostFunctions = 20'000;

// Code that no compiler made of a function: where it returns to does not lie where a function's caller is, or
// it runs before there is anything to follow.
constexpr std::string_view kNeverFollowed[] = {
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
};

std::string setting(const EventRequest& request, std::string_view name) {
  const auto found = std::ranges::find(request.constants, name, &ConstantSetting::name);
  return found == request.constants.end() ? std::string() : found->value.value_or("");
}

std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

Result<bpf::FunctionTargets> followed_functions(const EventRequest& request) {
  const std::string binary = unquoted(setting(request, "binary"));
  const std::string pattern = unquoted(setting(request, "functions"));
  const auto wrong = [&](const std::string& what) {
    return use_error(fmt::format("-e {}: {}", request.text, what));
  };
  if (binary.empty()) return wrong("which program? binary='./prog'");
  const auto path = binary.find('/') == std::string::npos ? path_of_program(binary) : std::optional(binary);
  std::error_code failed;
  const auto whole = std::filesystem::canonical(path.value_or(binary), failed);
  if (failed) return wrong(fmt::format("{}: {}", binary, failed.message()));
  const auto file = format::read_file(whole);
  if (!file) return file.error();
  auto functions = functions_of(*file);
  if (!functions) return wrong(fmt::format("{}: {}", binary, functions.error().what));
  if (functions->is_go)
    return wrong(
        fmt::format("{} is a Go program, whose stacks move: probes on returns would end it", binary));
  bpf::FunctionTargets targets{whole, {}};
  for (const FunctionPlace& place : functions->places) {
    const bool is_left_out = std::ranges::find(kNeverFollowed, place.name) != std::end(kNeverFollowed);
    const bool is_wanted = pattern.empty() || ::fnmatch(pattern.c_str(), place.name.c_str(), 0) == 0;
    if (!is_left_out && is_wanted) targets.offsets.push_back(place.offset);
  }
  std::ranges::sort(targets.offsets);
  targets.offsets.erase(std::unique(targets.offsets.begin(), targets.offsets.end()), targets.offsets.end());
  if (targets.offsets.empty())
    return wrong(
        functions->places.empty()
            ? fmt::format("{} has no symbols (strip took them out), so its functions are not known", binary)
            : fmt::format("{} has no function that matches '{}'", binary, pattern));
  if (targets.offsets.size() > kMostFunctions)
    return wrong(fmt::format("{} has {} functions, more than {}; choose some: functions='parse_*'", binary,
                             targets.offsets.size(), kMostFunctions));
  return targets;
}

}  // namespace tacho::record
