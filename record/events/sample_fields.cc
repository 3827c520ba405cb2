#include "record/events/sample_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "cli/nearest.h"
#include "record/parse_text.h"

namespace tacho::record {

Result<std::uint32_t> parse_stack_bytes(std::string_view text) {
  const std::uint64_t bytes = whole_number<std::uint64_t>(text).value_or(0);
  const std::uint64_t rounded = bytes > kMostStackBytes ? 0 : (bytes + 7) / 8 * 8;
  if (rounded == 0) {
    return use_error(
        fmt::format("'{}' is no size of a piece of stack: 1 to {} bytes", text, kMostStackBytes));
  }
  return static_cast<std::uint32_t>(rounded);
}

Result<StackOptions> parse_call_graph(std::string_view text) {
  std::string_view more = text;
  const std::string_view method = take_until(more, ',');
  const bool has_more = method.size() != text.size();
  StackOptions out;
  if (method == "fp" || method == "ehframe" || method == "eh") {  // eh: as it was called first
    out.method = method == "fp" ? CallGraph::FramePointers : CallGraph::Unwound;
    if (!has_more) return out;
    const auto frames = whole_number<std::uint64_t>(more);
    const std::uint64_t most = method == "fp" ? kMostStackFrames : kMostUnwoundFrames;
    if (!frames || *frames == 0 || *frames > most)
      return use_error(fmt::format("'{}' is no number of frames: 1 to {}", more, most));
    out.max_frames = static_cast<std::uint16_t>(*frames);
    return out;
  }
  if (method == "dwarf") {
    out.method = CallGraph::Dwarf;
    if (!has_more) return out;
    const auto bytes = parse_stack_bytes(more);
    if (!bytes) return bytes.error();
    out.bytes = *bytes;
    return out;
  }
  if (method == "lbr" && !has_more) {
    out.method = CallGraph::LastBranches;
    return out;
  }
  return use_error(fmt::format(
      "'{}' is not understood; known: fp[,FRAMES] (frame pointers), dwarf[,BYTES] (a copy of the stack, "
      "unwound when the capture is read), lbr (the processor's branch records), ehframe[,FRAMES] (unwound in "
      "the kernel by the binaries' .eh_frame)",
      text));
}

namespace {

struct Filter {
  std::string_view name;
  std::uint64_t bits;
};

// linux/perf_event.h, PERF_SAMPLE_BRANCH_*; the names are perf's.
constexpr std::uint64_t kUser = 1 << 0, kKernel = 1 << 1, kHypervisor = 1 << 2, kAny = 1 << 3;
constexpr std::uint64_t kCallStack = 1 << 11, kNoFlags = 1 << 14, kNoCycles = 1 << 15, kHwIndex = 1 << 17;
constexpr Filter kFilters[] = {
    {"u", kUser},           {"k", kKernel},         {"hv", kHypervisor},    {"any", kAny},
    {"any_call", 1 << 4},   {"any_ret", 1 << 5},    {"ind_call", 1 << 6},   {"abort_tx", 1 << 7},
    {"in_tx", 1 << 8},      {"no_tx", 1 << 9},      {"cond", 1 << 10},      {"stack", kCallStack},
    {"ind_jmp", 1 << 12},   {"call", 1 << 13},      {"no_flags", kNoFlags}, {"no_cycles", kNoCycles},
    {"save_type", 1 << 16}, {"hw_index", kHwIndex}, {"priv", 1 << 18},
};

}  // namespace

Result<std::uint64_t> parse_branch_filter(std::string_view text) {
  std::uint64_t bits = 0;
  for (;;) {
    const std::string_view name = text.substr(0, text.find(','));
    const auto row = std::ranges::find(kFilters, name, &Filter::name);
    if (row == std::end(kFilters)) {
      std::vector<std::string> names;
      for (const Filter& filter : kFilters) names.emplace_back(filter.name);
      std::string tail = cli::suggestion(name, names);
      if (tail.empty()) tail = fmt::format("; known: {}", fmt::join(names, ", "));
      return use_error(fmt::format("unknown branch filter '{}'{}", name, tail));
    }
    bits |= row->bits;
    if (name.size() == text.size()) break;
    text.remove_prefix(name.size() + 1);
  }
  constexpr std::uint64_t kSides = kUser | kKernel | kHypervisor;
  return (bits & ~kSides) == 0 ? bits | kAny : bits;
}

std::uint64_t call_stack_branches() { return kUser | kCallStack | kNoFlags | kNoCycles | kHwIndex; }

namespace {

struct Clock {
  std::string_view name;
  int number;
};

// The first five are the kernel's names; the rest are perf's short forms.
constexpr Clock kClocks[] = {
    {"monotonic", CLOCK_MONOTONIC},
    {"monotonic_raw", CLOCK_MONOTONIC_RAW},
    {"boottime", CLOCK_BOOTTIME},
    {"realtime", CLOCK_REALTIME},
    {"tai", CLOCK_TAI},
    {"mono", CLOCK_MONOTONIC},
    {"raw", CLOCK_MONOTONIC_RAW},
    {"boot", CLOCK_BOOTTIME},
    {"real", CLOCK_REALTIME},
};

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

}  // namespace

Result<int> parse_clock(std::string_view text) {
  std::string name(text);
  std::ranges::transform(name, name.begin(), lower);
  if (name.starts_with("clock_")) name.erase(0, 6);
  auto number = whole_number<int>(name);
  if (!number) {
    const auto row = std::ranges::find(kClocks, name, &Clock::name);
    if (row == std::end(kClocks)) {
      return use_error(fmt::format(
          "'{}' is no clock; known: monotonic, monotonic_raw, boottime, realtime, tai, or a number", text));
    }
    number = row->number;
  }
  timespec resolution{};
  if (*number < 0 || clock_getres(*number, &resolution) != 0)
    return use_error(fmt::format("this host has no clock {}", text));
  return *number;
}

namespace {

struct Register {
  std::string_view name;
  int bit;
};

// asm/perf_regs.h of each machine. Registers of x86 that only 32-bit kernels fill (DS, ES, FS, GS) are left
// out.
#if defined(__x86_64__)
constexpr Register kRegisters[] = {{"AX", 0},   {"BX", 1},   {"CX", 2},   {"DX", 3},   {"SI", 4},
                                   {"DI", 5},   {"BP", 6},   {"SP", 7},   {"IP", 8},   {"FLAGS", 9},
                                   {"CS", 10},  {"SS", 11},  {"R8", 16},  {"R9", 17},  {"R10", 18},
                                   {"R11", 19}, {"R12", 20}, {"R13", 21}, {"R14", 22}, {"R15", 23}};
#elif defined(__aarch64__)
constexpr Register kRegisters[] = {
    {"x0", 0},   {"x1", 1},   {"x2", 2},   {"x3", 3},   {"x4", 4},   {"x5", 5},   {"x6", 6},
    {"x7", 7},   {"x8", 8},   {"x9", 9},   {"x10", 10}, {"x11", 11}, {"x12", 12}, {"x13", 13},
    {"x14", 14}, {"x15", 15}, {"x16", 16}, {"x17", 17}, {"x18", 18}, {"x19", 19}, {"x20", 20},
    {"x21", 21}, {"x22", 22}, {"x23", 23}, {"x24", 24}, {"x25", 25}, {"x26", 26}, {"x27", 27},
    {"x28", 28}, {"x29", 29}, {"lr", 30},  {"sp", 31},  {"pc", 32}};
#else
constexpr std::span<const Register> kRegisters;
#endif

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::uint64_t all_registers() {
  std::uint64_t all = 0;
  for (const Register& each : kRegisters) all |= std::uint64_t{1} << each.bit;
  return all;
}

std::string register_names() {
  std::string names;
  for (const Register& each : kRegisters) names.append(names.empty() ? "" : " ").append(each.name);
  return names;
}

Result<std::uint64_t> parse_registers(std::string_view text) {
  std::uint64_t bits = 0;
  for (;;) {
    const std::string_view name = text.substr(0, text.find(','));
    const auto row = std::ranges::find_if(
        kRegisters, [name](const Register& each) { return same_letters(each.name, name); });
    if (row == std::end(kRegisters)) {
      return use_error(
          fmt::format("'{}' is no register here; registers: {} (-I and --user-regs alone take all)", name,
                      register_names()));
    }
    bits |= std::uint64_t{1} << row->bit;
    if (name.size() == text.size()) return bits;
    text.remove_prefix(name.size() + 1);
  }
}

}  // namespace tacho::record
