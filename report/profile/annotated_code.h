// Annotated code without a layout: samples by function and by address, and the instructions of a function
// with the samples of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/bpf_functions.h"
#include "report/decode/bpf_instructions.h"
#include "report/decode/instructions.h"
#include "report/query/code_gatherer.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

struct HitCount {
  std::uint64_t samples = 0, period = 0;
  void add_count(const HitCount& other) {
    samples += other.samples;
    period += other.period;
  }
};

// The branches of one instruction.
struct BranchHits {
  std::uint64_t taken = 0;         // branches from here
  std::uint64_t mispredicted = 0;  // of the taken ones
  std::uint64_t entered = 0;       // branches to here
  std::uint64_t cycles = 0;        // of `timed` blocks that ended here, added up
  std::uint64_t timed = 0;
  std::uint64_t least_cycles = 0, most_cycles = 0;  // of one of these blocks
  void add_cycles(std::uint64_t of_block);
  void add_hits(const BranchHits& other);
  bool is_any() const { return taken != 0 || entered != 0; }
};

// Code that ran without a branch: from the target of one branch to the next one, both in one function. As
// perf, only of branches that follow each other in a branch stack of all branches (-j any).
struct BranchBlock {
  std::uint64_t start = 0, end = 0;           // offsets of the first and the last instruction
  std::uint64_t branches = 0, predicted = 0;  // that ended it
  std::uint64_t timed = 0, cycles = 0;        // how often it was measured, and the sum
};

// A function with samples or branches.
struct HitFunction {
  Location location;                          // an address with samples
  const symbolize::Module* module = nullptr;  // lives as long as the session
  std::uint64_t shown_address = 0;            // of `location`
  std::uint64_t start = 0, end = 0;           // in the space of shown addresses; equal: the size is unknown
  std::string name;                           // as reports show it
  std::string linker_name;                    // empty: unknown
  struct Hit {
    std::uint64_t offset = 0;  // bytes from the start
    std::uint32_t event = 0;
    HitCount count;
  };
  std::vector<Hit> hits;    // ascending by offset
  std::vector<Hit> totals;  // ascending by event, each once; `offset` is 0
  // Zeros if no sample of the event is in it.
  HitCount total(std::uint32_t event) const;
  struct Branches {
    std::uint64_t offset = 0;
    BranchHits count;
  };
  std::vector<Branches> branches;   // ascending by offset, each once
  std::vector<BranchBlock> blocks;  // ascending by end and start, each once
};

// Counts samples by function and by address in the function: the numbers beside each instruction.
class CodeHits {
 public:
  explicit CodeHits(std::size_t events) : totals_(events) {}

  void add_sample(const ResolvedSample& sample) { add_sample_at(sample, sample.location_id); }
  // Counts it elsewhere: a wait where the program began it.
  void add_sample_at(const ResolvedSample& sample, LocationId location) {
    count(row_of(sample.event_index, location), sample.event_index, {1, sample.counted_period()});
  }
  // The same for the sums of several samples, as SumView gets them.
  RowId row_of(std::size_t event, LocationId location);
  void count(RowId row, std::size_t event, const HitCount& sum);
  // The branches of a sample. The sink must request everything (Sink::needs).
  void add_branches(const ResolvedSample& sample);

  // After the last sample: resolves the addresses and groups them by function. Addresses without a name are
  // left out.
  std::vector<HitFunction> functions(Resolver& resolver) const;
  // By event: all samples, also those without a function.
  const std::vector<HitCount>& totals() const { return totals_; }

 private:
  struct EventHits {
    std::uint32_t event = 0;
    LocationId location{};
    HitCount count;
  };
  struct AddressBranches {
    LocationId location{};
    BranchHits count;
  };
  struct AddressBlock {
    LocationId start{}, end{};
    BranchBlock count;
  };
  BranchHits& branches_at(LocationId location);
  BranchBlock& block_of(LocationId start, LocationId end);

  std::vector<HitCount> totals_;
  IdVector<RowId, EventHits> hits_;
  IndexTable<RowId> by_location_;
  std::vector<AddressBranches> branches_;
  IndexTable<> by_branch_;
  std::vector<AddressBlock> blocks_;
  IndexTable<> by_block_;
};

// By event with samples in functions: the indices of these functions, largest period first, and of equal
// periods, most samples first.
std::map<std::uint32_t, std::vector<std::size_t>> hottest(const std::vector<HitFunction>& functions);

// An instruction with its samples.
struct CodeLine {
  std::uint64_t offset = 0;  // bytes from the function's start
  DisassembledInstruction instruction;
  format::Bytes bytes;
  // "<malloc@plt>", "<sum+0x30>": the symbol at the instruction's target or memory operand; empty: unknown.
  std::string target_name;
  // The source of the instruction: of the innermost inlined call. Empty and 0: unknown.
  std::string_view file;  // with its folder
  std::uint32_t line = 0;
  std::string_view source;           // the text of the line, if the capture has it, as for BPF programs
  std::string_view function;         // as reports print it
  std::string_view function_linker;  // the mangled name
  BranchHits branches;
  // Instructions per cycle, of the longest measured block around it; 0: it is in none.
  double per_cycle = 0;
  // The comments of perf annotate --stdio, in percent, 0: none. Of what ran up to the next branch, the part
  // that a branch to here began; of what ran up to here, the part that branched; and of these, the predicted
  // part.
  double joins = 0, leaves = 0, predicted = 0;
};

// A line of source: tabs become blanks up to the next multiple of 8.
std::string without_tabs(std::string_view text);
// "call   1139 <sum>": the instruction with the name of its target. `mnemonic_width`: letters.
std::string instruction_text(const CodeLine& line, std::size_t mnemonic_width);

struct AnnotatedCode {
  std::uint64_t address = 0;  // of the function's first byte, in the file
  std::uint64_t size = 0;     // bytes of the function
  std::vector<CodeLine> lines;
  // By line, with one count for each event (see CodeAnnotator::annotate): the samples between its address and
  // that of the next line.
  std::vector<HitCount> counts;
  std::size_t events = 0;
  bool has_branches = false, has_cycles = false;
  // Of all measured blocks: instructions per cycle, and the part of all instructions that they have, in
  // percent.
  double per_cycle = 0, covered = 0;
  std::string missing_reason;  // why lines are missing; empty: none is

  std::span<const HitCount> counts_of(std::size_t line) const {
    return std::span(counts).subspan(line * events, events);
  }
};

class CodeAnnotator {
 public:
  // The session must outlive this. Its symbol options should include inlined calls of unwound stacks.
  CodeAnnotator(Session& session, AsmSyntax syntax);

  // Counts samples of the `count` events from `first` on, in columns.
  AnnotatedCode annotate(const HitFunction& function, std::uint32_t first, std::uint32_t count);

 private:
  struct FunctionContext;  // of the function that is annotated
  void name_sources(const FunctionContext& context, AnnotatedCode& code);
  std::string name_of_target(const FunctionContext& context, std::uint64_t address);
  format::Bytes code_of(const FunctionContext& context, std::size_t size);
  const BpfFunction* bpf_function(const FunctionContext& context);

  Session* session_;
  Disassembler wide_, narrow_;
  CodeAddresses addresses_;
  std::optional<std::map<std::uint64_t, BpfFunction>> bpf_functions_;  // by address; read on first use
  std::optional<BpfCallNames> bpf_calls_;                              // the same
};

}  // namespace tacho::report
