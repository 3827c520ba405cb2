// The System V calling convention of x86-64: registers and stack slots of arguments, by their types.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "symbolize/elf/type_view.h"

namespace tacho::symbolize {

// Where a value is: in registers, one after another, or in memory.
struct ValuePlace {
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
  std::optional<ValuePlace> next(std::optional<Dwarf_Die> type, bool is_address = false);

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
  ValuePlace put_on_stack(const Classes& classes);

  const TypeView* types_;
  std::size_t general_ = 0, floating_ = 0;  // registers that are taken
  std::int64_t stack_ = 8;                  // behind the address to return to
  bool is_lost_ = false;
};

}  // namespace tacho::symbolize
