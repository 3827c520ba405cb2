#include "bpf/object/probe_program.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "bpf/attach/follower.h"
#include "bpf/attach/raw_program.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {
namespace {

using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

#ifdef __aarch64__
constexpr std::array<std::string_view, kRegisterArguments> kArguments{"x0", "x1", "x2", "x3",
                                                                      "x4", "x5", "x6", "x7"};
#else
// Registers by their names for 8, 4, 2 and 1 bytes, in the order of struct pt_regs.
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
#endif

constexpr int kContext = 6, kValue = 7;                                              // callee-saved registers
constexpr std::int32_t kReadUser = 112, kReadUserText = 114, kReadKernelText = 115;  // since Linux 5.5
constexpr std::int16_t kWord = 8, kNameBytes = 16, kValueBytes = 16, kScratchBytes = 16;
constexpr std::int32_t kThisCpu = -1;         // BPF_F_CURRENT_CPU, 32 bits
constexpr std::uint32_t kMostCounts = 16384;  // preallocated: a probe may be where memory cannot be allocated

std::int16_t bytes_of(const ProbeArgument& argument) {
  return is_text(argument) ? static_cast<std::int16_t>(kProbeTextBytes) : std::int16_t{8};
}

// Truncates r7 to a number of `size` bytes.
void extend(Assembler& program, std::uint8_t size, bool is_signed) {
  if (is_signed) return program.extend_sign(kValue, size);
  const std::int32_t unused = 64 - 8 * size;
  if (unused == 0) return;
  program.shift_left(kValue, unused);
  program.shift_right(kValue, unused);
}

// r7 = the `size` bytes at `displacement` from where r7 points, or 0; `scratch` is a word of the stack.
void read_user(Assembler& program, std::uint8_t size, std::int32_t displacement, std::int16_t scratch) {
  program.clear_stack(scratch, kWord);
  program.set_stack_address(1, scratch);
  program.set(2, size);
  program.move(3, kValue);
  program.add_number(3, displacement);
  program.call(kReadUser);
  program.load(BPF_DW, kValue, 10, scratch);
}

// r7 = the value.
void emit_value(Assembler& program, const ProbeArgument& argument, std::int16_t scratch) {
  if (argument.source == Source::Constant) {
    program.set_wide(kValue, static_cast<std::uint64_t>(argument.constant));
    return;
  }
  if (argument.source == Source::Record) {
    program.load(Assembler::size_code(argument.size), kValue, kContext,
                 static_cast<std::int16_t>(argument.displacement));
    extend(program, argument.size, argument.is_signed);
    return;
  }
  constexpr std::uint8_t kPointer = 8;
  program.load(BPF_DW, kValue, kContext, static_cast<std::int16_t>(argument.register_offset));
  if (argument.shift != 0) program.shift_right(kValue, argument.shift);
  for (const std::int32_t pointer : argument.pointers) read_user(program, kPointer, pointer, scratch);
  if (argument.source == Source::Memory) read_user(program, argument.size, argument.displacement, scratch);
  if (argument.source == Source::Address) program.add_number(kValue, argument.displacement);
  extend(program, argument.size, argument.is_signed);
}

// The half of a __data_loc word that has the text's offset in the record.
constexpr std::int32_t kDataLocMask = 0xFFFF;

void emit_text(Assembler& program, const ProbeArgument& argument, std::int16_t at) {
  program.clear_stack(at, kProbeTextBytes);  // bytes after the text's end are recorded as well
  program.set_stack_address(1, at);
  program.set(2, static_cast<std::int32_t>(kProbeTextBytes));
  if (argument.source == Source::Record) {
    program.move(3, kContext);
    if (argument.size == 1) {
      program.add_number(3, argument.displacement);
    } else {
      program.mask32(kValue, kDataLocMask);
      program.add_register(3, kValue);
    }
  } else {
    program.move(3, kValue);
  }
  program.call(argument.shape == Shape::UserText ? kReadUserText : kReadKernelText);
}

// Offsets in the program's stack frame, which has from its end downwards: the arguments; if hits are counted,
// the front of the key, which the first arguments complete; scratch memory; the value of a new entry.
struct Frame {
  std::int16_t key = 0, arguments = 0, scratch = 0, value = 0;
  std::int32_t key_bytes = 0, argument_bytes = 0;
};
Frame frame_of(const ProbeTask& task) {
  Frame frame;
  for (const ProbeArgument& argument : task.arguments) frame.argument_bytes += bytes_of(argument);
  frame.arguments = static_cast<std::int16_t>(-frame.argument_bytes);
  frame.key = frame.arguments;
  if (task.sum) {
    std::int16_t front = kWord;  // bytes before the arguments; first the pid
    if (task.sum->by_thread) front = static_cast<std::int16_t>(front + kWord);
    if (task.sum->by_cpu) front = static_cast<std::int16_t>(front + kWord);
    if (task.sum->by_name) front = static_cast<std::int16_t>(front + kNameBytes);
    frame.key = static_cast<std::int16_t>(frame.arguments - front);
    frame.key_bytes = front;
    for (std::size_t i = 0; i < task.sum->keys + (task.sum->has_value ? 1 : 0); ++i)
      frame.key_bytes += bytes_of(task.arguments[i]);
  }
  frame.scratch = static_cast<std::int16_t>(frame.key - kScratchBytes);
  frame.value = static_cast<std::int16_t>(frame.scratch - kValueBytes);
  return frame;
}

// The program's result: 0 suppresses the probe's sample; on a tracepoint it would suppress the samples of all
// recorders.
std::int32_t result_of(const ProbeTask& task) { return task.hook == ProbeTask::Hook::Probe ? 0 : 1; }

void read_arguments(Assembler& program, const ProbeTask& task, const Frame& frame) {
  std::int16_t at = frame.arguments;
  for (const ProbeArgument& argument : task.arguments) {
    emit_value(program, argument, frame.scratch);
    if (is_text(argument))
      emit_text(program, argument, at);
    else
      program.store(BPF_DW, 10, kValue, at);
    at = static_cast<std::int16_t>(at + bytes_of(argument));
  }
}

// r8 = floor(log2(r7)); 0 for r7 <= 1.
void find_slot(Assembler& program) {
  constexpr int kSlot = 8, kRest = 1;
  program.set(kSlot, 0);
  const std::size_t negative = program.jump_if_number(BPF_JSLE, kValue, 1);
  for (std::int32_t bits = 32; bits != 0; bits /= 2) {
    program.move(kRest, kValue);
    program.shift_right(kRest, bits);
    const std::size_t small = program.jump_if_number(BPF_JEQ, kRest, 0);
    program.move(kValue, kRest);
    program.add_number(kSlot, bits);
    program.set_target(small, program.here());
  }
  program.set_target(negative, program.here());
}

// Writes the key to the stack. r9 = the value, of which the key has the histogram slot.
void make_key(Assembler& program, const ProbeTask& task, const Frame& frame) {
  constexpr int kSlot = 8, kSummed = 9;
  std::int16_t at = frame.key;
  const auto put = [&](int from) {
    program.store(BPF_DW, 10, from, at);
    at = static_cast<std::int16_t>(at + kWord);
  };
  program.call(BPF_FUNC_get_current_pid_tgid);
  program.move(kValue, 0);
  program.shift_right(kValue, 32);
  put(kValue);
  if (task.sum->by_thread) {
    program.move32(kValue, 0);
    put(kValue);
  }
  if (task.sum->by_cpu) {
    program.call(BPF_FUNC_get_smp_processor_id);
    put(0);
  }
  if (task.sum->by_name) {
    program.clear_stack(at, kNameBytes);
    program.set_stack_address(1, at);
    program.set(2, kNameBytes);
    program.call(BPF_FUNC_get_current_comm);
  }
  if (!task.sum->has_value) return;
  const auto value = static_cast<std::int16_t>(frame.key + frame.key_bytes - kWord);
  program.load(BPF_DW, kValue, 10, value);
  program.move(kSummed, kValue);
  find_slot(program);
  program.store(BPF_DW, 10, kSlot, value);
}

// Adds this hit to the entry of the key. If it is missing, adds it; another CPU may do that at the same time.
void count(Assembler& program, const ProbeTask& task, const Frame& frame, int counts, int lost) {
  constexpr int kSummed = 9;
  const auto find = [&] {
    program.set_map(1, counts);
    program.set_stack_address(2, frame.key);
    program.call(BPF_FUNC_map_lookup_elem);
  };
  make_key(program, task, frame);
  find();
  const std::size_t known = program.jump_if_number(BPF_JNE, 0, 0);
  program.clear_stack(frame.value, kValueBytes);
  program.set_map(1, counts);
  program.set_stack_address(2, frame.key);
  program.set_stack_address(3, frame.value);
  program.set(4, BPF_NOEXIST);
  program.call(BPF_FUNC_map_update_elem);
  find();
  const std::size_t made = program.jump_if_number(BPF_JNE, 0, 0);
  program.set(0, 0);
  program.store(BPF_W, 10, 0, frame.scratch);
  program.set_map(1, lost);
  program.set_stack_address(2, frame.scratch);
  program.call(BPF_FUNC_map_lookup_elem);
  const std::size_t none = program.jump_if_number(BPF_JEQ, 0, 0);
  program.set(1, 1);
  program.add_atomically(0, 1, 0);
  program.set_target(none, program.here());
  program.exit_with(result_of(task));
  program.set_target(known, program.here());
  program.set_target(made, program.here());
  program.set(1, 1);
  program.add_atomically(0, 1, 0);
  if (task.sum->has_value) program.add_atomically(0, kSummed, kWord);
}

void begin(Assembler& program, const ProbeTask& task) {
  program.move(kContext, 1);
  if (task.followed) return_unless_followed(program, *task.followed, result_of(task));
}

void return_unless_wanted(Assembler& program, const ProbeTask& task, const Frame& frame) {
  return_unless(program, task.condition,
                {.scratch = frame.scratch, .payload = frame.arguments, .result = result_of(task)});
}

// Reads the arguments, and writes the sample or counts.
Assembler reader_of(const ProbeTask& task, int outputs, int lost) {
  Assembler program;
  const Frame frame = frame_of(task);
  if (task.walk)
    program.move(kContext, 1);
  else
    begin(program, task);
  read_arguments(program, task, frame);
  if (!task.walk) return_unless_wanted(program, task, frame);
  if (task.sum) {
    count(program, task, frame, outputs, lost);
  } else {
    program.move(1, kContext);
    program.set_map(2, outputs);
    program.set32(3, kThisCpu);
    program.set_stack_address(4, frame.arguments);
    program.set(5, frame.argument_bytes);
    program.call(BPF_FUNC_perf_event_output);
  }
  program.exit_with(result_of(task));
  return program;
}

// The program that runs first with `walk`: checks the condition, and tail-calls the unwinder.
Assembler start_of(const ProbeTask& task, int table) {
  Assembler program;
  const Frame frame = frame_of(task);
  begin(program, task);
  if (has_members(task.condition)) read_arguments(program, task, frame);
  return_unless_wanted(program, task, frame);
  program.tail_call(kContext, table);
  program.exit_with(result_of(task));
  return program;
}

Result<format::Fd> load_program_of(const ProbeTask& task, const Assembler& program) {
  const auto type = task.hook == ProbeTask::Hook::Probe ? BPF_PROG_TYPE_KPROBE : BPF_PROG_TYPE_TRACEPOINT;
  return load_program(type, "tacho_probe", program.instructions(),
                      "the kernel refused the program that reads a probe's arguments");
}

}  // namespace

