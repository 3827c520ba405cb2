// Resolver: symbols, source lines and code of locations, while a session runs and afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"
#include "symbolize/address_space.h"
#include "symbolize/elf/kernel_core.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

// Belongs to the thread that calls the view. What it shares with the reading thread (kernel mappings, JIT
// code) changes only between batches (Batch::ends_before_change).
class Resolver {
 public:
  // All that is passed by reference must outlive this.
  Resolver(const symbolize::SymbolOptions& options, const format::Features& features,
           symbolize::KernelSpace kernel, const symbolize::JitCode& jit,
           const StableArray<Location, LocationId>& locations);

  const Location& location(LocationId id) const { return (*locations_)[id]; }
  // Number of locations; only after the run.
  std::size_t locations() const { return locations_->size(); }
  // Everything that symbol sources know of a location. For a return address: facts() of that address,
  // facts_of_call() of the call before it.
  symbolize::LocationFacts facts(const Location& location) {
    return symbolizer_.facts(location.mapping, location.ip, location.cpumode);
  }
  symbolize::LocationFacts facts_of_call(const Location& location) {
    return symbolizer_.facts(location.mapping, {location.ip.value - 1}, location.cpumode);
  }
  // The functions at a location of a stack, innermost inlined call first; at least one. Not cached: views
  // cache the result by the location's id. Valid until the next call.
  std::span<const symbolize::Frame> frames(const Location& location);
  // The function of a sample's own address, without inlined calls. Valid until the next call.
  const symbolize::Frame& frame(const Location& location);
  // Do not read symbols: no view shows function names.
  void leave_names_out(symbolize::Symbolizer::WithModules modules) { symbolizer_.leave_names_out(modules); }
  // Many samples will be symbolized: starts to read kernel symbols.
  void expect_samples() { symbolizer_.expect_kernel_code(); }
  // Whether frames that were not unwound have neither inlined calls nor source lines.
  bool names_are_plain() const { return symbolizer_.names_are_plain(); }
  // The symbol table of `mapping`, for samples' own addresses.
  symbolize::Symbolizer::Names names_of(const symbolize::Mapping& mapping) {
    return symbolizer_.names_of(mapping);
  }
  // Whether records of the kernel's mappings were read.
  bool knows_kernel() const { return kernel_.text_mapping() != nullptr; }
  // The addresses of the kernel's functions with such names, in any order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kernel_functions(
      const std::function<bool(std::string_view name)>& is_wanted) {
    return knows_kernel() ? symbolizer_.functions_of(*kernel_.text_mapping(), is_wanted)
                          : std::vector<std::pair<std::uint64_t, std::uint64_t>>();
  }
  // A kernel function, for tracepoint texts. Valid until the next call.
  std::span<const symbolize::Frame> kernel_frames(std::uint64_t address);

  // At most `size` bytes of instructions at an address of the location's module: from the pack, or from the
  // module's file if that has more of them; empty if neither has any.
  format::Bytes code(const Location& location, std::uint64_t address, std::size_t size);
  bool is_64_bit(const Location& location);
  // The source line and the symbol of the module's file here, for what the capture does not have.
  std::optional<symbolize::Symbolizer::LineInFile> line_in_file(const symbolize::Module& module,
                                                                format::ElfAddress address,
                                                                const symbolize::LinkerSymbol& symbol) {
    return symbolizer_.line_in_file(module, address, symbol);
  }
  std::optional<symbolize::Symbolizer::SymbolInFile> symbol_in_file(const symbolize::Module& module,
                                                                    format::ElfAddress address) {
    return symbolizer_.symbol_in_file(module, address);
  }
  // The module's part of the pack in the capture; null if it has none. Lives as long as this.
  symbolize::PackedSource* packed(const symbolize::Module& module) { return symbolizer_.packed(module); }
  // A source file that the debug information of `module` (may be null) names: packed into the capture, below
  // --symfs, or on this machine. An error: there is none, it must not be read (symbolize::read_source()), or
  // it is another text than the program was compiled from. A note says why, except for a missing file.
  // Another note says that a file is newer than the program.
  Result<std::vector<std::byte>> source_file(const symbolize::Module* module, const std::string& path);
  void note_source(const std::string& path, const std::string& what);
  // The debug information has lines of this file up to `last_line`; the file has `lines`.
  void note_other_text(const std::string& path, std::uint32_t last_line, std::size_t lines);
  // Notes about source files so far.
  const std::vector<std::string>& source_notes() const { return source_notes_; }

  // Reports modules without symbols, modules in which unwinding ended, and modules without code.
  void report_missing(format::Diagnostics& diagnostics,
                      std::span<const symbolize::EndedChains> ended_chains) const;

 private:
  format::Bytes made_code(const symbolize::Module& module, std::uint64_t shown, std::size_t size) const;
  format::Bytes kernel_code(const Location& location, std::uint64_t address, std::size_t size);
  symbolize::KernelCore* kernel_core(const symbolize::Module& module);
  symbolize::PackedSource* packed_code(const symbolize::Module& module);
  void note_missing_code(const symbolize::Module& module);
  void check_source_time(const symbolize::Module& module, const std::string& path, std::int64_t modified);

  const format::Features* features_;
  symbolize::KernelSpace kernel_;
  const symbolize::JitCode* jit_;
  const StableArray<Location, LocationId>* locations_;
  std::string root_;  // --symfs
  symbolize::FileAccess* access_;
  std::string vmlinux_;
  int kcore_;
  bool is_core_of_capture_;
  std::optional<symbolize::KernelCore> core_;  // once code of the kernel was needed
  std::string core_error_;                     // why there is none, or what it does not say; empty: neither
  symbolize::Symbolizer symbolizer_;
  symbolize::ModuleCode code_;
  std::vector<const symbolize::Module*> without_code_;  // each once, in the order of the first lookup
  std::vector<std::string> source_notes_;
  std::map<const symbolize::Module*, std::optional<std::int64_t>> program_times_;
};

// The function at an address at the time of the sample; null: nothing was mapped there, or the sample comes
// from a text lane. Valid until the next lookup.
const symbolize::Frame* frame_at(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address);

// "vfs_read+0x10", or "vfs_read" at its first byte; empty: no function is known.
std::string address_name(Resolver& resolver, const ResolvedSample& sample, std::uint64_t address);

}  // namespace tacho::report
