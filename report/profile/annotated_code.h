// The instructions of a function with what samples say of each: the data of annotated code, without a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/bpf_call_names.h"
#include "report/decode/bpf_functions.h"
#include "report/decode/instructions.h"
#include "report/profile/code_hits.h"
#include "report/query/capture_gaps.h"
#include "report/samples/resolver.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

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
  CodePlaces places_;
  std::optional<std::map<std::uint64_t, BpfFunction>> bpf_functions_;  // by address; once asked for
  std::optional<BpfCallNames> bpf_calls_;                              // likewise
};

}  // namespace tacho::report
