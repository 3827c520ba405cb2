// Unwinds the stack copies of --call-graph dwarf: by the user registers and the copied stack of each sample,
// and the call frame information of mapped files. x86-64, i386 and arm64.
//
// The result equals that of perf 6.1, which uses libunwind: also at the end of a stack copy, in functions
// without rules, and after signal frames.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "format/container/features.h"
#include "format/records/event_attr.h"
#include "format/records/sample.h"
#include "symbolize/address_space.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbolizer.h"

namespace tacho::symbolize {

class Unwinder {
 public:
  // `features`: for the architecture and the vdso; must outlive the unwinder. Files are opened when first
  // needed. `jit`: for the unwinding information of jitdumps; null: none; must outlive the unwinder.
  Unwinder(const SymbolOptions& options, const format::Features& features, const JitCode* jit = nullptr);
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  // Whether samples of the event have the registers and stack copies for unwinding.
  static bool can_unwind(const format::EventAttr& attr);

  // The user part of a call chain, leaf first, at most `max_frames` addresses: the sampled address, then the
  // return address minus 1 of each caller (for code interrupted by a signal, the address itself). Empty: the
  // sample has no registers or no stack. `space`: the mappings of the process. Valid until the next call.
  std::span<const std::uint64_t> unwind(const format::Sample& sample, const SpaceVersion& space,
                                        std::size_t max_frames, std::endian order = std::endian::little);

  // Whether the event's samples have only arm64's link register as user register: perf records it with chains
  // by frame pointers.
  static bool has_only_link_register(const format::EventAttr& attr);

  // For such a sample: the return address minus 1 of the function around `pc`, if it is in the link register.
  std::optional<std::uint64_t> caller_of_leaf(const format::Sample& sample, const SpaceVersion& space,
                                              std::uint64_t pc, std::endian order = std::endian::little);

  // The number of samples with stacks of an unsupported machine.
  std::uint64_t unsupported_samples() const;
  // The modules in which call chains ended since their unwind information is missing or damaged.
  std::vector<EndedChains> ended_chains() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
