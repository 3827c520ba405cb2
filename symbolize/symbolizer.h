// Symbolizer: from (mapping, address) to frames. Chooses and keeps the symbol sources, and collects messages
// about missing symbols.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/features.h"
#include "symbolize/address_space.h"
#include "symbolize/elf/dwarf_lines.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jit_code.h"
#include "symbolize/names/symbol_table.h"
#include "symbolize/symbol_options.h"
#include "symbolize/symbol_source.h"

namespace tacho::symbolize {

// Where an address was found.
enum class Origin : std::uint8_t {
  Alone,    // a sample's own place: always one frame
  Chain,    // on a stack that the kernel walked by frame pointers
  Unwound,  // on a stack that was unwound from its copy
};

// What an address stands behind. A return address is named by the call before it: function, inlined calls and
// line are those of the byte before; the address that is shown stays.
enum class Behind : std::uint8_t { Nothing, Call };

// All facts about an address, before options select from them: for packing.
struct PlaceFacts {
  const Module* module = nullptr;  // null: nothing was mapped there
  SymbolSource* source = nullptr;  // null: the module's own name is all there is
  std::optional<Symbol> symbol;    // in shown addresses; its name as the linker knows it
  std::uint64_t shown_address = 0, elf_address = 0;
  DwarfLines* lines = nullptr;  // null: there are none, or the source is packed and has them
  bool is_bpf_text = false;     // from kallsyms alone: the kernel's own code around BPF programs
};

class Symbolizer {
 public:
  // `features` gives the attachments; it and what `kernel` shows must outlive the symbolizer. Reads nothing
  // yet: sources are opened when an address first needs them. `jit` may be null; it must outlive the
  // symbolizer as well.
  Symbolizer(SymbolOptions options, const format::Features& features, KernelSpace kernel,
             const JitCode* jit = nullptr);
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // The frames at `ip`, innermost first; at least one, nameless when nothing is known. `mapping` is that of
  // the looked up byte, and may be null.
  // Valid until the next call, but what they point to as long as the symbolizer: callers number their places,
  // and keep for each what they make of its frames, which is less than the frames. `cpumode` is copied into
  // them.
  // Inlined calls are given as `origin` and the options ask for.
  std::span<const Frame> resolve(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode,
                                 Origin origin = Origin::Alone, Behind behind = Behind::Nothing);

  // What resolve() would make the frames of. Valid until the next call; texts and `source` as long as this.
  PlaceFacts facts(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode);

  // What was packed of a module; null: nothing. As long as this.
  PackedSource* packed(const Module& module);

  // From now on frames have only modules and no functions, so no symbol file is read. WithModules::No:
  // modules of BPF and other generated kernel code are not looked up in kallsyms either.
  enum class WithModules : bool { No, Yes };
  void leave_names_out(WithModules modules);
  // Starts to read this machine's kallsyms in the background, if kernel names will come from it.
  void expect_kernel_code();
  // Whether frames of recorded chains have neither inlined calls nor lines of source: names_of() has their
  // names.
  bool names_are_plain() const;
  // The symbol table for addresses of a mapping, without inlined calls.
  struct Names {
    SymbolTable* table = nullptr;  // asked by shown address; null: there is none, or more than one decides
    bool is_all = false;           // an address that the table does not name has no name
  };
  // Valid as long as the symbolizer.
  Names names_of(const Mapping& mapping);

  // One line for each module that some address needed names of and that had none, with the reason:
  // "/usr/lib/libfoo.so: has another build id, 4567...; build id 0123... was recorded". Adds to `diagnostics`
  // as NoSymbols. Of more than a thousand, the last line says how many there are.
  // `ended_chains`: where an Unwinder's chains ended. They stand in the same lines.
  void report_missing(format::Diagnostics& diagnostics, std::span<const ModuleLack> ended_chains = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
