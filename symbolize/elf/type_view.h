// Types as DWARF describes them, as far as it takes to find a value in memory or registers.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "symbolize/elf/dwarf_file.h"

namespace tacho::symbolize {

class TypeView {
 public:
  // `file` must outlive this.
  explicit TypeView(const DwarfFile& file) : file_(&file) {}

  // The attribute's own text or entry, or that of what the entry is an instance of (DW_AT_abstract_origin,
  // DW_AT_specification).
  std::string_view text(Dwarf_Die die, unsigned name) const;
  bool follow(Dwarf_Die die, unsigned name, Dwarf_Die& target) const;
  bool has(Dwarf_Die die, unsigned name) const;
  std::optional<std::uint64_t> number(Dwarf_Die die, unsigned name) const;

  // The type of a parameter, member or function behind its names and const; nothing: void, or unknown.
  std::optional<Dwarf_Die> type_of(Dwarf_Die die) const;
  // Bytes; nothing where it is unknown, as of a type that is only declared.
  std::optional<std::uint64_t> size_of(Dwarf_Die type) const;
  bool is_struct(Dwarf_Die type) const;  // or class, or union
  bool is_pointer(Dwarf_Die type) const;
  bool is_reference(Dwarf_Die type) const;  // of C++
  // "const struct request *", as far as it is short.
  std::string name_of(Dwarf_Die die) const;

  // What a struct is made of in order, base classes among them with an empty name; `at` in bytes from its
  // begin. Ends when `seen` says false.
  struct Member {
    Dwarf_Die die{};
    std::string_view name;
    std::uint64_t at = 0;
    bool is_bits = false;  // a bit field, or where it stands is computed
  };
  void each_member(Dwarf_Die type, const std::function<bool(const Member&)>& seen) const;

  // The functions of a class. Ends likewise.
  void each_function(Dwarf_Die type, const std::function<bool(Dwarf_Die)>& seen) const;

 private:
  bool attribute(Dwarf_Die die, unsigned name, Dwarf_Attribute& out, Dwarf_Die& owner) const;
  std::string words_of(Dwarf_Die type, int left) const;

  const DwarfFile* file_;
};

}  // namespace tacho::symbolize
