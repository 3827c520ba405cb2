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
#include "report/decode/instructions.h"
#include "report/query/gather.h"
#include "report/samples/index_table.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

// Samples by function and by the address in it: what annotated code shows beside each instruction.

struct HitCount {
  std::uint64_t samples = 0, period = 0;
  void add(const HitCount& other) {
    samples += other.samples;
    period += other.period;
  }
};

// What branch stacks say of one instruction.
struct BranchHits {
  std::uint64_t taken = 0;         // branches that came from here
  std::uint64_t mispredicted = 0;  // of these
  std::uint64_t entered = 0;       // branches that went to here
  std::uint64_t cycles = 0;        // of the blocks that ended here, of `timed` of them together
  std::uint64_t timed = 0;
  void add(const BranchHits& other);
  bool is_any() const { return taken != 0 || entered != 0; }
};

// A function that samples hit or branches touched.
struct HitFunction {
  Location place;                             // one of its addresses that were hit
  const symbolize::Module* module = nullptr;  // lives as long as the session
  std::uint64_t shown_address = 0;            // of `place`
  std::uint64_t start = 0, end = 0;           // in the space of shown addresses; equal: its size is not known
  std::string name;                           // as reports show it
  std::string linker_name;                    // empty: not known
  struct Hit {
    std::uint64_t offset = 0;  // bytes from the start
    std::uint32_t event = 0;
    HitCount count;
  };
  std::vector<Hit> hits;    // ascending by offset
  std::vector<Hit> totals;  // ascending by event, each once; `offset` is 0
  // Zeros: no sample of the event.
  HitCount total(std::uint32_t event) const;
  struct Branches {
    std::uint64_t offset = 0;
    BranchHits count;
  };
  std::vector<Branches> branches;  // ascending by offset, each once
};

class CodeHits {
 public:
  explicit CodeHits(std::size_t events) : totals_(events) {}

  void add(const ResolvedSample& sample);
  // The branches of a sample. The sink must have asked for everything (Sink::needs).
  void add_branches(const ResolvedSample& sample);

  // After the last sample: names the places and sorts them into functions. Places without a name are left
  // out.
  std::vector<HitFunction> functions(Resolver& resolver) const;
  // Of all samples of each event, those without a function too.
  const std::vector<HitCount>& totals() const { return totals_; }

 private:
  struct Place {
    std::uint32_t event = 0, location = 0;
    HitCount count;
  };
  struct AddressBranches {
    std::uint32_t location = 0;
    BranchHits count;
  };
  BranchHits& branches_at(std::uint32_t location);

  std::vector<HitCount> totals_;
  std::vector<Place> places_;
  IndexTable by_place_;
  std::vector<AddressBranches> branches_;
  IndexTable by_branch_;
};

// Of each event that has samples in functions: numbers of these functions, those with the largest period
// first, and of equal ones those with most samples.
std::map<std::uint32_t, std::vector<std::size_t>> hottest(const std::vector<HitFunction>& functions);

// The instructions of a function with what samples say of each: the data of annotated code, without a layout.

struct CodeLine {
  std::uint64_t offset = 0;  // bytes from the function's start
  DisassembledInstruction instruction;
  format::Bytes bytes;
  // "<malloc@plt>", "<sum+0x30>" for what the instruction's target or memory operand is; empty: not known.
  std::string target_name;
  // Where it comes from: the innermost of the calls that were inlined here. Empty and 0: not known.
  std::string_view file;  // with its folder
  std::uint32_t line = 0;
  std::string_view source;           // the line's text where the capture has it, as of BPF programs
  std::string_view function;         // as reports show it
  std::string_view function_linker;  // as the linker knows it
  BranchHits branches;
};

struct AnnotatedCode {
  std::uint64_t address = 0;  // of the function's first byte, as its file counts
  std::uint64_t size = 0;     // bytes of the function
  std::vector<CodeLine> lines;
  // A row for each line, as many counts as there are events (see CodeAnnotator::annotate): of samples that
  // were taken between its address and that of the next line.
  std::vector<HitCount> counts;
  std::size_t events = 0;
  bool has_branches = false;
  std::string lack;  // why there are no lines, or not all of them; empty: all are there

  std::span<const HitCount> counts_of(std::size_t line) const {
    return std::span(counts).subspan(line * events, events);
  }
};

class CodeAnnotator {
 public:
  // The session must outlive it. Its symbol options should ask for inlined calls of unwound stacks.
  CodeAnnotator(Session& session, AsmSyntax syntax);

  // `first` and `count`: the events whose samples are counted, which stand side by side.
  AnnotatedCode annotate(const HitFunction& function, std::uint32_t first, std::uint32_t count);

 private:
  struct Place;  // of a function that is annotated
  void name_sources(const Place& place, AnnotatedCode& code);
  std::string name_of_target(const Place& place, std::uint64_t address);
  format::Bytes code_of(const Place& place, std::size_t size);
  const BpfFunction* bpf_function(const Place& place);

  Session* session_;
  Disassembler wide_, narrow_;
  CodeAddresses places_;
  std::optional<std::map<std::uint64_t, BpfFunction>> bpf_functions_;  // by address; once asked for
  std::optional<BpfCallNames> bpf_calls_;                              // likewise
};

}  // namespace tacho::report
