// Names of places: what a view asks about the locations of its samples, while a session runs and afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/stable_array.h"
#include "symbolize/address_space.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// It belongs to the thread that shows samples. Of what the reading thread writes it has what all processes
// share, and that changes only while no sample is shown (Batch::ends_before_change).
class Resolver {
 public:
  // All that is passed by reference must outlive this.
  Resolver(const symbolize::SymbolOptions& options, const format::Features& features,
           symbolize::KernelSpace kernel, const symbolize::JitCode& jit,
           const StableArray<Location>& locations);

  // The place with this number, of a stack's frames.
  const Location& location(std::uint32_t number) const { return (*locations_)[number]; }
  // How many places there are; only when nothing is read any more.
  std::size_t locations() const { return locations_->size(); }
  // What is known of a place, before options choose from it; of a caller, at its return address, and with
  // Call at the call before it.
  symbolize::PlaceFacts facts(const Location& location) {
    return symbolizer_.facts(location.mapping, location.ip, location.cpumode);
  }
  symbolize::PlaceFacts facts_of_call(const Location& location) {
    return symbolizer_.facts(location.mapping, {location.ip.value - 1}, location.cpumode);
  }
  // Names of a place of a stack, innermost inlined call first; at least one frame. Looked up anew each time,
  // and valid until the next lookup: views keep what they make of it by the place's number.
  std::span<const symbolize::Frame> frames(const Location& location);
  // Its name as a place that stands alone: without the inlined calls in it. As valid as frames().
  const symbolize::Frame& frame(const Location& location);
  // Nobody asks for the names of functions.
  void leave_names_out(symbolize::Symbolizer::WithModules modules) { symbolizer_.leave_names_out(modules); }
  // Many samples are going to be named: what takes long is begun.
  void expect_samples() { symbolizer_.expect_kernel_code(); }
  // Whether a frame that was not unwound has neither inlined calls nor a line of source.
  bool names_are_plain() const { return symbolizer_.names_are_plain(); }
  // What gives the places of `mapping` their names where they stand alone.
  symbolize::Symbolizer::Names names_of(const symbolize::Mapping& mapping) {
    return symbolizer_.names_of(mapping);
  }
  // A kernel function, for tracepoint texts. As valid as frames().
  std::span<const symbolize::Frame> kernel_frames(std::uint64_t address);

  // Instructions at an address of the place's module, at most `size` bytes: those that were packed, and
  // of its file where these are fewer; empty when there is none.
  format::Bytes code(const Location& location, std::uint64_t address, std::size_t size);
  bool is_64_bit(const Location& location);
  // What was packed of a module; null: nothing. As long as this.
  symbolize::PackedSource* packed(const symbolize::Module& module) { return symbolizer_.packed(module); }
  // A file with source: as it was packed into the capture, else the recording host's, below --symfs, or this
  // machine's own.
  Result<std::vector<std::byte>> source_file(const std::string& path) const;

  // Adds the modules without names to `diagnostics`, and where unwound call chains ended.
  void report_missing(format::Diagnostics& diagnostics,
                      std::span<const symbolize::ModuleLack> ended_chains) const;

 private:
  format::Bytes made_code(const symbolize::Module& module, std::uint64_t shown, std::size_t size) const;
  format::Bytes kernel_code(const Location& location, std::uint64_t address, std::size_t size);
  symbolize::PackedSource* packed_code(const symbolize::Module& module);
  void note_no_code(const symbolize::Module& module);

  const format::Features* features_;
  symbolize::KernelSpace kernel_;
  const symbolize::JitCode* jit_;
  const StableArray<Location>* locations_;
  symbolize::DebugFiles files_;
  symbolize::FileAccess* access_;
  std::string vmlinux_;
  symbolize::Symbolizer symbolizer_;
  symbolize::ModuleCode code_;
  std::vector<const symbolize::Module*> without_code_;  // each once, in the order they were asked for
};

}  // namespace tacho::report
