// The names that were packed into a capture, by module.
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

// Code that was packed piece by piece, as it is read again.

// Joins pieces that overlap or follow each other; of bytes that several have, the first one's
// stay. Pieces must be ascending by their start, and their bytes in the module's `code_bytes`.
void join_code(format::PackedModule& module);

// One module's. Addresses are as perf prints them; addresses that were not packed are unknown.
class PackedSource {
 public:
  // Both must outlive it.
  PackedSource(const format::PackedModule& module, const format::PackTexts& texts)
      : module_(&module), texts_(&texts) {}

  bool is(std::uint8_t flag) const { return (module_->flags & flag) != 0; }  // format::PackedModule::k...
  std::uint8_t letter() const { return module_->letter; }
  // `unnamed`: what is done with ranges that have no names, at the first question.
  SymbolTable& table(Unnamed unnamed = Unnamed::Functions);
  std::string_view lack() const { return text(module_->lack); }  // why names are missing
  std::uint64_t elf_address_of(std::uint64_t address) const;
  // As DwarfLines::find(): none when nothing is known.
  void list_calls_at(std::uint64_t address, const LinkerSymbol& symbol, StandIn stand_in,
                     std::vector<Call>& calls);

  // Instructions from a shown address on, at most `size` bytes; empty where none were packed.
  format::Bytes code_at(std::uint64_t address, std::size_t size) const;
  bool is_64_bit() const { return module_->is_64_bit; }

  // What was packed: null for an address that was not.
  const format::PackedAddress* at(std::uint64_t address) const;
  std::span<const format::PackedAddress> addresses() const { return module_->addresses; }
  std::string_view text(std::uint32_t number) const { return (*texts_)[number]; }
  // By a number below the module's functions.
  InlineFunction& function(std::uint32_t number);

 private:
  const format::PackedModule* module_;
  const format::PackTexts* texts_;
  std::optional<SymbolTable> table_;
  std::vector<InlineFunction> functions_;
};

class PackedNames {
 public:
  // `section` may be empty, and must outlive this. Nothing is unpacked before it is asked for.
  explicit PackedNames(const std::vector<std::byte>& section) : section_(&section) {}

  // Null: nothing of it was packed. As long as this.
  PackedSource* find(ModuleKind kind, std::string_view path, const format::BuildId& id);
  // Whether the kernel's own names are there.
  bool has_kernel();
  // Why the section cannot be used; empty when it can, or there is none.
  const std::string& lack() const { return lack_; }

 private:
  void open();

  struct Key {
    ModuleKind kind;
    std::string_view path;
    format::BuildId id;
    auto operator<=>(const Key&) const = default;
  };
  // There is one kernel, whatever the recorder called it.
  static Key key_of(ModuleKind kind, std::string_view path, const format::BuildId& id) {
    return {kind, kind == ModuleKind::Kernel ? std::string_view() : path, id};
  }
  const std::vector<std::byte>* section_;
  bool is_open_ = false;
  format::SymbolPack pack_;
  std::map<Key, PackedSource> sources_;
  std::string lack_;
};

}  // namespace tacho::symbolize
