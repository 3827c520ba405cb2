// Symbolizer: converts (mapping, address) to frames. Chooses and caches symbol sources, and reports missing
// symbols.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
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

// The origin of an address.
enum class Origin : std::uint8_t {
  Alone,    // the sample's own address: always one frame
  Chain,    // of a call chain recorded by the kernel
  Unwound,  // of a call chain unwound from a stack copy
};

// Return: of a return address, function, inlined calls and line are those of the byte before it, in the call
// instruction; the shown address is unchanged.
enum class AddressKind : std::uint8_t { Instruction, Return };

// All facts about an address, before options select from them: for packing.
struct LocationFacts {
  const Module* module = nullptr;  // null: nothing is mapped there
  SymbolSource* source = nullptr;  // null: only the module is known
  std::optional<Symbol> symbol;    // in shown addresses; with the linker's name
  std::uint64_t shown_address = 0, elf_address = 0;
  LineSource* lines = nullptr;  // null: there are none, or they are in the packed source
  bool is_bpf_text = false;     // a BPF trampoline or dispatcher, known from kallsyms only
};

class Symbolizer {
 public:
  // `features`: for attachments. All arguments must outlive the symbolizer; `jit` may be null. Symbol sources
  // are opened when first needed.
  Symbolizer(SymbolOptions options, const format::Features& features, KernelSpace kernel,
             const JitCode* jit = nullptr);
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // The frames at `ip`, innermost first: at least one, without a name if it is unknown, and more for inlined
  // calls, if the options and `origin` ask for them. `mapping`: of the byte that is looked up; may be null.
  // `cpumode` is copied to the frames. The result is valid until the next call; its strings and modules as
  // long as the symbolizer.
  std::span<const Frame> resolve(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode,
                                 Origin origin = Origin::Alone, AddressKind kind = AddressKind::Instruction);

  // The facts from which resolve() makes frames. Valid until the next call; strings and `source` as long as
  // this.
  LocationFacts facts(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode);

  // A module's packed symbols; null: none. Valid as long as this.
  PackedSource* packed(const Module& module);

  // The symbol at an address of the module's file here, also where names come from the capture: a capture
  // that was packed without code has no names for the targets of instructions. Nothing: the file is not here,
  // or has none there. The name is valid as long as this.
  struct SymbolInFile {
    std::string_view name;
    std::uint64_t offset = 0;  // of the address in the symbol
  };
  std::optional<SymbolInFile> symbol_in_file(const Module& module, format::ElfAddress address);

  // The source line of an instruction, by the debug information of the module's file here, also where names
  // come from the capture: a pack has lines of addresses that were sampled. `symbol`: its function. Nothing:
  // the file is not here, or has no line there. Texts are valid as long as this.
  struct LineInFile {
    std::string_view file, function, linker_name;  // the innermost inlined function
    std::uint32_t line = 0;
  };
  std::optional<LineInFile> line_in_file(const Module& module, format::ElfAddress address,
                                         const LinkerSymbol& symbol);

  // The MD5 sums of a source file when the module's program was compiled; empty: unknown.
  std::vector<Md5> source_sums(const Module& module, std::string_view file);
  // The highest line of a source file that code of the module comes from, as far as its debug information was
  // needed; 0: unknown.
  std::uint32_t last_source_line(const Module& module, std::string_view file);
  // When the module's program here was last changed, ns since 1970; nothing: it is not here, or another
  // build.
  std::optional<std::int64_t> program_time(const Module& module);

  // From now on frames have only modules and no functions, so no symbol file is read. WithModules::No:
  // modules of BPF and other generated kernel code are not looked up in kallsyms either.
  enum class WithModules : bool { No, Yes };
  void leave_names_out(WithModules modules);
  // Starts to read this machine's kallsyms in the background, if kernel names will come from it.
  void expect_kernel_code();
  // Whether frames of recorded chains have no inlined calls and no source lines, so that names_of() is
  // enough.
  bool names_are_plain() const;
  // The symbol table for addresses of a mapping, without inlined calls.
  struct Names {
    SymbolTable* table = nullptr;  // by shown address; null: there is none, or it takes several tables
    bool is_all = false;           // addresses that are not in the table have no name
  };
  // Valid as long as the symbolizer.
  Names names_of(const Mapping& mapping);

  // The addresses, [first, second), of the functions of an identity mapping (the kernel) with such names, in
  // any order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> functions_of(
      const Mapping& mapping, const std::function<bool(std::string_view name)>& is_wanted);

  // Reports each module whose missing names were needed, with the reason: "/usr/lib/libfoo.so: has another
  // build id, 4567...; build id 0123... was recorded". At most a thousand lines, then their number.
  // `ended_chains`: of an Unwinder; reported in the same lines.
  void report_missing(format::Diagnostics& diagnostics, std::span<const EndedChains> ended_chains = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::symbolize
