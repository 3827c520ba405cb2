// The symbol pack of a capture, by module.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "format/records/build_id.h"
#include "symbolize/elf/inline_calls.h"
#include "symbolize/frame.h"
#include "symbolize/names/symbol_table.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {

// Joins pieces of code that overlap or are adjacent; of overlapping bytes the first piece's are kept. Pieces
// must ascend by start; their bytes are in the module's `code_bytes`.
void join_code(format::PackedModule& module);

// The packed symbols of one module. Addresses are as perf prints them; addresses that were not packed are
// unknown.
class PackedSource {
 public:
  // The arguments must outlive this.
  PackedSource(const format::PackedModule& module, const format::PackTexts& texts)
      : module_(&module), texts_(&texts) {}

  bool is(std::uint8_t flag) const { return (module_->flags & flag) != 0; }  // format::PackedModule::k...
  std::uint8_t letter() const { return module_->letter; }
  // The symbols. `unnamed`: how functions without a name are shown; set by the first call.
  SymbolTable& table(Unnamed unnamed = Unnamed::Functions);
  std::string_view missing_reason() const { return text(module_->missing_reason); }  // why names are missing
  std::uint64_t elf_address_of(std::uint64_t address) const;
  // As LineSource::find_calls(); none: unknown.
  void list_calls_at(std::uint64_t address, const LinkerSymbol& symbol, UseSymbolName use_symbol_name,
                     std::vector<Call>& calls);

  // Instructions from a shown address on, at most `size` bytes; empty: not packed.
  format::Bytes code_at(std::uint64_t address, std::size_t size) const;
  bool is_64_bit() const { return module_->is_64_bit; }

  // The facts of a packed address; null: it was not packed.
  const format::PackedAddress* at(std::uint64_t address) const;
  std::span<const format::PackedAddress> addresses() const { return module_->addresses; }
  std::string_view text(std::uint32_t number) const { return (*texts_)[number]; }
  // A function of the module by its number.
  InlineFunction& function(std::uint32_t number);

 private:
  const format::PackedModule* module_;
  const format::PackTexts* texts_;
  std::optional<SymbolTable> table_;
  std::vector<InlineFunction> functions_;
};

class PackedNames {
 public:
  // `section` may be empty, and must outlive this. It is decompressed when first needed.
  explicit PackedNames(const std::vector<std::byte>& section) : section_(&section) {}

  // The module's packed symbols; null: none. Valid as long as this.
  PackedSource* find_source(ModuleKind kind, std::string_view path, const format::BuildId& id);
  // Whether the kernel's symbols are packed.
  bool has_kernel();
  // Why the section cannot be used; empty: it can, or there is none.
  const std::string& missing_reason() const { return missing_reason_; }

 private:
  struct Key {
    ModuleKind kind;
    std::string_view path;
    format::BuildId id;
    auto operator<=>(const Key&) const = default;
  };
  // The kernel's name is not part of the key, since there is only one.
  static Key key_of(ModuleKind kind, std::string_view path, const format::BuildId& id) {
    return {kind, kind == ModuleKind::Kernel ? std::string_view() : path, id};
  }
  // The modules of the section, which the first call opens.
  std::map<Key, PackedSource>& sources();

  const std::vector<std::byte>* section_;
  bool is_open_ = false;
  format::SymbolPack pack_;
  std::map<Key, PackedSource> sources_;
  std::string missing_reason_;
};

}  // namespace tacho::symbolize
