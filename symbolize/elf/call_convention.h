// Where the System V calling convention of x86-64 puts values, by their types in DWARF.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/elf/dwarf_file.h"

namespace tacho::symbolize {

// Types as DWARF describes them, as far as it takes to find a value in memory or registers.

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

// The System V calling convention of x86-64: registers and stack slots of arguments, by their types.

// Where a value is: in registers, one after another, or in memory.
struct ValueLocation {
  struct Part {
    std::string_view name;  // "rdi"; empty: in a register for floating point numbers
    std::uint64_t bytes = 8;
  };
  std::vector<Part> registers;
  std::optional<std::int64_t> on_stack;  // bytes from the stack pointer
  bool is_address = false;               // what is there is the address of the value, a struct of C++
};

// DWARF's number of a general register as its name; empty for others.
std::string_view general_register(std::uint64_t number);

// Whether DW_ATE_* is one of floating point numbers.
bool is_floating(std::uint64_t encoding);

// Whether functions of this language (DW_LANG_*) follow it.
bool follows_convention(int language);

// Assigns registers and stack slots to arguments in order.
class CallConvention {
 public:
  // `returned`: the type of what the function returns; it may take the first register.
  CallConvention(const TypeView& types, std::optional<Dwarf_Die> returned);
  // The next argument; nothing where its type is unknown, and then every later one is unknown too.
  // `is_address`: it is known that it is passed by its address.
  std::optional<ValueLocation> next(std::optional<Dwarf_Die> type, bool is_address = false);

 private:
  enum class Class : std::uint8_t { None, Integer, Float };
  struct Classes {
    std::vector<Class> words;  // none: it is in memory
    std::uint64_t size = 0, alignment = 8;
    bool is_address = false;
  };
  std::optional<Classes> classes_of(Dwarf_Die type, bool is_address) const;
  bool is_passed_by_address(Dwarf_Die type, int left) const;
  bool classify(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const;
  bool classify_number(Dwarf_Die type, std::uint64_t at, std::uint64_t size, Classes& out) const;
  bool classify_members(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const;
  ValueLocation put_on_stack(const Classes& classes);

  const TypeView* types_;
  std::size_t general_ = 0, floating_ = 0;  // registers that are taken
  std::int64_t stack_ = 8;                  // behind the address to return to
  bool is_lost_ = false;
};

}  // namespace tacho::symbolize
