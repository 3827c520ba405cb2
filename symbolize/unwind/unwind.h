// Call chains of captures made with --call-graph dwarf: from the user registers and the piece of stack that
// each sample carries, by the call frame information of the mapped files. x86-64, i386 and arm64.
//
// perf 6.1 unwinds with libunwind, and whom it finds as callers is what is found here: also where a stack's
// copy ends, where a function is not described, and behind a signal's frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "format/records/event_attr.h"
#include "format/records/sample.h"
#include "symbolize/address_space.h"
#include "symbolize/symbolizer.h"

namespace tacho::symbolize {

class Unwinder {
 public:
  // `features` gives the machine's architecture and the vdso; it must outlive the unwinder. Files are opened
  // when an address first needs them.
  Unwinder(const SymbolOptions& options, const format::Features& features);
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  // True when samples of the event carry what unwinding needs.
  static bool can_unwind(const format::EventAttr& attr);

  // The user part of a call chain, leaf first, at most `max_frames` addresses: the sampled address, then for
  // each caller its return address minus 1 (what a signal interrupted: the address itself). Empty when the
  // sample has no registers or no stack. Addresses mean what `space` says. Valid until the next call.
  std::span<const std::uint64_t> unwind(const format::Sample& sample, const SpaceVersion& space,
                                        std::size_t max_frames, std::endian order = std::endian::little);

  // True when the event's samples carry arm64's link register and nothing else of the user's: perf records it
  // beside chains by frame pointers.
  static bool has_link_alone(const format::EventAttr& attr);

  // Of such a sample: the return address minus 1 of the function that `pc` is in, when the register still has
  // it.
  std::optional<std::uint64_t> caller_of_leaf(const format::Sample& sample, const SpaceVersion& space,
                                              std::uint64_t pc, std::endian order = std::endian::little);

  // How many samples had stacks of a machine that is not known here.
  std::uint64_t other_machines() const;
  // The files in which call chains ended because their unwind information was not found, or was damaged.
  std::vector<ModuleLack> ended_chains() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
