#include "report/decode/coded_values.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::report {

namespace {

constexpr unsigned kTypeAt = 20, kExtendedAt = 26;

constexpr std::string_view kTypes[] = {"",         "COND", "UNCOND",  "IND",    "CALL",
                                       "IND_CALL", "RET",  "SYSCALL", "SYSRET", "COND_CALL",
                                       "COND_RET", "ERET", "IRQ",     "SERROR", "NO_TX"};
constexpr std::string_view kExtendedTypes[] = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
                                               "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5"};
static_assert(std::size(kExtendedTypes) == BranchType::kExtendedCount);

}  // namespace

BranchType branch_type(std::uint64_t flags) {
  return {static_cast<unsigned>(flags >> kTypeAt & 15), static_cast<unsigned>(flags >> kExtendedAt & 15)};
}

std::string_view branch_type_name(BranchType type) {
  if (type.type != BranchType::kExtended) return kTypes[type.type];
  // perf's text for a type without a name.
  return type.extended < std::size(kExtendedTypes) ? kExtendedTypes[type.extended] : "(null)";
}

namespace {

// The fields of the kernel's union perf_mem_data_src.
struct Part {
  unsigned shift, width;
  std::uint64_t of(std::uint64_t source) const { return source >> shift & ((std::uint64_t{1} << width) - 1); }
};
constexpr Part kOperation{0, 5}, kLevels{5, 14}, kSnoop{19, 5}, kLock{24, 2}, kTlb{26, 7},
    kLevelNumber{33, 4}, kRemote{37, 1}, kSnoopMore{38, 2}, kBlocked{40, 3}, kHops{43, 3};

constexpr std::string_view kOperations[] = {"N/A", "LOAD", "STORE", "PFETCH", "EXEC"};
constexpr std::string_view kLevelNames[] = {"N/A",
                                            "HIT",
                                            "MISS",
                                            "L1",
                                            "LFB/MAB",
                                            "L2",
                                            "L3",
                                            "Local RAM",
                                            "Remote RAM (1 hop)",
                                            "Remote RAM (2 hops)",
                                            "Remote Cache (1 hop)",
                                            "Remote Cache (2 hops)",
                                            "I/O",
                                            "Uncached"};
constexpr unsigned kFirstNamedLevel = 9;  // below: L1, L2, ...
constexpr std::string_view kNumberedLevels[] = {"CXL", "I/O", "Any cache", "LFB/MAB", "RAM", "PMEM", "N/A"};
constexpr std::string_view kHopNames[] = {"N/A", "core, same node", "node, same socket", "socket, same board",
                                          "board"};
constexpr std::string_view kSnoops[] = {"N/A", "None", "Hit", "Miss", "HitM"};
constexpr std::string_view kMoreSnoops[] = {"Fwd", "Peer"};
constexpr std::string_view kLocks[] = {"N/A", "Yes"};
constexpr std::string_view kTlbs[] = {"N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"};
constexpr std::uint64_t kHit = 2, kMiss = 4;  // among levels and TLBs

// Appends the names of the bits that are set to `text`, separated by " or ".
void add_names(std::string& text, std::uint64_t bits, std::span<const std::string_view> names,
               bool& has_some) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    if (has_some) text += " or ";
    text += names[i];
    has_some = true;
  }
}

std::string hit_or_miss(std::uint64_t bits) {
  return std::string((bits & kHit) != 0 ? " hit" : "") + ((bits & kMiss) != 0 ? " miss" : "");
}

std::string level_text(std::uint64_t source) {
  const std::uint64_t levels = kLevels.of(source), number = kLevelNumber.of(source), hops = kHops.of(source);
  std::string text = kRemote.of(source) != 0 ? "Remote " : "";
  bool has_some = false;
  if (hops != 0) {
    text.append(kHopNames[hops < std::size(kHopNames) ? hops : 0]).append(" ");
  } else {
    add_names(text, levels & ~(kHit | kMiss), kLevelNames, has_some);
  }
  if (number != 0) {
    if (has_some) text += " or ";
    text += number < kFirstNamedLevel ? fmt::format("L{}", number)
                                      : std::string(kNumberedLevels[number - kFirstNamedLevel]);
  }
  if (text.empty()) text = "N/A";
  return text + hit_or_miss(levels);
}

