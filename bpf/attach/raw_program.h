// Assembler for small BPF programs, which need no compiler; loading them, attaching them to a perf event, and
// running them once. Registers: r1 holds the context at the start, r6 to r9 survive calls, r10 is the frame
// pointer.
#pragma once

#include <linux/bpf.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::bpf {

class Assembler {
 public:
  void move(int to, int from) { add_instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void move32(int to, int from) { add_instruction(BPF_ALU | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(int to, std::int32_t value) { add_instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void set32(int to, std::int32_t value) { add_instruction(BPF_ALU | BPF_MOV | BPF_K, to, 0, 0, value); }
  // A 64-bit number: two instructions.
  void set_wide(int to, std::uint64_t value) {
    add_instruction(BPF_LD | BPF_DW | BPF_IMM, to, 0, 0, static_cast<std::int32_t>(value & 0xFFFFFFFF));
    add_instruction(0, 0, 0, 0, static_cast<std::int32_t>(value >> 32));
  }
  void set_map(int to, int map) {
    add_instruction(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
    add_instruction(0, 0, 0, 0, 0);
  }
  // The address of a place in the program's stack frame.
  void set_stack_address(int to, std::int32_t offset) {
    move(to, 10);
    add_number(to, offset);
  }
  // Zeroes whole words of the stack frame; clobbers r0.
  void clear_stack(std::int16_t at, std::size_t bytes) {
    set(0, 0);
    for (std::size_t word = 0; word < bytes; word += 8)
      store(BPF_DW, 10, 0, static_cast<std::int16_t>(at + static_cast<std::int16_t>(word)));
  }
  void add_number(int to, std::int32_t value) {
    add_instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value);
  }
  void add_register(int to, int from) { add_instruction(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
  void and_register(int to, int from) { add_instruction(BPF_ALU64 | BPF_AND | BPF_X, to, from, 0, 0); }
  void shift_left(int to, std::int32_t bits) { add_instruction(BPF_ALU64 | BPF_LSH | BPF_K, to, 0, 0, bits); }
  void shift_right_signed(int to, std::int32_t bits) {
    add_instruction(BPF_ALU64 | BPF_ARSH | BPF_K, to, 0, 0, bits);
  }
  void shift_right(int to, std::int32_t bits) {
    add_instruction(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, bits);
  }
  void shift_right32(int to, std::int32_t bits) {
    add_instruction(BPF_ALU | BPF_RSH | BPF_K, to, 0, 0, bits);
  }
  void mask32(int to, std::int32_t mask) { add_instruction(BPF_ALU | BPF_AND | BPF_K, to, 0, 0, mask); }
  // Truncates a register to its lower `bytes`, and extends their sign.
  void extend_sign(int to, std::int32_t bytes) {
    const std::int32_t unused = 64 - 8 * bytes;
    if (unused == 0) return;
    shift_left(to, unused);
    shift_right_signed(to, unused);
  }
  // The code of a memory access of 1, 2, 4 or 8 bytes: `size` of load() and store().
  static int size_code(int bytes) {
    return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
  }
  void load(int size, int to, int from, std::int16_t offset) {
    add_instruction(BPF_LDX | BPF_MEM | size, to, from, offset, 0);
  }
  void store(int size, int to, int from, std::int16_t offset) {
    add_instruction(BPF_STX | BPF_MEM | size, to, from, offset, 0);
  }
  void add_atomically(int to, int from, std::int16_t offset) {  // 64 bits in memory
    add_instruction(BPF_STX | BPF_DW | BPF_ATOMIC, to, from, offset, BPF_ADD);
  }
  void call(std::int32_t function) { add_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
  void exit() { add_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
  void exit_with(std::int32_t result) {
    set(0, result);
    exit();
  }
  // Continues with the first program of a program array; the next instruction runs if that fails.
  void tail_call(int context, int table) {
    move(1, context);
    set_map(2, table);
    set(3, 0);
    call(BPF_FUNC_tail_call);
  }

  // Index of the next instruction.
  std::size_t here() const { return program_.size(); }
  // A jump whose target is set by set_target(): always, or if `test` (BPF_JEQ, ...) holds for two registers.
  std::size_t jump() { return branch(BPF_JMP | BPF_JA, 0, 0, 0); }
  std::size_t jump_if(int test, int left, int right) {
    return branch(BPF_JMP | test | BPF_X, left, right, 0);
  }
  std::size_t jump_if_number(int test, int left, std::int32_t number) {
    return branch(BPF_JMP | test | BPF_K, left, 0, number);
  }
  // Sets the target of a jump, at most 32,767 instructions away.
  void set_target(std::size_t jump, std::size_t target) {
    program_[jump].off = static_cast<__s16>(target - jump - 1);
  }
  std::span<const bpf_insn> instructions() const { return program_; }

 private:
  std::size_t branch(int code, int left, int right, std::int32_t number) {
    add_instruction(code, left, right, 0, number);
    return program_.size() - 1;
  }
  void add_instruction(int code, int to, int from, std::int16_t offset, std::int32_t number) {
    bpf_insn one{};
    one.code = static_cast<__u8>(code);
    one.dst_reg = static_cast<__u8>(to & 15);
    one.src_reg = static_cast<__u8>(from & 15);
    one.off = offset;
    one.imm = number;
    program_.push_back(one);
  }
  std::vector<bpf_insn> program_;
};

// Loads a program. `name`: at most 15 letters, shown by `tacho list bpf`. `what`: the start of the error,
// which has the errno.
Result<format::Fd> load_program(bpf_prog_type type, const char* name, std::span<const bpf_insn> program,
                                const std::string& what);

// Attaches a program to a perf event (Linux 5.15). Detached when the result or the event is closed.
Result<format::Fd> link_to_event(int program, int event_fd, std::uint64_t cookie = 0);

// Runs a program SEC("syscall") once.
Result<> run_once(int program_fd);

using RunUntil = std::chrono::steady_clock::time_point;

// Runs an iterator (SEC("iter/...")) once over all objects of its kind, and drops its output
// (bpf_seq_write()). Error ETIMEDOUT: it did not end in time.
Result<> run_iterator(int link_fd, RunUntil until);
// The same for an open iterator.
Result<> read_iterator(int fd, RunUntil until);

}  // namespace tacho::bpf
