// Code and descriptions of BPF programs: the input is a section BPF_PROG_INFO or BPF_BTF of a capture, and
// plain instructions.
#include <algorithm>
#include <span>
#include <string>

#include "format/container/features.h"
#include "report/decode/bpf_functions.h"
#include "report/decode/bpf_instructions.h"

using namespace tacho;
using namespace tacho::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const format::Bytes bytes = std::as_bytes(std::span(data, size));
  (void)disassemble_bpf(bytes, [](const BpfInstruction& one) -> std::optional<std::string> {
    return one.is_call() ? std::optional<std::string>("name") : std::nullopt;
  });
  // A program whose info and data are the two halves, with types that are the whole input.
  const std::size_t cut = size / 2;
  format::Features features;
  format::BpfProgramInfo program;
  program.info.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
  program.data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end());
  program.arrays = ~std::uint64_t{0};
  format::Environment& environment = features.environment;
  environment.bpf_programs.push_back(std::move(program));
  // Its types, whatever number of them it has.
  constexpr std::size_t kBtfId = 128;
  std::uint32_t id = 0;
  for (std::size_t i = 4; i-- > 0;)
    id = id << 8U | (kBtfId + i < cut ? std::to_integer<std::uint32_t>(bytes[kBtfId + i]) : 0U);
  environment.btf.push_back({id, {bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end()}});
  BpfFunctions functions(environment);
  (void)functions.program(environment.bpf_programs.front());
  (void)functions.functions_of(environment.bpf_programs.front());
  (void)BpfCallNames(features).lines_of_calls(environment);
  return 0;
}
