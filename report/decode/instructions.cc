#include "report/decode/instructions.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tacho::report {
namespace {

struct Machine {
  cs_arch arch;
  cs_mode mode;
};

std::optional<Machine> machine_of(std::string_view arch, WordSize words) {
  if (arch == "aarch64" || arch == "arm64") return Machine{CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN};
  if (arch != "x86_64" && !(arch.size() == 4 && arch[0] == 'i' && arch.ends_with("86"))) return std::nullopt;
  return Machine{CS_ARCH_X86, words == WordSize::Bits64 && arch == "x86_64" ? CS_MODE_64 : CS_MODE_32};
}

bool is_in(const cs_insn& instruction, std::uint8_t group) {
  const std::span groups(instruction.detail->groups, instruction.detail->groups_count);
  return std::ranges::find(groups, group) != groups.end();
}

bool is_branch(const cs_insn& instruction) {
  constexpr std::uint8_t kBranches[] = {CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET, CS_GRP_INT, CS_GRP_IRET};
  return std::ranges::any_of(kBranches, [&](std::uint8_t group) { return is_in(instruction, group); });
}

// capstone, opened for one machine.
struct Decoder {
  cs_arch arch = CS_ARCH_X86;
  bool is_64_bit = false;
  csh handle = 0;
  cs_insn* scratch = nullptr;
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (scratch != nullptr) cs_free(scratch, 1);
    if (handle != 0) cs_close(&handle);
  }
  // The bytes that the first instruction of `code` can have. capstone reads prefixes to the end of what it
  // gets, at every byte again.
  format::Bytes first(format::Bytes code) const {
    const std::size_t longest = arch == CS_ARCH_ARM64 ? 4 : 15;
    return code.first(std::min(longest, code.size()));
  }
  // Decodes the first instruction of `all` into `scratch`. False: there is none.
  bool decode(format::Bytes all, std::uint64_t address) {
    const format::Bytes code = first(all);
    const auto* at = reinterpret_cast<const std::uint8_t*>(code.data());
    std::size_t left = code.size();
    return cs_disasm_iter(handle, &at, &left, &address, scratch);
  }
  bool open(std::string_view name, WordSize words) {
    const auto machine = machine_of(name, words);
    if (!machine || cs_open(machine->arch, machine->mode, &handle) != CS_ERR_OK) return false;
    if (cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK) return false;
    arch = machine->arch;
    is_64_bit = (machine->mode & CS_MODE_64) != 0;
    scratch = cs_malloc(handle);
    return scratch != nullptr;
  }
};

// The last numeric operand: the target of a jump.
std::optional<std::uint64_t> last_number(const Decoder& decoder) {
  const cs_detail& detail = *decoder.scratch->detail;
  const auto last = [](const auto& of_machine, auto immediate) {
    std::optional<std::uint64_t> number;
    for (std::size_t i = 0; i < of_machine.op_count; ++i)
      if (of_machine.operands[i].type == immediate)
        number = static_cast<std::uint64_t>(of_machine.operands[i].imm);
    return number;
  };
  return decoder.arch == CS_ARCH_X86 ? last(detail.x86, X86_OP_IMM) : last(detail.arm64, ARM64_OP_IMM);
}

std::optional<std::uint64_t> memory_by_counter(const Decoder& decoder) {
  if (decoder.arch != CS_ARCH_X86) return std::nullopt;
  const cs_insn& instruction = *decoder.scratch;
  for (std::size_t i = 0; i < instruction.detail->x86.op_count; ++i) {
    const cs_x86_op& operand = instruction.detail->x86.operands[i];
    if (operand.type == X86_OP_MEM && operand.mem.base == X86_REG_RIP && operand.mem.index == X86_REG_INVALID)
      return instruction.address + instruction.size + static_cast<std::uint64_t>(operand.mem.disp);
  }
  return std::nullopt;
}

InstructionKind kind_of(const Decoder& decoder) {
  const cs_insn& instruction = *decoder.scratch;
  if (is_in(instruction, CS_GRP_RET) || is_in(instruction, CS_GRP_IRET)) return InstructionKind::Return;
  if (decoder.arch == CS_ARCH_ARM64) {  // capstone 4 has bl and blr among the jumps
    if (instruction.id == ARM64_INS_BL || instruction.id == ARM64_INS_BLR) return InstructionKind::Call;
  } else if (is_in(instruction, CS_GRP_CALL)) {
    return InstructionKind::Call;
  }
  const bool is_jump = is_in(instruction, CS_GRP_JUMP) || is_in(instruction, CS_GRP_BRANCH_RELATIVE);
  return is_jump ? InstructionKind::Jump : InstructionKind::Other;
}

bool is_conditional_jump(const Decoder& decoder) {
  const cs_insn& instruction = *decoder.scratch;
  if (decoder.arch == CS_ARCH_X86) return instruction.id != X86_INS_JMP && instruction.id != X86_INS_LJMP;
  const bool is_plain = instruction.id == ARM64_INS_B && instruction.detail->arm64.cc == ARM64_CC_INVALID;
  return !is_plain && instruction.id != ARM64_INS_BR;
}

// "%rax, 0x10" without the last operand, where that is the target.
std::string operands_without_last(std::string_view operands) {
  const auto comma = operands.rfind(',');
  return comma == std::string_view::npos ? std::string() : std::string(operands.substr(0, comma + 1)) + ' ';
}

