#include "report/decode/bpf_instructions.h"

#include <fmt/format.h>
#include <linux/bpf.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "report/decode/bpf_functions.h"

namespace tacho::report {
namespace {

constexpr std::size_t kInstructionSize = 8;  // bytes

// Masks: of the class, the size, the mode of loads and stores, and the operation.
constexpr std::uint8_t kClass = 0x07, kSize = 0x18, kMode = 0xe0, kOperationBits = 0xf0, kFromRegister = 0x08;
// Not in the kernel headers of the distributions yet.
constexpr std::uint8_t kMemorySigned = 0x80, kConditional = 0xe0, kNoSpeculation = 0xc0;
constexpr std::int32_t kLoadAcquire = 0x100, kStoreRelease = 0x110;
constexpr std::int16_t kCastAddressSpace = 1, kPerCpuAddress = -1;

constexpr std::string_view kSizeNames[] = {"u32", "u16", "u8", "u64"};
constexpr std::string_view kSignedSizes[] = {"s32", "s16", "s8", "s64"};
constexpr std::string_view kArithmetic[] = {
    "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=", "s>>=", "endian", "?", "?"};
constexpr std::string_view kJumps[] = {
    "jmp", "==", ">", ">=", "&", "!=", "s>", "s>=", "call", "exit", "<", "<=", "s<", "s<=", "?", "?"};

// The kernel's helper functions by number: calls have numbers until the verifier replaces them by addresses.
#define TACHO_HELPER_NAME(name) #name
constexpr std::string_view kHelpers[] = {__BPF_FUNC_MAPPER(TACHO_HELPER_NAME)};
#undef TACHO_HELPER_NAME

BpfInstruction read_instruction(format::Cursor& in) {
  BpfInstruction one;
  one.code = in.u8();
  const std::uint8_t registers = in.u8();
  one.destination = registers & 0xfU;
  one.source = registers >> 4U;
  one.offset = static_cast<std::int16_t>(in.u16());
  one.immediate = static_cast<std::int32_t>(in.u32());
  return one;
}

std::uint8_t class_of(const BpfInstruction& one) { return one.code & kClass; }
std::string_view size_of(const BpfInstruction& one) { return kSizeNames[(one.code & kSize) >> 3U]; }
bool is_from_register(const BpfInstruction& one) { return (one.code & kFromRegister) != 0; }

std::string unknown(std::string_view kind, const BpfInstruction& one) {
  return fmt::format("BUG_{}{:02x}", kind, one.code);
}

std::string memory_text(const BpfInstruction& one, std::uint8_t base, std::string_view size) {
  return fmt::format("*({} *)(r{} {:+})", size, base, one.offset);
}

// BPF_ALU and BPF_ALU64.
std::string arithmetic(const BpfInstruction& one) {
  const bool is_wide = class_of(one) == BPF_ALU64;
  const std::uint8_t operation = one.code & kOperationBits;
  const std::string to = fmt::format("{}{}", is_wide ? 'r' : 'w', one.destination);
  if (operation == BPF_END) {
    const std::string_view order = is_wide ? "bswap" : is_from_register(one) ? "be" : "le";
    return fmt::format("r{} = {}{} r{}", one.destination, order, one.immediate, one.destination);
  }
  if (operation == BPF_NEG) return fmt::format("{} = -{}", to, to);
  if (kArithmetic[operation >> 4U] == "?") return unknown("alu_", one);
  const bool is_division = operation == BPF_DIV || operation == BPF_MOD;
  const std::string sign = is_division && one.offset == 1 ? "s" : "";
  const std::string with = sign + std::string(kArithmetic[operation >> 4U]);
  if (!is_from_register(one)) return fmt::format("{} {} {}", to, with, one.immediate);
  if (operation == BPF_MOV && is_wide && one.offset == kCastAddressSpace) {
    const auto spaces = static_cast<std::uint32_t>(one.immediate);
    return fmt::format("r{} = addr_space_cast(r{}, {}, {})", one.destination, one.source, spaces >> 16U,
                       spaces & 0xffffU);
  }
  if (operation == BPF_MOV && is_wide && one.offset == kPerCpuAddress)
    return fmt::format("r{} = &(void __percpu *)(r{})", one.destination, one.source);
  std::string extended;
  if (operation == BPF_MOV && (one.offset == 8 || one.offset == 16 || one.offset == 32))
    extended = fmt::format("(s{})", one.offset);
  return fmt::format("{} {} {}{}{}", to, with, extended, is_wide ? 'r' : 'w', one.source);
}

std::string atomic(const BpfInstruction& one) {
  const std::string place = fmt::format("({} *)(r{} {:+})", size_of(one), one.destination, one.offset);
  const std::string_view wide = (one.code & kSize) == BPF_DW ? "64" : "";
  switch (one.immediate) {
    case BPF_ADD:
    case BPF_AND:
    case BPF_OR:
    case BPF_XOR:
      return fmt::format("lock *{} {} r{}", place, kArithmetic[one.immediate >> 4], one.source);
    case BPF_ADD | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_add({}, r{})", one.source, wide, place, one.source);
    case BPF_AND | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_and({}, r{})", one.source, wide, place, one.source);
    case BPF_OR | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_or({}, r{})", one.source, wide, place, one.source);
    case BPF_XOR | BPF_FETCH:
      return fmt::format("r{} = atomic{}_fetch_xor({}, r{})", one.source, wide, place, one.source);
    case BPF_CMPXCHG:
      return fmt::format("r0 = atomic{}_cmpxchg({}, r0, r{})", wide, place, one.source);
    case BPF_XCHG:
      return fmt::format("r{} = atomic{}_xchg({}, r{})", one.source, wide, place, one.source);
    case kLoadAcquire:
      return fmt::format("r{} = load_acquire(({} *)(r{} {:+}))", one.destination, size_of(one), one.source,
                         one.offset);
    case kStoreRelease:
      return fmt::format("store_release({}, r{})", place, one.source);
    default:
      return unknown("", one);
  }
}

// BPF_LDX, BPF_ST and BPF_STX.
std::string load_or_store(const BpfInstruction& one) {
  const std::uint8_t mode = one.code & kMode;
  if (class_of(one) == BPF_LDX) {
    const bool is_signed = mode == kMemorySigned;
    if (mode != BPF_MEM && !is_signed) return unknown("ldx_", one);
    const std::string_view size = is_signed ? kSignedSizes[(one.code & kSize) >> 3U] : size_of(one);
    return fmt::format("r{} = {}", one.destination, memory_text(one, one.source, size));
  }
  if (class_of(one) == BPF_ST) {
    if (mode == kNoSpeculation) return "nospec";
    if (mode != BPF_MEM) return unknown("st_", one);
    return fmt::format("{} = {}", memory_text(one, one.destination, size_of(one)), one.immediate);
  }
  if (mode == BPF_ATOMIC) return atomic(one);
  if (mode != BPF_MEM) return unknown("", one);
  return fmt::format("{} = r{}", memory_text(one, one.destination, size_of(one)), one.source);
}

// BPF_LD: legacy packet loads, and immediates of 64 bits, which the kernel prints as the object they refer
// to.
std::string load_wide(const BpfInstruction& one, const BpfInstruction& next) {
  const std::uint8_t mode = one.code & kMode;
  if (mode == BPF_ABS) return fmt::format("r0 = *({} *)skb[{}]", size_of(one), one.immediate);
  if (mode == BPF_IND)
    return fmt::format("r0 = *({} *)skb[r{} + {}]", size_of(one), one.source, one.immediate);
  if (mode != BPF_IMM || (one.code & kSize) != BPF_DW) return unknown("ld_", one);
  const auto low = static_cast<std::uint32_t>(one.immediate),
             high = static_cast<std::uint32_t>(next.immediate);
  switch (one.source) {
    case BPF_PSEUDO_MAP_FD:
      return fmt::format("r{} = map[id:{}]", one.destination, low);
    case BPF_PSEUDO_MAP_VALUE:
      return fmt::format("r{} = map[id:{}][0]+{}", one.destination, low, high);
    case BPF_PSEUDO_MAP_IDX_VALUE:
      return fmt::format("r{} = map[idx:{}]+{}", one.destination, low, high);
    case BPF_PSEUDO_FUNC:
      return fmt::format("r{} = subprog[{:+}]", one.destination, one.immediate);
    default:
      return fmt::format("r{} = {:#x}", one.destination, std::uint64_t{high} << 32U | low);
  }
}

std::string call(const BpfInstruction& one, const BpfCallName& name_of_call) {
  if (!one.calls_own_function() && one.source == 0 && one.immediate >= 0 &&
      static_cast<std::size_t>(one.immediate) < std::size(kHelpers))
    return fmt::format("call bpf_{}#{}", kHelpers[static_cast<std::size_t>(one.immediate)], one.immediate);
  const auto name = name_of_call ? name_of_call(one) : std::nullopt;
  if (one.calls_own_function()) return "call pc" + (name ? *name : fmt::format("{:+}", one.immediate));
  const std::string_view without = one.source == BPF_PSEUDO_KFUNC_CALL ? "kernel-function" : "unknown";
  return fmt::format("call {}#{}", name ? *name : std::string(without), one.immediate);
}

// BPF_JMP and BPF_JMP32.
std::string jump(const BpfInstruction& one, const BpfCallName& name_of_call) {
  const std::uint8_t operation = one.code & kOperationBits;
  const bool is_wide = class_of(one) == BPF_JMP;
  if (one.is_call()) return call(one, name_of_call);
  if (one.code == (BPF_JMP | BPF_JA)) return fmt::format("goto pc{:+}", one.offset);
  if (one.code == (BPF_JMP32 | BPF_JA)) return fmt::format("gotol pc{:+}", one.immediate);
  if (one.code == (BPF_JMP | BPF_JA | BPF_X)) return fmt::format("gotox r{}", one.destination);
  if (one.code == (BPF_JMP | kConditional)) return fmt::format("may_goto pc{:+}", one.offset);
  if (one.code == (BPF_JMP | BPF_EXIT)) return "exit";
  const std::string_view with = kJumps[operation >> 4U];
  if (with == "?" || operation == BPF_JA || operation == BPF_CALL || operation == BPF_EXIT)
    return unknown("jmp_", one);
  const char width = is_wide ? 'r' : 'w';
  if (is_from_register(one))
    return fmt::format("if {}{} {} {}{} goto pc{:+}", width, one.destination, with, width, one.source,
                       one.offset);
  return fmt::format("if {}{} {} {:#x} goto pc{:+}", width, one.destination, with,
                     static_cast<std::uint32_t>(one.immediate), one.offset);
}

std::string disassembly_of(const BpfInstruction& one, const BpfInstruction& next,
                           const BpfCallName& name_of_call) {
  switch (class_of(one)) {
    case BPF_ALU:
    case BPF_ALU64:
      return arithmetic(one);
    case BPF_JMP:
    case BPF_JMP32:
      return jump(one, name_of_call);
    case BPF_LD:
      return load_wide(one, next);
    default:
      return load_or_store(one);
  }
}

// The distance to the next instruction that runs, counted from the following one.
std::optional<std::int64_t> distance_of(const BpfInstruction& one) {
  const bool is_jump = class_of(one) == BPF_JMP || class_of(one) == BPF_JMP32;
  if (!is_jump || one.code == (BPF_JMP | BPF_EXIT) || one.code == (BPF_JMP | BPF_JA | BPF_X))
    return std::nullopt;
  if (one.code == (BPF_JMP32 | BPF_JA)) return one.immediate;
  if (!one.is_call()) return one.offset;
  if (!one.calls_own_function()) return std::nullopt;
  return one.offset;  // once the program is loaded, the immediate is the function's number
}

}  // namespace

bool BpfInstruction::is_call() const { return code == (BPF_JMP | BPF_CALL); }
bool BpfInstruction::calls_own_function() const { return is_call() && source == BPF_PSEUDO_CALL; }

std::vector<BpfCodeLine> disassemble_bpf(format::Bytes code, const BpfCallName& name_of_call) {
  std::vector<BpfCodeLine> lines;
  format::Cursor in(code);
  const std::size_t count = code.size() / kInstructionSize;
  for (std::uint32_t number = 0; in.left() >= kInstructionSize; ++number) {
    BpfCodeLine& line = lines.emplace_back();
    line.number = number;
    line.instruction = read_instruction(in);
    BpfInstruction next;
    if (line.instruction.code == (BPF_LD | BPF_IMM | BPF_DW) && in.left() >= kInstructionSize) {
      next = read_instruction(in);
      ++number;
    }
    line.text = fmt::format("({:02x}) {}", line.instruction.code,
                            disassembly_of(line.instruction, next, name_of_call));
    const auto distance = distance_of(line.instruction);
    const std::int64_t target = distance ? std::int64_t{line.number} + 1 + *distance : -1;
    if (target >= 0 && static_cast<std::uint64_t>(target) < count)
      line.target = static_cast<std::uint32_t>(target);
  }
  return lines;
}

namespace {

constexpr std::string_view kBase = "__bpf_call_base";

const format::Attachment* list_of(const format::Features& features) {
  const format::Attachment* const all = features.attachment(format::kKallsymsAttachment);
  return all != nullptr ? all : features.attachment(kBpfCallsAttachment);
}

}  // namespace

BpfCallNames::BpfCallNames(const format::Features& features) {
  const format::Attachment* const list = list_of(features);
  auto unpacked = list != nullptr ? format::unpack_attachment(*list) : Error{};
  if (!unpacked) return;
  text_ = std::move(*unpacked);
  // "ffffffff81000000 T name", and of a module "\t[name]".
  std::string_view rest = format::as_text(text_);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::uint64_t address = 0;
    const auto [stop, failed] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const auto after = static_cast<std::size_t>(stop - line.data());
    if (failed != std::errc{} || address == 0 || after + 3 >= line.size()) continue;
    const std::string_view name = line.substr(after + 3, line.find('\t', after + 3) - (after + 3));
    if (name == kBase) base_ = address;
    names_.emplace_back(address, name);
  }
  std::ranges::stable_sort(names_, {}, &std::pair<std::uint64_t, std::string_view>::first);
}

std::string_view BpfCallNames::at(std::uint64_t address) const {
  const auto found =
      std::ranges::lower_bound(names_, address, {}, &std::pair<std::uint64_t, std::string_view>::first);
  return found != names_.end() && found->first == address ? found->second : std::string_view();
}

std::string_view BpfCallNames::called(std::int32_t distance) const {
  return base_ == 0 ? std::string_view() : at(address_of(distance));
}

std::string BpfCallNames::lines_of_calls(const format::Environment& environment) const {
  std::set<std::uint64_t> addresses;
  BpfFunctions functions(environment);
  for (const format::BpfProgramInfo& info : environment.bpf_programs)
    for (const BpfCodeLine& line : disassemble_bpf(functions.program(info).translated, {}))
      if (line.instruction.is_call() && !called(line.instruction.immediate).empty())
        addresses.insert(address_of(line.instruction.immediate));
  if (addresses.empty()) return {};
  std::string lines = fmt::format("{:016x} T {}\n", base_, kBase);
  for (const std::uint64_t address : addresses)
    if (address != base_) lines += fmt::format("{:016x} T {}\n", address, at(address));
  return lines;
}

}  // namespace tacho::report