#ifdef __aarch64__
// The words of struct pt_regs: x0 to x30, sp, pc, pstate. The lower half of x0 is w0.
std::optional<RegisterField> register_field(std::string_view name) {
  constexpr std::uint16_t kWordBytes = 8, kHalf = 4, kLink = 30, kStack = 31, kCode = 32;
  const auto whole = [](std::uint16_t word) {
    return RegisterField{static_cast<std::uint16_t>(kWordBytes * word), kWordBytes};
  };
  if (name == "lr") return whole(kLink);
  if (name == "sp") return whole(kStack);
  if (name == "pc") return whole(kCode);
  const bool is_half = name.starts_with('w');
  if (!is_half && !name.starts_with('x')) return std::nullopt;
  const auto number = format::whole_number<std::uint16_t>(name.substr(1));
  if (!number || *number > kLink) return std::nullopt;
  RegisterField field = whole(*number);
  if (is_half) field.size = kHalf;
  return field;
}
#else
std::optional<RegisterField> register_field(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (std::size_t row = 0; row < kRegisters.size(); ++row)
    for (std::size_t width = 0; width < 4; ++width)
      if (kRegisters[row][width] == name)
        return RegisterField{static_cast<std::uint16_t>(8 * row), static_cast<std::uint8_t>(8 >> width)};
  return std::nullopt;
}
#endif

