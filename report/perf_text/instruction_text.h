// The instruction of a sample, and those between the branches before it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/decode/instructions.h"
#include "report/output/text_output.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/script_fields.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"

namespace tacho::report {

// The fields insn and brstackinsn of script: the instruction at which a sample was taken, and the
// instructions between the recorded branches before it.
class InstructionText {
 public:
  static constexpr Fields kFields{Field::Insn, Field::Insnlen, Field::Brstackinsn, Field::Brstackinsnlen};

  // `most_blocks` limits the blocks of code between branches; 0: no limit.
  InstructionText(Session& session, Names names, std::size_t most_blocks);
  void write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields, SourceCode& source);

 private:
  struct Block {
    format::Bytes code;
    bool is_64_bit = true;
    bool crosses_over = false;  // begins in user code and ends in the kernel, or vice versa
  };
  struct Walk;  // the branches of one sample

  Block block(const ResolvedSample& sample, std::uint64_t start, std::uint64_t end);
  const Disassembler& decoder(bool is_64_bit) const { return is_64_bit ? wide_ : narrow_; }
  void write_own(TextBuffer& out, const ResolvedSample& sample, const Fields& fields);
  void write_branches(Walk& walk);
  void write_function(Walk& walk, std::uint64_t address);
  void write_source(Walk& walk, std::uint64_t address);
  std::size_t write_instruction(Walk& walk, std::uint64_t address, const Block& from, std::size_t offset);
  void write_jump(Walk& walk, std::uint64_t address, std::uint64_t flags, const Block& from,
                  std::size_t offset, std::size_t count);
  void write_between(Walk& walk, std::uint64_t start, std::uint64_t end, std::uint64_t flags,
                     const Block& code);
  void write_last(Walk& walk);

  Resolver* resolver_;
  Names names_;
  std::size_t most_blocks_;
  Disassembler wide_, narrow_;
};

}  // namespace tacho::report
