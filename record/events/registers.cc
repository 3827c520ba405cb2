#include "record/events/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace tacho::record {
namespace {

struct Register {
  std::string_view name;
  int bit;
};

// asm/perf_regs.h of each machine. Those of x86 that only 32-bit kernels fill (DS, ES, FS, GS) are not
// offered.
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

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

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
