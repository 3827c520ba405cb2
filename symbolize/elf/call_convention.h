// The calling conventions of x86-64 (System V) and arm64 (AAPCS64), for types in DWARF.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/elf/dwarf_file.h"

namespace tacho::symbolize {

// What the convention of a machine says of registers.
struct CallRules {
  std::span<const std::string_view> general;    // by DWARF number: "rax", "rdx"; "x0", "x1"
  std::span<const std::string_view> arguments;  // of integer arguments, in order
  std::string_view stack_pointer;
  std::uint64_t stack_number;   // DWARF's number of the stack pointer
  std::int64_t return_address;  // bytes of it on the stack at a function's entry
  bool is_arm64;

  // Empty for other registers.
  std::string_view general_register(std::uint64_t number) const {
    return number < general.size() ? general[static_cast<std::size_t>(number)] : std::string_view{};
  }
};
// Of the file's machine; of another one those of x86-64.
const CallRules& call_rules_of(const DwarfFile& file);

// Reads types in DWARF, as far as is needed to find values in memory or registers.
class TypeView {
 public:
  // `file` must outlive this.
  explicit TypeView(const DwarfFile& file)
      : file_(&file), rules_(&call_rules_of(file)), left_(kAlways + 4 * file.image().size()) {}

  const CallRules& rules() const { return *rules_; }

  // Attributes of `die`. If it does not have one, that of the entry to which DW_AT_abstract_origin or
  // DW_AT_specification refers is used.
  std::string_view text(Dwarf_Die die, unsigned name) const;
  bool follow(Dwarf_Die die, unsigned name, Dwarf_Die& target) const;
  bool has(Dwarf_Die die, unsigned name) const;
  std::optional<std::uint64_t> number(Dwarf_Die die, unsigned name) const;

  // The type of a parameter, member or function, without typedefs and const; nothing: void, or unknown.
  std::optional<Dwarf_Die> type_of(Dwarf_Die die) const;
  // In bytes; nothing if unknown, for instance of a type that is only declared.
  std::optional<std::uint64_t> size_of(Dwarf_Die type) const;
  bool is_struct(Dwarf_Die type) const;  // or class, or union
  bool is_pointer(Dwarf_Die type) const;
  bool is_reference(Dwarf_Die type) const;  // of C++
  // "const struct request *", shortened if it is long.
  std::string name_of(Dwarf_Die die) const;

  // Visits the members of a struct in order, base classes included (with an empty name). Stops when `visit`
  // returns false.
  struct Member {
    Dwarf_Die die{};
    std::string_view name;
    std::uint64_t offset = 0;  // bytes
    bool is_bits = false;      // a bit field, or a member whose offset is computed
  };
  void each_member(Dwarf_Die type, const std::function<bool(const Member&)>& visit) const;

  // Visits the functions of a class. Stops when `visit` returns false.
  void each_function(Dwarf_Die type, const std::function<bool(Dwarf_Die)>& visit) const;

  // Whether more members and functions were visited than a file of its size may have: then each_member() and
  // each_function() visit no more. In a hostile file a struct may have ten members of its own type.
  bool is_spent() const { return left_ == 0; }

 private:
  static constexpr std::size_t kAlways = std::size_t{1} << 20;  // attributes

  struct Found {
    Dwarf_Attribute attribute;
    Dwarf_Die owner;  // the entry that has it
  };
  std::optional<Found> find_attribute(Dwarf_Die die, unsigned name) const;
  std::string spelling_of(Dwarf_Die type, int left) const;
  bool may_visit(Dwarf_Die& child) const;

  const DwarfFile* file_;
  const CallRules* rules_;
  mutable std::size_t left_;  // attributes of members and functions that may still be visited
};

// Location of a value: in registers, from its first bytes on, or in memory.
struct ValueLocation {
  struct Part {
    std::string_view name;  // "rdi"; empty: a floating-point register
    std::uint64_t bytes = 8;
  };
  std::vector<Part> registers;
  std::optional<std::int64_t> on_stack;  // offset in bytes from the stack pointer
  bool is_address = false;               // the location holds the address of the value, a C++ struct
};

// Whether a DW_ATE_* encoding is a floating-point number.
bool is_floating(std::uint64_t encoding);

// Whether functions of this language (DW_LANG_*) follow the convention.
bool follows_convention(int language);

// Assigns registers and stack slots to arguments by their types, in order.
class CallConvention {
 public:
  // `returned`: the return type; a large one takes the first register of x86-64, for its address.
  CallConvention(const TypeView& types, std::optional<Dwarf_Die> returned);
  // Location of the next argument. Nothing if its type is unknown; then all later ones are unknown too.
  // `is_address`: the caller knows that it is passed by address.
  std::optional<ValueLocation> next_location(std::optional<Dwarf_Die> type, bool is_address = false);

 private:
  enum class Class : std::uint8_t { None, Integer, Float };
  struct Classes {
    std::vector<Class> words;  // empty: in memory
    std::uint64_t size = 0, alignment = 8;
    bool is_address = false;
  };
  std::optional<Classes> classes_of(Dwarf_Die type, bool is_address) const;
  bool is_passed_by_address(Dwarf_Die type, int left) const;
  bool classify(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const;
  bool classify_number(Dwarf_Die type, std::uint64_t at, std::uint64_t size, Classes& out) const;
  bool classify_members(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const;
  // Whether a struct has 1 to 4 floating-point members of one size, and nothing else: arm64 passes each in a
  // register. `size` and `count`: of those so far.
  bool is_all_floats(Dwarf_Die type, std::uint64_t& size, std::size_t& count, int left) const;
  ValueLocation next_of_arm64(Dwarf_Die type, Classes classes);
  ValueLocation put_on_stack(const Classes& classes);

  const TypeView* types_;
  std::size_t general_ = 0, floating_ = 0;  // registers in use
  std::int64_t stack_;                      // offset from the stack pointer at the entry
  bool is_type_unknown_ = false;            // of an argument before
};

}  // namespace tacho::symbolize