std::string snoop_text(std::uint64_t source) {
  std::string text;
  bool has_some = false;
  add_names(text, kSnoop.of(source), kSnoops, has_some);
  add_names(text, kSnoopMore.of(source), kMoreSnoops, has_some);
  return has_some ? text : "N/A";
}

std::string tlb_text(std::uint64_t source) {
  const std::uint64_t tlb = kTlb.of(source);
  std::string text;
  bool has_some = false;
  add_names(text, tlb & ~(kHit | kMiss), kTlbs, has_some);
  return (has_some ? text : "N/A") + hit_or_miss(tlb);
}

// The lowest bit decides.
std::string_view first_name(std::uint64_t bits, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) return names[i];
  }
  return "No";
}

std::string lock_text(std::uint64_t source) { return std::string(first_name(kLock.of(source), kLocks)); }

std::string blocked_text(std::uint64_t source) {
  const std::uint64_t blocked = kBlocked.of(source);
  if (blocked == 0 || (blocked & 1) != 0) return " N/A";
  return std::string((blocked & 2) != 0 ? " Data" : "") + ((blocked & 4) != 0 ? " Addr" : "");
}

}  // namespace

std::string data_source_text(std::uint64_t source) {
  constexpr std::size_t kMost = 99;
  const std::string text =
      fmt::format("{:16x} |OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}", source,
                  first_name(kOperation.of(source), kOperations), level_text(source), snoop_text(source),
                  tlb_text(source), lock_text(source), blocked_text(source));
  return text.substr(0, kMost);
}

namespace {

struct PartRow {
  Part bits;
  std::string (*text)(std::uint64_t source);
};
// In the order of DataSourcePart.
constexpr PartRow kSourceParts[] = {{kLevels, level_text},
                                    {kSnoop, snoop_text},
                                    {kTlb, tlb_text},
                                    {kLock, lock_text},
                                    {kBlocked, blocked_text}};

}  // namespace

std::uint64_t data_source_bits(DataSourcePart part, std::uint64_t source) {
  return kSourceParts[static_cast<std::size_t>(part)].bits.of(source);
}

std::string data_source_part(DataSourcePart part, std::uint64_t source) {
  constexpr std::size_t kMost = 63;
  return kSourceParts[static_cast<std::size_t>(part)].text(source).substr(0, kMost);
}

std::string short_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMG";
  std::size_t unit = 0;
  for (; bytes / 1024 > 1 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string page_size_text(std::uint64_t size) { return size == 0 ? "N/A" : short_size(size); }

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

struct RegisterMachine {
  std::string_view prefix;  // of uname's word for it
  std::initializer_list<Row> rows;
};
const RegisterMachine kMachines[] = {
    {"x86", kX86},   {"i386", kX86},      {"i486", kX86},        {"i586", kX86},
    {"i686", kX86},  {"aarch64", kArm64}, {"arm64", kArm64},     {"arm", kArm},
    {"s390", kS390}, {"ppc", kPowerpc},   {"powerpc", kPowerpc}, {"mips", kMips},
};

}  // namespace

