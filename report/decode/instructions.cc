#include "report/decode/instructions.h"

#include <capstone/capstone.h>

#include <algorithm>
#include <optional>

namespace tacho::report {
namespace {

struct Machine {
  cs_arch arch;
  cs_mode mode;
};

std::optional<Machine> machine_of(std::string_view arch, WordSize words) {
  if (arch == "aarch64" || arch == "arm64") return Machine{CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN};
  if (arch != "x86_64" && !(arch.size() == 4 && arch[0] == 'i' && arch.ends_with("86"))) return std::nullopt;
  return Machine{CS_ARCH_X86, words == WordSize::Bits64 ? CS_MODE_64 : CS_MODE_32};
}

bool is_branch(const cs_insn& instruction) {
  constexpr std::uint8_t kBranches[] = {CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET, CS_GRP_INT, CS_GRP_IRET};
  const cs_detail& detail = *instruction.detail;
  return std::any_of(detail.groups, detail.groups + detail.groups_count, [&](std::uint8_t group) {
    return std::ranges::find(kBranches, group) != std::end(kBranches);
  });
}

}  // namespace

struct Instructions::State {
  csh handle = 0;
  cs_insn* scratch = nullptr;
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (scratch != nullptr) cs_free(scratch, 1);
    if (handle != 0) cs_close(&handle);
  }
};

Instructions::Instructions(std::string_view arch, WordSize words) {
  const auto machine = machine_of(arch, words);
  if (!machine) return;
  auto state = std::make_unique<State>();
  if (cs_open(machine->arch, machine->mode, &state->handle) != CS_ERR_OK) return;
  if (cs_option(state->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK) return;
  state->scratch = cs_malloc(state->handle);
  if (state->scratch != nullptr) state_ = std::move(state);
}

Instructions::Instructions(Instructions&&) noexcept = default;
Instructions& Instructions::operator=(Instructions&&) noexcept = default;
Instructions::~Instructions() = default;

Instruction Instructions::first_of(format::Bytes code) const {
  if (state_ == nullptr) return {};
  const auto* at = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  std::uint64_t address = 0;
  if (!cs_disasm_iter(state_->handle, &at, &left, &address, state_->scratch)) return {};
  return {state_->scratch->size, is_branch(*state_->scratch)};
}

}  // namespace tacho::report
