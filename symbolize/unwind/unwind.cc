#include "symbolize/unwind/unwind.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/records/perf_abi.h"
#include "symbolize/files/file_access.h"
#include "symbolize/unwind/dwarf_expression.h"
#include "symbolize/unwind/unwind_module.h"
#include "tsl/robin_map.h"

namespace tacho::symbolize {
namespace {

namespace abi = format::abi;
using CfiStatus = UnwindModule::CfiStatus;

constexpr std::uint64_t kAbi32 = 1, kAbi64 = 2;  // of Registers::abi

constexpr std::uint64_t kEndMark =
    ~std::uint64_t{0};  // address -1 in a chain: it ends where the stack copy ends
constexpr std::uint64_t kLargestStack = std::uint64_t{8} << 20;  // bytes: what Linux gives a thread

enum class Guess : std::uint8_t { FramePointer, LinkRegister };

// How a machine numbers its registers, in samples and in DWARF.
struct Machine {
  std::array<std::string_view, 2> names;            // of uname
  std::uint8_t sampled_pc, sampled_sp;              // numbers in sample_regs_user
  std::uint8_t stack_pointer, frame_pointer, link;  // numbers in DWARF
  std::span<const std::uint8_t> sampled;            // DWARF number -> number in sample_regs_user
  Guess guess;                                      // for code without rules
  std::uint8_t word = 8;                            // bytes of an address
};

// rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip
constexpr std::uint8_t kSampledX86[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
// x0 ... x30 sp pc
constexpr std::uint8_t kSampledArm[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                        17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
// eax ecx edx ebx esp ebp esi edi eip
constexpr std::uint8_t kSampledI386[] = {0, 2, 3, 1, 7, 6, 4, 5, 8};
constexpr Machine kMachines[] = {
    {{"x86_64", "amd64"}, 8, 7, 7, 6, 16, kSampledX86, Guess::FramePointer},
    {{"aarch64", "arm64"}, 32, 31, 31, 29, 30, kSampledArm, Guess::LinkRegister},
};
// 32-bit programs on x86-64.
constexpr Machine kI386{{"i386", "i686"}, 8, 7, 4, 5, 8, kSampledI386, Guess::FramePointer, 4};

// Without section ARCH (in a pipe it may come late), the machine is recognized by the sampled registers: only
// arm64 has one with that number.
const Machine* machine_64_of(const format::Features& features, std::uint64_t mask) {
  const auto& arch = features.environment.arch;
  if (!arch) return &kMachines[(mask >> kMachines[1].sampled_pc & 1) != 0 ? 1 : 0];
  const auto row = std::ranges::find_if(
      kMachines, [&](const Machine& m) { return std::ranges::find(m.names, *arch) != m.names.end(); });
  return row == std::end(kMachines) ? nullptr : row;
}

// Null: unsupported machine.
const Machine* machine_of(const format::Features& features, const format::Registers& registers) {
  const Machine* const host = machine_64_of(features, registers.mask);
  if (registers.abi == kAbi64) return host;
  const auto& arch = features.environment.arch;
  const bool is_x86 = host == &kMachines[0] || (arch && arch->size() == 4 && arch->ends_with("86"));
  return registers.abi == kAbi32 && is_x86 ? &kI386 : nullptr;
}

constexpr std::uint64_t kArmLinkAlone = std::uint64_t{1} << 30;  // of sample_regs_user

std::optional<std::uint64_t> sampled_register(const format::Registers& registers, unsigned number) {
  const std::uint64_t bit = std::uint64_t{1} << number;
  if ((registers.mask & bit) == 0) return std::nullopt;
  const auto index = static_cast<std::size_t>(std::popcount(registers.mask & (bit - 1)));
  return index < registers.values.size() ? std::optional(registers.values[index]) : std::nullopt;
}

// Removes arm64's pointer authentication code, in the bits that are zero in user addresses.
std::uint64_t without_signature(std::uint64_t address) {
  constexpr std::uint64_t kAddressBits = (std::uint64_t{1} << 48) - 1;
  constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 55;
  return (address & kKernelHalf) == 0 ? address & kAddressBits : address | ~kAddressBits;
}

// A mapping with its module.
struct MappedModule {
  UnwindModule* module = nullptr;
  const Mapping* mapping = nullptr;

  std::uint64_t offset(std::uint64_t address) const {
    return address - mapping->start + mapping->page_offset;
  }
};

// The mapped files of all processes, opened when first needed.
class MappedFiles {
 public:
  MappedFiles(const SymbolOptions& options, const format::Features& features, const JitCode* jit)
      : features_(features),
        jit_(jit),
        files_(options.symfs, {}, options.pinned, options.checks_inodes ? &features : nullptr),
        access_(options.access) {}

  // Begins a sample of a process. At the first module of a sample `access_` is always called, even if the
  // last sample ended in that module.
  void begin(const SpaceVersion& space) {
    space_ = &space;
    last_ = nullptr;
  }
  void end() {
    if (access_ != nullptr && last_ != nullptr) access_->set_current({});
  }

  // Null: nothing is mapped there. Valid until the next call.
  const MappedModule* find(std::uint64_t address) {
    const Mapping* const mapping = space_->find_mapping({address}, abi::kCpumodeUser);
    if (!mapping) return nullptr;
    if (access_ != nullptr && mapping->module != last_) enter(*mapping->module);
    last_ = mapping->module;
    auto known = mapped_.find(mapping);
    if (known == mapped_.end())
      known = mapped_.emplace(mapping, MappedModule{&module_of(*mapping->module), mapping}).first;
    known->second.module->check_late_build_id();
    return &known->second;
  }
  const format::Features& features() const { return features_; }
  // In the order of first use.
  const std::deque<UnwindModule*>& used_modules() const { return used_modules_; }

 private:
  void enter(const Module& module) {
    access_->set_current(module.path);
    if (std::string reason = access_->refusal(module.path); !reason.empty())
      module_of(module).disable(std::move(reason));
  }
  UnwindModule& module_of(const Module& module) {
    const auto [entry, is_new] = modules_.try_emplace(&module, module, files_, features_);
    const JitCode::Function* const function =
        is_new && jit_ != nullptr ? jit_->find_function(std::string(module.path)) : nullptr;
    if (function != nullptr) entry->second.use_jit_function(*function);
    if (is_new) used_modules_.push_back(&entry->second);
    return entry->second;
  }

  const format::Features& features_;
  const JitCode* jit_;
  const SpaceVersion* space_ = nullptr;
  DebugFiles files_;
  FileAccess* access_;
  const Module* last_ = nullptr;  // the last one passed to `access_`
  std::unordered_map<const Module*, UnwindModule> modules_;
  std::deque<UnwindModule*> used_modules_;
  tsl::robin_map<const Mapping*, MappedModule> mapped_;
};

// Where the value of a register is, in the current frame. It is read only when needed: most saved registers
// are never used, and some are outside of the stack copy.
struct RegisterLocation {
  enum class Kind : std::uint8_t { Undefined, NotSampled, Memory, Value } kind = Kind::Undefined;
  std::uint64_t value = 0;  // Memory: the address
};
using RegisterLocations = std::array<RegisterLocation, unwind::kRegisterCount>;

// Unwinds the stack of one sample.
class StackWalk final : public ExpressionContext {
 public:
  StackWalk(MappedFiles& files, const Machine& machine, const format::Sample& sample, std::endian order,
            CutMark mark)
      : files_(files),
        machine_(machine),
        word_(machine.word),
        stack_(sample.user_stack),
        order_(order),
        mark_(mark) {
    for (std::size_t i = 0; i < machine.sampled.size(); ++i) {
      const auto value = sampled_register(sample.user_registers, machine.sampled[i]);
      registers_[i] = value ? RegisterLocation{RegisterLocation::Kind::Value, *value}
                            : RegisterLocation{RegisterLocation::Kind::NotSampled, 0};
    }
  }

  // Appends to `chain`.
  void run(std::uint64_t ip, std::uint64_t sp, std::size_t max_frames, std::vector<std::uint64_t>& chain) {
    const auto add = [&](std::uint64_t address) {
      if (address != 0 && (address != kEndMark || mark_ != CutMark::None)) chain.push_back(address);
    };
    ip_ = ip;
    cfa_ = stack_start_ = sp;
    if (max_frames == 0) return;
    add(ip);
    is_trampoline_ = has_trampoline_code();
    for (std::size_t frames = 1; frames < max_frames; ++frames) {
      if (!step()) {
        if (mark_ == CutMark::All && has_left_copy_ && !chain.empty() && chain.back() != kEndMark)
          chain.push_back(kEndMark);
        return;
      }
      is_trampoline_ = has_trampoline_code() || (is_at_return_ && is_in_unknown_vdso());
      if (is_trampoline_) is_at_return_ = false;  // it was not called: look up ip_ itself
      add(is_signal_frame_ || is_trampoline_ ? ip_ : ip_ - 1);
    }
  }

  // The current frame's stack pointer is its callee's CFA.
  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    if (number == machine_.stack_pointer) return cfa_;
    return number < registers_.size() ? value_of(registers_[static_cast<std::size_t>(number)]) : std::nullopt;
  }

  // Reads memory from the stack copy, else from the mapped file. As in perf, mapped memory that cannot be
  // read (the stack beyond its copy) is zero, so that a chain which continues there ends with the address -1.
  std::optional<std::uint64_t> memory(std::uint64_t address) const override {
    address = within(address);
    if (address + word_ < address) return std::nullopt;
    const std::uint64_t offset = address - stack_start_;
    if (address >= stack_start_ && offset < stack_.size() && word_ < stack_.size() - offset) {
      format::Cursor in(stack_.subspan(static_cast<std::size_t>(offset)), order_);
      return word_ == 4 ? in.u32() : in.u64();
    }
    const MappedModule* const found = files_.find(address);
    has_left_copy_ = has_left_copy_ || address - stack_start_ < kLargestStack;
    if (!found) return std::nullopt;
    if (found->mapping->is_identity) return 0;
    return found->module->word(found->offset(address), machine_.word).value_or(0);
  }

 private:
  // Truncates a 64-bit sum to an address of the machine.
  std::uint64_t within(std::uint64_t address) const {
    return word_ == 4 ? static_cast<std::uint32_t>(address) : address;
  }

  std::optional<std::uint64_t> value_of(const RegisterLocation& location) const {
    if (location.kind == RegisterLocation::Kind::Memory) return memory(location.value);
    return location.kind == RegisterLocation::Kind::Value ? std::optional(location.value) : std::nullopt;
  }

  // Moves to the caller. False: the end of the chain.
  bool step() {
    const std::uint64_t old_ip = ip_, old_cfa = cfa_;
    is_signal_frame_ = has_left_copy_ = false;
    const std::uint64_t pc = is_at_return_ ? ip_ - 1 : ip_;
    const MappedModule* const found = files_.find(pc);
    UnwindModule::Found rules;
    if (found) rules = found->module->find_rules(found->offset(pc), machine_.word);
    bool goes_on = false;
    if (rules.status == CfiStatus::Found) {
      goes_on = apply(*rules.row);
    } else if (machine_.guess == Guess::LinkRegister) {
      goes_on = leave_signal_trampoline() || follow_link();
    } else if (rules.status == CfiStatus::NoFunction) {
      goes_on = (word_ == 8 && leave_plt_entry()) || follow_frame_pointer();
    } else if (word_ == 4 && found && found->mapping->module->kind == ModuleKind::Vdso) {
      goes_on = leave_system_call();
    }
    return goes_on && (ip_ != old_ip || cfa_ != old_cfa);
  }

  bool apply(const UnwindRow& row) {
    const auto cfa = cfa_of(row.cfa);
    if (!cfa) return false;
    RegisterLocations caller = registers_;
    for (const unwind::SavedRegister& saved : row.saved) {
      const auto location = location_of(saved.rule, *cfa);
      if (!location) return false;
      caller[saved.number] = *location;
    }
    registers_ = caller;
    cfa_ = within(*cfa);
    is_at_return_ = !row.is_signal_frame;
    is_signal_frame_ = row.is_signal_frame;
    const auto ip = value_of(registers_[row.return_register]);
    if (!ip) return false;  // undefined: the outermost frame
    ip_ = row.signs_returns ? without_signature(*ip) : *ip;
    // The chain also ends on x86-64 at an undefined frame pointer, and on arm64 at a return address of 0.
    return machine_.guess == Guess::FramePointer
               ? registers_[machine_.frame_pointer].kind != RegisterLocation::Kind::Undefined
               : ip_ != 0;
  }

  std::optional<std::uint64_t> cfa_of(const CfaRule& rule) const {
    if (rule.kind == CfaRule::Kind::Expression) {
      const auto result = evaluate_expression(rule.expression, 0, *this, order_);
      return result && !result->is_register ? std::optional(result->value) : std::nullopt;
    }
    const auto base = register_value(rule.base);
    return base ? std::optional(*base + static_cast<std::uint64_t>(rule.offset)) : std::nullopt;
  }

  RegisterLocation location_of_register(std::uint64_t number) const {
    if (number == machine_.stack_pointer) return {RegisterLocation::Kind::Value, cfa_};
    return number < registers_.size() ? registers_[static_cast<std::size_t>(number)] : RegisterLocation{};
  }

  std::optional<RegisterLocation> location_of(const Rule& rule, std::uint64_t cfa) const {
    const auto value = static_cast<std::uint64_t>(rule.value);
    switch (rule.kind) {
      case RuleKind::AtCfa:
        return RegisterLocation{RegisterLocation::Kind::Memory, cfa + value};
      case RuleKind::IsCfa:
        return RegisterLocation{RegisterLocation::Kind::Value, cfa + value};
      case RuleKind::Register:
        return location_of_register(value);
      case RuleKind::Expression:
      case RuleKind::ValueExpression: {
        const auto result = evaluate_expression(rule.expression, cfa, *this, order_);
        if (!result) return std::nullopt;
        if (result->is_register) return location_of_register(result->value);
        const bool is_value = rule.kind == RuleKind::ValueExpression;
        return RegisterLocation{is_value ? RegisterLocation::Kind::Value : RegisterLocation::Kind::Memory,
                                result->value};
      }
      case RuleKind::Same:
      case RuleKind::Undefined:
        break;
    }
    return RegisterLocation{};
  }

  bool return_to(const RegisterLocation& location) {
    const auto ip = value_of(location);
    if (!ip) return false;
    ip_ = *ip;
    return true;
  }

  // The 32-bit vdso is not attached. Its __kernel_vsyscall pushes ecx, edx and ebp before the system call.
  bool leave_system_call() {
    if (is_at_return_ || !memory(cfa_)) return false;
    const auto caller = memory(cfa_ + 3 * word_);
    if (!caller || !files_.find(*caller)) return false;
    registers_[machine_.frame_pointer] = {RegisterLocation::Kind::Memory, cfa_};
    registers_[machine_.link] = {RegisterLocation::Kind::Memory, cfa_ + 3 * word_};
    cfa_ += 4 * word_;
    is_at_return_ = true;
    return return_to(registers_[machine_.link]);
  }

  // At the first instruction of a PLT entry ("jmp *GOT(%rip); push N; jmp PLT0") the return address is on top
  // of the stack.
  bool leave_plt_entry() {
    const auto first = memory(ip_), second = memory(ip_ + word_);
    if (!first || !second) return false;
    const bool is_plt =
        (*first & 0xffff) == 0x25ff && (*first >> 48 & 0xff) == 0x68 && (*second >> 24 & 0xff) == 0xe9;
    if (!is_plt || registers_[machine_.frame_pointer].kind == RegisterLocation::Kind::Undefined) return false;
    const RegisterLocation location{RegisterLocation::Kind::Memory, cfa_};
    registers_[machine_.link] = location;
    cfa_ += word_;
    return return_to(location);
  }

  // Code without rules may have a frame pointer: it is used if it points a little above the stack pointer.
  bool follow_frame_pointer() {
    constexpr std::uint64_t kFarthest = 0x4000;  // bytes, libunwind's limit
    const auto frame = value_of(registers_[machine_.frame_pointer]);
    if (!frame || *frame == 0) return false;
    if (!memory(*frame) || *frame < cfa_ || *frame - cfa_ > kFarthest) return false;
    registers_ = {};
    registers_[machine_.frame_pointer] = {RegisterLocation::Kind::Memory, *frame};
    registers_[machine_.link] = {RegisterLocation::Kind::Memory, *frame + word_};
    cfa_ += 2 * word_;
    is_at_return_ = true;
    return return_to(registers_[machine_.link]);
  }

  // arm64: a leaf function without rules has its return address in the link register.
  bool follow_link() {
    const RegisterLocation location = std::exchange(registers_[machine_.link], RegisterLocation{});
    if (!return_to(location)) return false;
    ip_ = without_signature(ip_);
    is_at_return_ = true;
    return ip_ != 0;
  }

  // Whether ip_ is at "mov x8, #139; svc #0", for which arm64's vdso has no rules.
  bool has_trampoline_code() const {
    constexpr std::uint64_t kTrampoline = 0xd4000001d2801168;
    return machine_.guess == Guess::LinkRegister && memory(ip_) == kTrampoline;
  }

  // perf's captures have no vdso. Its functions call no others, so a return address in it is that of a signal
  // handler.
  bool is_in_unknown_vdso() const {
    if (machine_.guess != Guess::LinkRegister) return false;
    const MappedModule* const found = files_.find(ip_);
    return found && found->mapping->module->kind == ModuleKind::Vdso &&
           !found->module->word(found->offset(ip_), machine_.word);
  }

  // The signal frame: a siginfo, then a ucontext. For an unknown vdso it is used if the saved pc is mapped.
  bool leave_signal_trampoline() {
    constexpr std::uint64_t kSignalInfo = 128, kMachineContext = 176, kFirstRegister = 8;  // bytes
    if (!is_trampoline_) return false;
    const std::uint64_t first = cfa_ + kSignalInfo + kMachineContext + kFirstRegister;
    const auto saved = [&](std::uint64_t number) {
      return RegisterLocation{RegisterLocation::Kind::Memory, first + number * word_};
    };
    const auto sp = value_of(saved(machine_.stack_pointer)), ip = value_of(saved(machine_.sampled_pc));
    if (!sp || !ip || !files_.find(*ip)) return false;
    for (std::uint64_t i = 0; i < registers_.size(); ++i) registers_[static_cast<std::size_t>(i)] = saved(i);
    ip_ = *ip;
    cfa_ = *sp;
    is_at_return_ = false;
    is_signal_frame_ = true;
    return true;
  }

  MappedFiles& files_;
  const Machine& machine_;
  std::uint64_t word_;
  format::Bytes stack_;
  std::endian order_;
  std::uint64_t stack_start_ = 0;  // runtime address of stack_[0]
  RegisterLocations registers_{};
  std::uint64_t ip_ = 0, cfa_ = 0;
  bool is_at_return_ = false;     // ip_ is a return address
  bool is_signal_frame_ = false;  // the last step left a signal frame
  bool is_trampoline_ = false;    // ip_ is in a signal trampoline
  CutMark mark_;
  mutable bool has_left_copy_ = false;  // the last step read the stack beyond its copy
};

}  // namespace

struct Unwinder::State {
  MappedFiles files;
  std::vector<std::uint64_t> chain;
  CutMark cut_mark;
  bool unwinds_32_bit;
  std::uint64_t unsupported_samples = 0;  // samples
};

Unwinder::Unwinder(const SymbolOptions& options, const format::Features& features, const JitCode* jit)
    : state_(new State{MappedFiles(options, features, jit), {}, options.cut_mark, options.unwinds_32_bit}) {}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

bool Unwinder::can_unwind(const format::EventAttr& attr) {
  return attr.samples(abi::kSampleRegsUser) && attr.samples(abi::kSampleStackUser);
}

std::span<const std::uint64_t> Unwinder::unwind(const format::Sample& sample, const SpaceVersion& space,
                                                std::size_t max_frames, std::endian order) {
  state_->chain.clear();
  const format::Registers& registers = sample.user_registers;
  if (registers.abi == 0 || sample.user_stack.empty()) return {};  // a kernel thread
  const Machine* const machine = machine_of(state_->files.features(), registers);
  if (!machine) ++state_->unsupported_samples;
  if (!machine || (machine == &kI386 && !state_->unwinds_32_bit)) return {};
  const auto ip = sampled_register(registers, machine->sampled_pc);
  const auto sp = sampled_register(registers, machine->sampled_sp);
  state_->files.begin(space);
  if (ip && sp)
    StackWalk(state_->files, *machine, sample, order, state_->cut_mark)
        .run(*ip, *sp, max_frames, state_->chain);
  state_->files.end();
  return state_->chain;
}

bool Unwinder::has_only_link_register(const format::EventAttr& attr) {
  return attr.samples(abi::kSampleRegsUser) && !attr.samples(abi::kSampleStackUser) &&
         attr.sample_regs_user == kArmLinkAlone;
}

std::optional<std::uint64_t> Unwinder::caller_of_leaf(const format::Sample& sample, const SpaceVersion& space,
                                                      std::uint64_t pc, std::endian order) {
  const format::Registers& registers = sample.user_registers;
  const format::Features& features = state_->files.features();
  // The register's number is only valid for arm64.
  if (registers.abi != kAbi64 || !features.environment.arch) return std::nullopt;
  const Machine* const machine = machine_64_of(features, registers.mask);
  if (!machine || machine->guess != Guess::LinkRegister) return std::nullopt;
  state_->chain.clear();
  state_->files.begin(space);
  StackWalk(state_->files, *machine, sample, order, CutMark::AsPerf6).run(pc, 0, 2, state_->chain);
  state_->files.end();
  return state_->chain.size() == 2 ? std::optional(state_->chain[1]) : std::nullopt;
}

std::uint64_t Unwinder::unsupported_samples() const { return state_->unsupported_samples; }

std::vector<EndedChains> Unwinder::ended_chains() const {
  std::vector<EndedChains> ended;
  for (UnwindModule* const module : state_->files.used_modules()) {
    module->check_late_build_id();  // a build id may have come after its last sample
    std::string reason = module->missing_reason();
    if (module->had_wrong_file())
      reason = (reason.empty() ? "the file has another build id, " : reason + "; ") +
               module->module().build_id.hex() +
               " was recorded, which is in the capture after samples that were already unwound";
    if (!reason.empty()) ended.push_back({&module->module(), std::move(reason), module->had_wrong_file()});
  }
  return ended;
}

}  // namespace tacho::symbolize