std::string register_name(std::string_view arch, unsigned number) {
  const auto machine = std::ranges::find_if(
      kMachines, [arch](const RegisterMachine& candidate) { return arch.starts_with(candidate.prefix); });
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

std::string alternate_hex(std::uint64_t value) { return value == 0 ? "0" : fmt::format("{:#x}", value); }

namespace {

using format::Cursor;

std::string ptwrite(Cursor& in) {
  const std::uint32_t flags = in.u32();
  const std::uint64_t payload = in.u64();
  std::string text;
  bool is_text = true;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    const auto letter = static_cast<char>(payload >> shift & 0xff);
    if (letter == 0) {
      is_text = is_text && payload >> shift == 0;
      break;
    }
    is_text = is_text && letter >= ' ' && letter < 0x7f;
    text += letter;
  }
  return fmt::format(" IP: {} payload: {} {} ", flags & 1, alternate_hex(payload), is_text ? text : "");
}

std::string mwait(Cursor& in) {
  in.u32();
  const std::uint32_t hints = in.u32(), extensions = in.u32();
  return fmt::format(" hints: {} extensions: {} ", alternate_hex(hints & 0xff),
                     alternate_hex(extensions & 3));
}

std::string power_entry(Cursor& in) {
  in.u32();
  const std::uint64_t bits = in.u64();
  return fmt::format(" hw: {} cstate: {} sub-cstate: {} ", bits >> 7 & 1, bits >> 12 & 15, bits >> 8 & 15);
}

std::string execution_stop(Cursor& in) { return fmt::format(" IP: {} ", in.u32() & 1); }

std::string power_exit(Cursor& in) {
  in.u32();
  const std::uint64_t bits = in.u64();
  return fmt::format(" deepest cstate: {} last cstate: {} wake reason: {} ", bits & 15, bits >> 4 & 15,
                     alternate_hex(bits >> 8 & 15));
}

std::string bus_ratio(Cursor& in) {
  const std::uint32_t bits = in.u32(), frequency = in.u32();
  in.u32();
  const std::uint32_t ratio = bits & 0xff, most = bits >> 16 & 0xff;
  std::string text = fmt::format(" cbr: {:2} freq: {:4} MHz ", ratio, (frequency + 500) / 1000);
  if (most != 0) text += fmt::format("({:3}%) ", (5 + 1000 * ratio / most) / 10);
  return text;
}

std::string stream_boundary(Cursor& in) {
  in.u32();
  return " psb offs: " + alternate_hex(in.u64());
}

std::string trace_event(Cursor& in) {
  static constexpr std::string_view kKinds[] = {"",         "INTR", "IRET",    "SMI",    "RSM",
                                                "SIPI",     "INIT", "VMENTRY", "VMEXIT", "VMEXIT_INTR",
                                                "SHUTDOWN", "",     "UINTR",   "UIRET"};
  static constexpr std::string_view kData[] = {"PFA", "VMXQ", "VMXR"};
  const std::uint32_t bits = in.u32(), kind = bits & 31;
  const bool has_name = kind < std::size(kKinds) && !kKinds[kind].empty();
  std::string text =
      fmt::format(" cfe: {} IP: {} vector: {}", has_name ? std::string(kKinds[kind]) : std::to_string(kind),
                  bits >> 7 & 1, bits >> 8 & 0xff);
  for (std::uint32_t left = bits >> 16; left > 0 && !in.failed(); --left) {
    const std::uint64_t type = in.u64() & 63, payload = in.u64();
    if (in.failed()) break;
    text += fmt::format(" {}: {}",
                        type < std::size(kData) ? std::string(kData[type]) : fmt::format("EVD_{}", type),
                        alternate_hex(payload));
  }
  return text;
}

std::string interrupt_flag(Cursor& in) {
  const std::uint32_t bits = in.u32();
  return fmt::format(" IFLAG: {}->{} {} branch", (bits & 1) != 0 ? 0 : 1, bits & 1,
                     (bits & 2) != 0 ? "via" : "non");
}

struct SynthKind {
  std::string (*text)(Cursor&);
  std::size_t size;  // bytes that must be there
};
// By the event's config (perf's enum perf_synth_id).
constexpr SynthKind kSynthKinds[] = {{ptwrite, 12},         {mwait, 12},      {power_entry, 12},
                                     {execution_stop, 4},   {power_exit, 12}, {bus_ratio, 12},
                                     {stream_boundary, 12}, {trace_event, 4}, {interrupt_flag, 12}};

}  // namespace

void write_synth(TextBuffer& out, std::uint64_t config, format::Bytes raw, std::endian order) {
  constexpr std::size_t kWidth = 34;
  if (config >= std::size(kSynthKinds) || raw.size() < kSynthKinds[config].size) return;
  Cursor in(raw, order);
  out.left(kSynthKinds[config].text(in), kWidth);
}

}  // namespace tacho::report
