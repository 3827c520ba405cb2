#include "bpf/probe_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "bpf/assembler.h"
#include "bpf/event_filter.h"
#include "bpf/follower.h"
#include "bpf/kernel_support.h"
#include "bpf/libbpf_log.h"
#include "bpf/made_program.h"

namespace tacho::bpf {
namespace {

using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

// By their names for 8, 4, 2 and 1 byte, in the order of struct pt_regs; the kernel's interface.
constexpr std::array<std::array<std::string_view, 4>, 21> kRegisters{{
    {"r15", "r15d", "r15w", "r15b"},
    {"r14", "r14d", "r14w", "r14b"},
    {"r13", "r13d", "r13w", "r13b"},
    {"r12", "r12d", "r12w", "r12b"},
    {"rbp", "ebp", "bp", "bpl"},
    {"rbx", "ebx", "bx", "bl"},
    {"r11", "r11d", "r11w", "r11b"},
    {"r10", "r10d", "r10w", "r10b"},
    {"r9", "r9d", "r9w", "r9b"},
    {"r8", "r8d", "r8w", "r8b"},
    {"rax", "eax", "ax", "al"},
    {"rcx", "ecx", "cx", "cl"},
    {"rdx", "edx", "dx", "dl"},
    {"rsi", "esi", "si", "sil"},
    {"rdi", "edi", "di", "dil"},
    {"", "", "", ""},
    {"rip", "eip", "ip", ""},
    {"", "", "", ""},
    {"", "", "", ""},
    {"rsp", "esp", "sp", "spl"},
    {"", "", "", ""},
}};
constexpr std::array<std::string_view, kRegisterArguments> kArguments{"rdi", "rsi", "rdx", "rcx", "r8", "r9"};

constexpr int kContext = 6, kValue = 7;  // registers that calls leave alone
constexpr std::int32_t kReadUser = 112, kReadUserText = 114, kReadKernelText = 115;  // since Linux 5.5
constexpr std::int32_t kThisCpu = -1;  // BPF_F_CURRENT_CPU, 32 bits

bool is_text(const ProbeArgument& argument) {
  return argument.shape == Shape::UserText || argument.shape == Shape::KernelText;
}
std::int16_t bytes_of(const ProbeArgument& argument) {
  return is_text(argument) ? static_cast<std::int16_t>(kProbeTextBytes) : std::int16_t{8};
}

// r7 as the number of `size` bytes that it holds.
void extend(Assembler& program, std::uint8_t size, bool is_signed) {
  const std::int32_t unused = 64 - 8 * size;
  if (unused == 0) return;
  program.shift_left(kValue, unused);
  if (is_signed)
    program.shift_right_signed(kValue, unused);
  else
    program.shift_right(kValue, unused);
}

// r7 = the `size` bytes at `displacement` from where r7 points, or 0; `scratch` is a word of the stack.
void read_user(Assembler& program, std::uint8_t size, std::int32_t displacement, std::int16_t scratch) {
  program.set(0, 0);
  program.store(BPF_DW, 10, 0, scratch);
  program.move(1, 10);
  program.add_number(1, scratch);
  program.set(2, size);
  program.move(3, kValue);
  program.add_number(3, displacement);
  program.call(kReadUser);
  program.load(BPF_DW, kValue, 10, scratch);
}

// r7 = the value.
void load_value(Assembler& program, const ProbeArgument& argument, std::int16_t scratch) {
  if (argument.source == Source::Constant) {
    program.set_wide(kValue, static_cast<std::uint64_t>(argument.constant));
    return;
  }
  constexpr std::uint8_t kPointer = 8;
  program.load(BPF_DW, kValue, kContext, static_cast<std::int16_t>(argument.place));
  if (argument.shift != 0) program.shift_right(kValue, argument.shift);
  for (const std::int32_t pointer : argument.pointers) read_user(program, kPointer, pointer, scratch);
  if (argument.source == Source::Memory) read_user(program, argument.size, argument.displacement, scratch);
  if (argument.source == Source::Address) program.add_number(kValue, argument.displacement);
  extend(program, argument.size, argument.is_signed);
}

void put_text(Assembler& program, const ProbeArgument& argument, std::int16_t at) {
  program.set(0, 0);  // what stands behind the text's end is recorded as well
  for (std::size_t word = 0; word < kProbeTextBytes; word += 8)
    program.store(BPF_DW, 10, 0, static_cast<std::int16_t>(at + static_cast<std::int16_t>(word)));
  program.move(1, 10);
  program.add_number(1, at);
  program.set(2, static_cast<std::int32_t>(kProbeTextBytes));
  program.move(3, kValue);
  program.call(argument.shape == Shape::UserText ? kReadUserText : kReadKernelText);
}

// Reads the arguments and writes the sample.
Assembler reader_of(std::span<const ProbeArgument> arguments, int outputs, std::optional<int> followed) {
  Assembler program;
  std::int16_t size = 0;
  for (const ProbeArgument& argument : arguments) size = static_cast<std::int16_t>(size + bytes_of(argument));
  const auto begin = static_cast<std::int16_t>(-size);
  const auto scratch = static_cast<std::int16_t>(begin - 8);
  program.move(kContext, 1);
  if (followed) leave_unless_followed(program, *followed);
  std::int16_t at = begin;
  for (const ProbeArgument& argument : arguments) {
    load_value(program, argument, scratch);
    if (is_text(argument))
      put_text(program, argument, at);
    else
      program.store(BPF_DW, 10, kValue, at);
    at = static_cast<std::int16_t>(at + bytes_of(argument));
  }
  program.move(1, kContext);
  program.set_map(2, outputs);
  program.set32(3, kThisCpu);
  program.move(4, 10);
  program.add_number(4, begin);
  program.set(5, size);
  program.call(BPF_FUNC_perf_event_output);
  program.set(0, 0);
  program.leave();
  return program;
}

// Hands over to the only program of a table.
Assembler start_of(int table, std::optional<int> followed) {
  Assembler program;
  program.move(kContext, 1);
  if (followed) leave_unless_followed(program, *followed);
  program.move(1, kContext);
  program.set_map(2, table);
  program.set(3, 0);
  program.call(BPF_FUNC_tail_call);
  program.set(0, 0);
  program.leave();
  return program;
}

Result<format::Fd> load_program(const Assembler& program) {
  return load_made(BPF_PROG_TYPE_KPROBE, "tacho_probe", program.instructions(),
                   "the kernel does not take the program that reads a probe's arguments");
}

}  // namespace

std::optional<RegisterPlace> register_place(std::string_view name) {
  for (std::size_t row = 0; row < kRegisters.size(); ++row)
    for (std::size_t width = 0; width < 4 && !name.empty(); ++width)
      if (kRegisters[row][width] == name)
        return RegisterPlace{static_cast<std::uint16_t>(8 * row), static_cast<std::uint8_t>(8 >> width)};
  return std::nullopt;
}

std::optional<RegisterPlace> argument_place(std::size_t number) {
  if (number < 1 || number > kArguments.size()) return std::nullopt;
  return register_place(kArguments[number - 1]);
}

format::PayloadSchema schema_of(const std::string& event, std::span<const ProbeArgument> arguments) {
  format::PayloadSchema schema{.event = event, .type_name = "arguments", .size = 0, .fields = {}};
  for (const ProbeArgument& argument : arguments) {
    format::PayloadField field;
    field.name = argument.name;
    field.bit_offset = schema.size * 8;
    field.kind = is_text(argument)    ? format::FieldKind::Text
                 : argument.is_signed ? format::FieldKind::Signed
                                      : format::FieldKind::Unsigned;
    field.is_signed = argument.is_signed;
    field.bit_size = is_text(argument) ? 8 : 64;
    field.count = is_text(argument) ? static_cast<std::uint32_t>(kProbeTextBytes) : 1;
    field.is_array = is_text(argument);
    if (argument.shape == Shape::Hex) field.format = "hex";
    schema.fields.push_back(std::move(field));
    schema.size += static_cast<std::uint32_t>(bytes_of(argument));
  }
  return schema;
}

Result<ProbeProgram> ProbeProgram::load(std::span<const ProbeArgument> arguments, std::optional<int> followed,
                                        std::optional<int> walk) {
#ifndef __x86_64__
  (void)arguments, (void)followed, (void)walk;
  return Error{"arguments of probes are read on x86-64 alone"};
#else
  if (auto may = check_may_load(); !may) return std::move(may.error());
  const auto texts = std::ranges::count_if(arguments, is_text);
  if (arguments.size() > kMostProbeArguments || static_cast<std::size_t>(texts) > kMostProbeTexts)
    return use_error("a probe takes " + std::to_string(kMostProbeArguments) + " arguments at most, " +
                     std::to_string(kMostProbeTexts) + " of them texts");
  const LibbpfLog quiet;
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return system_error("cannot tell how many CPUs are possible", -cpus);
  ProbeProgram made;
  made.outputs_ = format::Fd(bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "tacho_probe", sizeof(int),
                                            sizeof(int), static_cast<std::uint32_t>(cpus), nullptr));
  if (!made.outputs_) return system_error("the map of a probe's samples", errno);
  auto reader = load_program(reader_of(arguments, made.outputs_.get(), walk ? std::nullopt : followed));
  if (!reader) return std::move(reader.error());
  made.reader_ = std::move(*reader);
  if (!walk) return made;
  auto table = table_with(*walk);
  if (!table) return std::move(table.error());
  made.next_ = std::move(*table);
  auto start = load_program(start_of(made.next_.get(), followed));
  if (!start) return std::move(start.error());
  made.start_ = std::move(*start);
  return made;
#endif
}

Result<> ProbeProgram::attach(int event_fd) const {
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, fd()) == 0) return Done{};
  return system_error("the program that reads a probe's arguments cannot be attached", errno);
}

Result<> ProbeProgram::put_output(int cpu, int event_fd) const {
  if (bpf_map_update_elem(outputs_.get(), &cpu, &event_fd, BPF_ANY) == 0) return Done{};
  return system_error("a probe's samples of CPU " + std::to_string(cpu), errno);
}

}  // namespace tacho::bpf