std::optional<RegisterField> argument_register(std::size_t number) {
  if (number < 1 || number > kArguments.size()) return std::nullopt;
  return register_field(kArguments[number - 1]);
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

SummaryLayout layout_of_probe(const std::string& event, std::span<const ProbeArgument> arguments,
                              const ProbeSum& sum) {
  const auto whole = [](std::string name, std::string role) {
    format::PayloadField field;
    field.name = std::move(name);
    field.bit_size = 64;
    field.role = std::move(role);
    return field;
  };
  format::PayloadSchema key = schema_of(event, arguments.first(sum.keys + (sum.has_value ? 1 : 0)));
  if (sum.has_value) {
    format::PayloadField& slot = key.fields.back();
    slot.role = "log2";
    slot.kind = format::FieldKind::Unsigned;
    slot.is_signed = false;
    slot.format.clear();
  }
  std::vector<format::PayloadField> front{whole("pid", "")};
  if (sum.by_thread) front.push_back(whole("tid", ""));
  if (sum.by_cpu) front.push_back(whole("cpu", ""));
  if (sum.by_name) {
    format::PayloadField name = whole("comm", "");
    name.kind = format::FieldKind::Text;
    name.bit_size = 8;
    name.count = kNameBytes;
    name.is_array = true;
    front.push_back(std::move(name));
  }
  std::uint32_t bits = 0;
  for (format::PayloadField& field : front) {
    field.bit_offset = bits;
    bits += field.bit_size * field.count;
  }
  for (format::PayloadField& field : key.fields) field.bit_offset += bits;
  key.fields.insert(key.fields.begin(), front.begin(), front.end());
  key.size += bits / 8;
  format::PayloadSchema value{.event = event, .type_name = "counts", .size = kWord, .fields = {}};
  value.fields.push_back(whole("count", "count"));
  if (sum.has_value) {
    value.fields.push_back(whole("sum", "sum"));
    value.fields.back().bit_offset = value.size * 8;
    value.fields.back().kind =
        arguments[sum.keys].is_signed ? format::FieldKind::Signed : format::FieldKind::Unsigned;
  }
  value.size = kValueBytes;
  const std::uint32_t key_bytes = key.size;
  return SummaryLayout({.event = event, .map = "counts", .key = std::move(key), .value = std::move(value)},
                       key_bytes, kValueBytes);
}

Result<ProbeProgram> ProbeProgram::load(const ProbeTask& task) {
  if (auto may = check_may_load(); !may) return std::move(may.error());
  const auto texts = std::ranges::count_if(task.arguments, is_text);
  if (task.arguments.size() > kMostProbeArguments || static_cast<std::size_t>(texts) > kMostProbeTexts)
    return use_error("a probe takes " + std::to_string(kMostProbeArguments) + " arguments at most, " +
                     std::to_string(kMostProbeTexts) + " of them texts");
  const LibbpfLog quiet;
  const auto cpus = possible_cpus();
  if (!cpus) return cpus.error();
  ProbeProgram made;
  if (task.sum) {
    const auto key_bytes = static_cast<std::uint32_t>(frame_of(task).key_bytes);
    made.counted_ = {.type = BPF_MAP_TYPE_HASH,
                     .key_bytes = key_bytes,
                     .value_bytes = kValueBytes,
                     .most_entries = kMostCounts};
    made.outputs_ = format::Fd(
        bpf_map_create(BPF_MAP_TYPE_HASH, "tacho_counts", key_bytes, kValueBytes, kMostCounts, nullptr));
    made.lost_ = format::Fd(
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "tacho_lost", sizeof(int), sizeof(std::uint64_t), 1, nullptr));
    if (!made.lost_) return system_error("the map that counts lost hits of a probe", errno);
  } else {
    made.outputs_ = format::Fd(bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "tacho_probe", sizeof(int),
                                              sizeof(int), *cpus, nullptr));
  }
  if (!made.outputs_)
    return system_error(task.sum ? "the map of a probe's counts" : "the map of a probe's samples", errno);
  const Assembler reader = reader_of(task, made.outputs_.get(), made.lost_.get());
  auto done = store(made.reader_, load_program_of(task, reader));
  if (done && task.walk) done = store(made.next_, program_array_with(*task.walk));
  if (done && task.walk) done = store(made.start_, load_program_of(task, start_of(task, made.next_.get())));
  return done ? Result<ProbeProgram>(std::move(made)) : std::move(done.error());
}

MapReader ProbeProgram::counts() const { return {outputs_.get(), counted_, 1}; }

std::uint64_t ProbeProgram::lost() const {
  const int only = 0;
  std::uint64_t lost = 0;
  if (lost_) (void)bpf_map_lookup_elem(lost_.get(), &only, &lost);
  return lost;
}

Result<> ProbeProgram::attach(int event_fd) const {
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, fd()) == 0) return Done{};
  return system_error("the program that reads a probe's arguments cannot be attached", errno);
}

Result<> ProbeProgram::put_output(int cpu, int event_fd) const {
  if (lost_) return Done{};
  if (bpf_map_update_elem(outputs_.get(), &cpu, &event_fd, BPF_ANY) == 0) return Done{};
  return system_error("a probe's samples of CPU " + std::to_string(cpu), errno);
}

}  // namespace tacho::bpf
