#include "report/decode/register_names.h"

#include <sys/utsname.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace tacho::report {
namespace {

// Registers from `first` on: `names` one by one, or `count` of them numbered from 0 after `prefix`, each
// `repeat` times.
struct Row {
  unsigned first = 0;
  std::initializer_list<std::string_view> names = {};
  std::string_view prefix = {};
  unsigned count = 0, repeat = 1;
};

// The kernel's arch/*/include/uapi/asm/perf_regs.h.
const std::initializer_list<Row> kX86 = {
    {0, {"AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS"}},
    {16, {"R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}},
    {32, {}, "XMM", 16, 2},  // each has two halves
};
const std::initializer_list<Row> kArm64 = {{0, {}, "x", 30}, {30, {"lr", "sp", "pc"}}, {46, {"vg"}}};
const std::initializer_list<Row> kArm = {{0, {}, "r", 11}, {11, {"fp", "ip", "sp", "lr", "pc"}}};
const std::initializer_list<Row> kS390 = {{0, {}, "R", 16}, {16, {}, "FP", 16}, {32, {"MASK", "PC"}}};
const std::initializer_list<Row> kPowerpc = {
    {0, {}, "r", 32},
    {32, {"nip",   "msr",   "orig_r3", "ctr",   "link",  "xer",   "ccr",   "softe", "trap",
          "dar",   "dsisr", "sier",    "mmcra", "mmcr0", "mmcr1", "mmcr2", "mmcr3", "sier2",
          "sier3", "pmc1",  "pmc2",    "pmc3",  "pmc4",  "pmc5",  "pmc6",  "sdar",  "siar"}},
};
const std::initializer_list<Row> kMips = {
    {0, {"PC",  "$1",  "$2",  "$3",  "$4",  "$5",  "$6",  "$7",  "$8",  "$9",  "$10", "$11", "$12",
         "$13", "$14", "$15", "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25"}},
    {28, {"$28", "$29", "$30", "$31"}},
};

struct Machine {
  std::string_view prefix;  // of uname's word for it
  std::initializer_list<Row> rows;
};
const Machine kMachines[] = {
    {"x86", kX86},   {"i386", kX86},      {"i486", kX86},        {"i586", kX86},
    {"i686", kX86},  {"aarch64", kArm64}, {"arm64", kArm64},     {"arm", kArm},
    {"s390", kS390}, {"ppc", kPowerpc},   {"powerpc", kPowerpc}, {"mips", kMips},
};

}  // namespace

std::string register_name(std::string_view arch, unsigned number) {
  const auto machine = std::ranges::find_if(
      kMachines, [arch](const Machine& candidate) { return arch.starts_with(candidate.prefix); });
  if (machine == std::end(kMachines)) return "unknown";
  for (const Row& row : machine->rows) {
    if (number < row.first) continue;
    const unsigned at = number - row.first;
    if (at < row.names.size()) return std::string(row.names.begin()[at]);
    if (at < row.count * row.repeat) return std::string(row.prefix) + std::to_string(at / row.repeat);
  }
  return "unknown";
}

std::string register_machine(const std::optional<std::string>& recorded) {
  utsname running{};
  if (recorded || ::uname(&running) != 0) return recorded.value_or("");
  return running.machine;
}

}  // namespace tacho::report