DisassembledInstruction described(const Decoder& decoder) {
  const cs_insn& from = *decoder.scratch;
  DisassembledInstruction instruction{.address = from.address, .size = from.size};
  instruction.kind = kind_of(decoder);
  instruction.mnemonic = from.mnemonic;
  instruction.operands = from.op_str;
  instruction.memory = memory_by_counter(decoder);
  const bool is_jump = instruction.kind == InstructionKind::Jump;
  instruction.is_conditional = is_jump && is_conditional_jump(decoder);
  if (is_jump || instruction.kind == InstructionKind::Call) instruction.target = last_number(decoder);
  if (instruction.target) instruction.operands = operands_without_last(instruction.operands);
  return instruction;
}

// The length of an x86-64 instruction that capstone 4 does not know: one with a VEX or EVEX prefix (AVX-512,
// AVX-VNNI) or an opcode of two or three bytes. 0: none of these, or the code is too short. With the length
// the following instructions are decoded correctly.
std::size_t x86_size(format::Bytes code) {
  format::Cursor in(code);
  std::uint8_t byte = in.u8();
  const auto is_prefix = [&byte] {
    constexpr std::uint8_t kPrefixes[] = {0x66, 0xf2, 0xf3, 0x67, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf0};
    return std::ranges::find(kPrefixes, byte) != std::end(kPrefixes);
  };
  while (is_prefix() && !in.failed()) byte = in.u8();
  unsigned map = 0;
  if (byte == 0x62) {  // EVEX
    map = in.u8() & 7U;
    in.skip(2);
  } else if (byte == 0xc4) {  // VEX of three bytes
    map = in.u8() & 31U;
    in.skip(1);
  } else if (byte == 0xc5) {  // VEX of two bytes
    map = 1;
    in.skip(1);
  } else {
    if ((byte & 0xf0U) == 0x40) byte = in.u8();  // REX
    if (byte != 0x0f) return 0;
    map = 1;
  }
  std::uint8_t opcode = in.u8();
  if (byte == 0x0f && (opcode == 0x38 || opcode == 0x3a)) {
    map = opcode == 0x38 ? 2 : 3;
    opcode = in.u8();
  }
  if (map == 0 || map > 6) return 0;
  const std::uint8_t modrm = in.u8();
  const unsigned mode = modrm >> 6U, base = modrm & 7U;
  if (mode != 3) {
    const bool has_sib = base == 4;
    const unsigned sib_base = has_sib ? in.u8() & 7U : base;
    if (mode == 1) in.skip(1);
    if (mode == 2 || (mode == 0 && sib_base == 5)) in.skip(4);
  }
  constexpr std::uint8_t kWithNumber[] = {0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6};
  if (map == 3 || (map == 1 && std::ranges::find(kWithNumber, opcode) != std::end(kWithNumber))) in.skip(1);
  return in.failed() ? 0 : code.size() - in.left();
}

// A line for bytes that capstone does not know. Without a known length it is a word on arm64, else one byte,
// as in objdump.
DisassembledInstruction undecoded(const Decoder& decoder, format::Bytes all, std::uint64_t address) {
  const format::Bytes code = decoder.first(all);
  DisassembledInstruction bad{.address = address, .size = 1, .kind = InstructionKind::Bad};
  bad.mnemonic = "(bad)";
  if (decoder.arch == CS_ARCH_X86 && decoder.is_64_bit) {
    if (const std::size_t size = x86_size(code); size != 0) {
      bad.size = static_cast<std::uint32_t>(size);
      bad.kind = InstructionKind::Other;
      bad.mnemonic = ".byte";
      for (const std::byte byte : code.first(size))
        bad.operands +=
            fmt::format("{}{:#04x}", bad.operands.empty() ? "" : ",", std::to_integer<unsigned>(byte));
    }
  }
  if (decoder.arch != CS_ARCH_ARM64) return bad;
  std::uint32_t word = 0;
  bad.size = static_cast<std::uint32_t>(code.size());
  for (std::size_t i = bad.size; i-- > 0;) word = word << 8 | std::to_integer<std::uint32_t>(code[i]);
  bad.mnemonic = ".inst";
  bad.operands = fmt::format("{:#010x}", word);
  return bad;
}

}  // namespace

struct Disassembler::State : Decoder {};

Disassembler::Disassembler(std::string_view arch, WordSize words, AsmSyntax syntax) {
  auto state = std::make_unique<State>();
  if (!state->open(arch, words)) return;
  if (state->arch == CS_ARCH_X86)
    cs_option(state->handle, CS_OPT_SYNTAX,
              syntax == AsmSyntax::Att ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
  state_ = std::move(state);
}

Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler& Disassembler::operator=(Disassembler&&) noexcept = default;
Disassembler::~Disassembler() = default;

Instruction Disassembler::first_of(format::Bytes code) const {
  if (state_ == nullptr || !state_->decode(code, 0)) return {};
  return {state_->scratch->size, is_branch(*state_->scratch)};
}

std::vector<DisassembledInstruction> Disassembler::disassemble(format::Bytes code,
                                                               std::uint64_t address) const {
  std::vector<DisassembledInstruction> lines;
  if (state_ == nullptr) return lines;
  while (!code.empty()) {
    const bool is_known = state_->decode(code, address);
    lines.push_back(is_known && state_->scratch->size != 0 ? described(*state_)
                                                           : undecoded(*state_, code, address));
    code = code.subspan(std::min<std::size_t>(lines.back().size, code.size()));
    address += lines.back().size;
  }
  return lines;
}

}  // namespace tacho::report
