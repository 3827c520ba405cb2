// The address spaces of a capture and the code made at run time: what one thread replays and another looks
// into for names.
//
// The replaying thread has a SharedSpaces. The other has what kernel() and jit() gave it, and no way to more;
// while a Resolver::Loan lives it does not look. What these two show changes in two functions only, apply()
// and add_build_id(), and both wait before until the other thread rests. All else that the other thread
// meets, the mappings of samples, never changes once it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/container/environment.h"
#include "format/records/record.h"
#include "report/samples/outlet.h"
#include "report/samples/record_effects.h"
#include "symbolize/address_space.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

class SharedSpaces {
 public:
  // `symbols` says where jitdumps lie, and which gate they go by.
  explicit SharedSpaces(const symbolize::SymbolOptions& symbols)
      : jit_(symbols.jitdump_dir, symbolize::DebugFiles(symbols.symfs, {}, symbols.held), symbols.gate) {
    if (!symbols.names_memory_files) spaces_.keep_memory_files();
  }
  SharedSpaces(const SharedSpaces&) = delete;
  SharedSpaces& operator=(const SharedSpaces&) = delete;

  // Before anything is replayed: a capture that may have jitdumps of its own. Must outlive this.
  void use(const format::Features& features) { jit_.use(features); }

  // For the thread that shows.
  symbolize::KernelSpace kernel() const { return spaces_; }
  const symbolize::JitCode& jit() const { return jit_; }

  // For the thread that replays, as all below.
  const symbolize::AddressSpaces& spaces() const { return spaces_; }
  // What the record changed. `clock`: of the capture's times.
  Change apply(const format::Record& record, std::uint16_t misc, symbolize::JitClock clock, Outlet& outlet);
  void add_build_id(const format::BuildIdEntry& entry, Outlet& outlet);
  // There are no more of either. What the other thread looks into stays.
  void end_replay() { spaces_.end_replay(); }
  // Mappings that jitdumps tell, which stand at `time` or before; to be applied like the capture's own.
  bool has_due_code(std::uint64_t time) const { return jit_.is_due(time); }
  std::optional<format::MmapRecord> due_code(std::uint64_t time) { return jit_.due(time); }

 private:
  symbolize::AddressSpaces spaces_;
  symbolize::JitCode jit_;
};

}  // namespace tacho::report
