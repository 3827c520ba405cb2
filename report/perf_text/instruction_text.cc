#include "report/perf_text/instruction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostBlock = 16384 - 15, kLongest = 15;  // bytes of a block, of an instruction

bool is_kernel(std::uint64_t address) { return static_cast<std::int64_t>(address) < 0; }

// "insn: 48 89 e5 ", or "<bad>" for no bytes.
std::string instruction_text(format::Bytes code) {
  std::string text = code.empty() ? "<bad>" : "insn: ";
  for (const std::byte byte : code) text += fmt::format("{:02x} ", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

struct InstructionText::Walk {
  TextBuffer& out;
  const ResolvedSample& sample;
  const Fields& fields;
  SourceCode& source;
  std::optional<symbolize::Frame> last_function;
  std::uint64_t cycles = 0;  // of the jumps so far
};

InstructionText::InstructionText(Session& session, Names names, std::size_t most_blocks)
    : resolver_(&session.resolver()),
      names_(names),
      most_blocks_(most_blocks),
      wide_(session.features().environment.arch.value_or(""), WordSize::Bits64),
      narrow_(session.features().environment.arch.value_or(""), WordSize::Bits32) {}

// The code from `start` to the end of the instruction at `end`.
InstructionText::Block InstructionText::block(const ResolvedSample& sample, std::uint64_t start,
                                              std::uint64_t end) {
  Block found;
  if (start == 0 || end == 0) return found;
  found.crosses_over = is_kernel(start) != is_kernel(end);
  if (found.crosses_over || end - start > kMostBlock) return found;
  const Location& location = sample.locate(start);
  if (location.mapping == nullptr) return found;
  found.code = resolver_->code(location, start, end - start + kLongest);
  found.is_64_bit = resolver_->is_64_bit(location);
  return found;
}

void InstructionText::write_own(TextBuffer& out, const ResolvedSample& sample, const Fields& fields) {
  const Block here = block(sample, sample.fields->ip, sample.fields->ip);
  const std::size_t size = decoder(here.is_64_bit).first_of(here.code).size;
  if (fields.has(Field::Insnlen)) out.text(fmt::format(" ilen: {}", size));
  if (!fields.has(Field::Insn) || size == 0) return;
  std::string text = " " + instruction_text(here.code.first(size));
  text.pop_back();
  out.text(text);
}

// Writes "        main+32:" if another function than in the line before begins.
void InstructionText::write_function(Walk& walk, std::uint64_t address) {
  const symbolize::Frame& frame = resolver_->frame(walk.sample.locate(address));
  const auto& last = walk.last_function;
  if (last && last->module == frame.module && frame.shown_address >= last->function_start &&
      frame.shown_address < last->function_end)
    return;
  if (frame.function.empty()) return;
  walk.out.character('\t');
  walk.out.text(printable(frame.function, names_));
  if (frame.shown_address != frame.function_start)
    walk.out.text(fmt::format("+{}", frame.shown_address - frame.function_start));
  walk.out.character(':');
  if (walk.fields.has(Field::Srcline)) write_source_line(walk.out, frame, names_, SourcePath::Last, "\t");
  walk.out.character('\n');
  walk.last_function = frame;
}

// Returns the instruction's size; 0 if there is none.
std::size_t InstructionText::write_instruction(Walk& walk, std::uint64_t address, const Block& from,
                                               std::size_t offset) {
  const format::Bytes code = from.code.subspan(std::min(offset, from.code.size()));
  const std::size_t size = decoder(from.is_64_bit).first_of(code).size;
  walk.out.text(fmt::format("\t{:016x}\t{}", address, instruction_text(code.first(size))));
  if (walk.fields.has(Field::Brstackinsnlen)) walk.out.text(fmt::format("\tilen: {}", size));
  walk.out.character('\n');
  return size;
}

void InstructionText::write_jump(Walk& walk, std::uint64_t address, std::uint64_t flags, const Block& from,
                                 std::size_t offset, std::size_t count) {
  const format::Bytes code = from.code.subspan(std::min(offset, from.code.size()));
  const std::size_t size = decoder(from.is_64_bit).first_of(code).size;
  walk.out.text(fmt::format("\t{:016x}\t{:<30}\t", address, instruction_text(code.first(size))));
  if (walk.fields.has(Field::Brstackinsnlen)) walk.out.text(fmt::format("ilen: {}\t", size));
  walk.out.character('#');
  for (const auto& [bit, word] :
       {std::pair(kBranchPredicted, " PRED"), std::pair(kBranchMispredicted, " MISPRED"),
        std::pair(kBranchInTransaction, " INTX"), std::pair(kBranchAborted, " ABORT")}) {
    if ((flags & bit) != 0) walk.out.text(word);
  }
  if (const std::uint64_t cycles = branch_cycles(flags); cycles != 0) {
    walk.cycles += cycles;
    walk.out.text(fmt::format(" {} cycles [{}]", cycles, walk.cycles));
    if (count != 0)
      walk.out.text(fmt::format(" {:.2f} IPC", static_cast<float>(count) / static_cast<float>(cycles)));
  }
  walk.out.character('\n');
}

// Writes the code from the target of one branch to the start of the next.
void InstructionText::write_between(Walk& walk, std::uint64_t start, std::uint64_t end, std::uint64_t flags,
                                    const Block& code) {
  std::size_t offset = 0, count = 0;
  while (offset < code.code.size()) {
    const std::uint64_t address = start + offset;
    write_function(walk, address);
    if (address == end) {
      write_jump(walk, address, flags, code, offset, ++count);
      write_source(walk, address);
      break;
    }
    const std::size_t size = write_instruction(walk, address, code, offset);
    if (size == 0) break;
    write_source(walk, address);
    ++count;
    offset += size;
  }
  if (offset != end - start) walk.out.text("\tmismatch of LBR data and executable\n");
}

// Writes the code from the last branch to the sample; if branches are missing between, up to the next branch.
void InstructionText::write_last(Walk& walk) {
  const format::BranchEntry last = walk.sample.fields->branch(0);
  const std::uint64_t ip = walk.sample.fields->ip;
  if (last.from == ip || (last.flags & kBranchAborted) != 0) return;
  constexpr std::uint64_t kScan = 128;  // bytes
  const std::uint64_t start = last.to, end = ip < start ? start + kScan : ip;
  Block code = block(walk.sample, start, end);
  write_function(walk, start);
  if (code.code.empty()) {
    code = block(walk.sample, ip, ip);
    if (code.code.empty()) return;
    write_instruction(walk, ip, code, 0);
    return write_source(walk, ip);
  }
  const std::uint64_t filter = walk.sample.event().attr.branch_sample_type;
  for (std::size_t offset = 0; offset <= end - start;) {
    const std::size_t size = write_instruction(walk, start + offset, code, offset);
    if (size == 0) return;
    const bool may_jump = decoder(code.is_64_bit).first_of(code.code.subspan(offset)).is_branch;
    if (may_jump && start + offset != ip && (filter == 0 || (filter & format::abi::kBranchAny) != 0))
      return walk.out.text("\t... not reaching sample ...\n");
    write_source(walk, start + offset);
    offset += size;
  }
}

void InstructionText::write_source(Walk& walk, std::uint64_t address) {
  if (!walk.fields.has(Field::Srccode)) return;
  walk.source.write(walk.out, *walk.sample.thread, resolver_->frame(walk.sample.locate(address)));
}

// The record has the newest branch first, the text the oldest.
void InstructionText::write_branches(Walk& walk) {
  const format::Sample& fields = *walk.sample.fields;
  std::size_t count = fields.branch_count();
  if (count == 0) return;
  if (most_blocks_ != 0) count = std::min(count, most_blocks_ + 1);
  walk.out.character('\n');
  const format::BranchEntry first = fields.branch(count - 1);
  if (const Block code = block(walk.sample, first.from, first.from); !code.code.empty()) {
    write_function(walk, first.from);
    write_jump(walk, first.from, first.flags, code, 0, 0);
    write_source(walk, first.from);
  }
  for (std::size_t i = count - 1; i-- > 0;) {
    const std::uint64_t start = fields.branch(i + 1).to;
    std::uint64_t end = fields.branch(i).from;
    Block code = block(walk.sample, start, end);
    if (code.crosses_over && i > 0) {  // the branch between was not recorded
      end = fields.branch(--i).from;
      code = block(walk.sample, start, end);
    }
    if (!code.code.empty()) write_between(walk, start, end, fields.branch(i).flags, code);
  }
  write_last(walk);
}

void InstructionText::write(TextBuffer& out, const ResolvedSample& sample, const Fields& fields,
                            SourceCode& source) {
  if (fields.has_any({Field::Insn, Field::Insnlen})) write_own(out, sample, fields);
  if (!fields.has_any({Field::Brstackinsn, Field::Brstackinsnlen})) return;
  Walk walk{out, sample, fields, source, {}};
  write_branches(walk);
}

}  // namespace tacho::report
