#include "symbolize/elf/call_convention.h"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>

namespace tacho::symbolize {
namespace {

constexpr int kMostLinks = 32;  // followed from one entry: to its abstract instance, or through typedefs
constexpr int kMostMembers = 4096;

bool is_typedef_or_qualifier(int tag) {
  constexpr std::array kTags = {DW_TAG_typedef,       DW_TAG_const_type,  DW_TAG_volatile_type,
                                DW_TAG_restrict_type, DW_TAG_atomic_type, DW_TAG_immutable_type};
  return std::ranges::find(kTags, tag) != kTags.end();
}

constexpr std::uint64_t kWord = 8, kMostInRegisters = 16;  // bytes
constexpr std::size_t kFloating = 8;                       // registers
constexpr int kDeepest = 16;                               // structs in structs
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;

}  // namespace

std::optional<TypeView::Found> TypeView::find_attribute(Dwarf_Die die, unsigned name) const {
  for (int left = kMostLinks; left > 0; --left) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&die, name, &attribute) != nullptr) return Found{attribute, die};
    Dwarf_Die origin{};
    if (!file_->follow(die, DW_AT_abstract_origin, origin) &&
        !file_->follow(die, DW_AT_specification, origin))
      return std::nullopt;
    die = origin;
  }
  return std::nullopt;
}

std::string_view TypeView::text(Dwarf_Die die, unsigned name) const {
  auto found = find_attribute(die, name);
  return found ? file_->text(found->owner, name) : std::string_view{};
}

bool TypeView::follow(Dwarf_Die die, unsigned name, Dwarf_Die& target) const {
  auto found = find_attribute(die, name);
  return found && file_->follow(found->owner, name, target);
}

bool TypeView::has(Dwarf_Die die, unsigned name) const { return find_attribute(die, name).has_value(); }

std::optional<std::uint64_t> TypeView::number(Dwarf_Die die, unsigned name) const {
  auto found = find_attribute(die, name);
  Dwarf_Word value = 0;
  if (!found || dwarf_formudata(&found->attribute, &value) != 0) return std::nullopt;
  return value;
}

std::optional<Dwarf_Die> TypeView::type_of(Dwarf_Die die) const {
  Dwarf_Die type{};
  if (!follow(die, DW_AT_type, type)) return std::nullopt;
  for (int left = kMostLinks; left > 0; --left) {
    if (!is_typedef_or_qualifier(dwarf_tag(&type))) return type;
    Dwarf_Die target{};
    if (!file_->follow(type, DW_AT_type, target)) return std::nullopt;
    type = target;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> TypeView::size_of(Dwarf_Die type) const {
  constexpr std::uint64_t kPointer = 8;
  if (is_pointer(type) || is_reference(type)) return kPointer;
  if (const auto size = number(type, DW_AT_byte_size)) return size;
  Dwarf_Word size = 0;  // libdw computes the size of an array
  if (dwarf_tag(&type) == DW_TAG_array_type && dwarf_aggregate_size(&type, &size) == 0) return size;
  return std::nullopt;
}

bool TypeView::is_struct(Dwarf_Die type) const {
  const int tag = dwarf_tag(&type);
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}
bool TypeView::is_pointer(Dwarf_Die type) const { return dwarf_tag(&type) == DW_TAG_pointer_type; }
bool TypeView::is_reference(Dwarf_Die type) const {
  return dwarf_tag(&type) == DW_TAG_reference_type || dwarf_tag(&type) == DW_TAG_rvalue_reference_type;
}

std::string TypeView::spelling_of(Dwarf_Die type, int left) const {
  if (left == 0) return "...";
  const int tag = dwarf_tag(&type);
  Dwarf_Die target{};
  const bool has_more = file_->follow(type, DW_AT_type, target);
  const std::string inner = has_more ? spelling_of(target, left - 1) : "void";
  switch (tag) {
    case DW_TAG_const_type:
      return inner.ends_with('*') ? inner + "const" : "const " + inner;
    case DW_TAG_volatile_type:
      return "volatile " + inner;
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
      return inner;
    case DW_TAG_pointer_type:
      return inner + (inner.ends_with('*') ? "*" : " *");
    case DW_TAG_reference_type:
      return inner + " &";
    case DW_TAG_rvalue_reference_type:
      return inner + " &&";
    case DW_TAG_array_type:
      return inner + "[]";
    case DW_TAG_subroutine_type:
      return "function";
    default:
      break;
  }
  const std::string_view name = file_->text(type, DW_AT_name);
  return std::string(!name.empty()                    ? name
                     : tag == DW_TAG_structure_type   ? "struct"
                     : tag == DW_TAG_union_type       ? "union"
                     : tag == DW_TAG_enumeration_type ? "enum"
                                                      : "?");
}

std::string TypeView::name_of(Dwarf_Die die) const {
  constexpr int kDeepestSpelling = 8;
  constexpr std::size_t kLongest = 60;
  Dwarf_Die type{};
  std::string name = follow(die, DW_AT_type, type) ? spelling_of(type, kDeepestSpelling) : "void";
  if (name.size() > kLongest) name = name.substr(0, kLongest - 3) + "...";
  return name;
}

bool TypeView::may_visit(Dwarf_Die& child) const {
  left_ -= std::min(left_, cost_of(child));
  return !is_spent();
}

void TypeView::each_function(Dwarf_Die type, const std::function<bool(Dwarf_Die)>& visit) const {
  each_child(type, kMostMembers, [&](Dwarf_Die& child) {
    return may_visit(child) && (dwarf_tag(&child) != DW_TAG_subprogram || visit(child));
  });
}

void TypeView::each_member(Dwarf_Die type, const std::function<bool(const Member&)>& visit) const {
  each_child(type, kMostMembers, [&](Dwarf_Die& child) {
    if (!may_visit(child)) return false;
    const int tag = dwarf_tag(&child);
    const bool is_static = has(child, DW_AT_external) || has(child, DW_AT_declaration);
    if ((tag != DW_TAG_member || is_static) && tag != DW_TAG_inheritance) return true;
    Member member;
    member.die = child;
    if (tag == DW_TAG_member) member.name = text(child, DW_AT_name);
    const auto at = number(child, DW_AT_data_member_location);
    member.offset = at.value_or(0);
    const bool is_computed = !at && has(child, DW_AT_data_member_location);
    member.is_bits = has(child, DW_AT_bit_size) || is_computed || has(child, DW_AT_virtuality);
    return visit(member);
  });
}

bool is_floating(std::uint64_t encoding) {
  return encoding == DW_ATE_float || encoding == DW_ATE_complex_float || encoding == DW_ATE_imaginary_float ||
         encoding == DW_ATE_decimal_float;
}

namespace {

constexpr std::array<std::string_view, 16> kGeneralX86{"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                                       "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                                       "r12", "r13", "r14", "r15"};
constexpr std::array<std::string_view, 6> kArgumentsX86{"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
constexpr CallRules kRulesX86{kGeneralX86, kArgumentsX86, "rsp", 7, 8, false};

constexpr std::array<std::string_view, 31> kGeneralArm{"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
                                                       "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
                                                       "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
                                                       "x24", "x25", "x26", "x27", "x28", "x29", "x30"};
constexpr CallRules kRulesArm{kGeneralArm, std::span(kGeneralArm).first(8), "sp", 31, 0, true};

}  // namespace

const CallRules& call_rules_of(const DwarfFile& file) {
  GElf_Ehdr header;
  const bool is_arm64 =
      gelf_getehdr(file.image().elf(), &header) != nullptr && header.e_machine == EM_AARCH64;
  return is_arm64 ? kRulesArm : kRulesX86;
}

bool follows_convention(int language) {
  constexpr std::array kLanguages = {DW_LANG_C_plus_plus,    DW_LANG_C_plus_plus_03, DW_LANG_C_plus_plus_11,
                                     DW_LANG_C_plus_plus_14, DW_LANG_ObjC,           DW_LANG_ObjC_plus_plus};
  constexpr int kCPlusPlus17 = 0x2a, kC17 = 0x2c;  // DWARF 6, and C++20 between them
  return has_unmangled_names(language) || std::ranges::find(kLanguages, language) != kLanguages.end() ||
         (language >= kCPlusPlus17 && language <= kC17);
}

CallConvention::CallConvention(const TypeView& types, std::optional<Dwarf_Die> returned)
    : types_(&types), stack_(types.rules().return_address) {
  if (!returned || types.rules().is_arm64) return;  // arm64 has x8 for the address of the result
  const auto classes = classes_of(*returned, false);
  if (!classes) {
    is_type_unknown_ = types.is_struct(*returned);
  } else if (classes->is_address ||
             (classes->words.empty() && classes->size != 0 && types.is_struct(*returned))) {
    general_ = 1;  // rdi holds the address for the result
  }
}

// Classifies the one or two words of the value. False: it is passed in memory.
bool CallConvention::classify_number(Dwarf_Die type, std::uint64_t at, std::uint64_t size,
                                     Classes& out) const {
  const std::uint64_t encoding = types_->number(type, DW_AT_encoding).value_or(0);
  const bool is_extended = types_->text(type, DW_AT_name).find("long double") != std::string_view::npos;
  if (is_extended && is_floating(encoding)) {
    out.alignment = kMostInRegisters;
    return false;
  }
  if (at % std::min(std::max<std::uint64_t>(size, 1), kMostInRegisters) != 0 && size <= kWord) return false;
  const Class kind = is_floating(encoding) ? Class::Float : Class::Integer;
  for (std::uint64_t word = at / kWord; word < (at + size + kWord - 1) / kWord && word < out.words.size();
       ++word)
    if (out.words[word] != Class::Integer) out.words[word] = kind;
  if (size > kWord) out.alignment = kMostInRegisters;
  return true;
}

bool CallConvention::classify_members(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const {
  bool is_in_registers = true;
  types_->each_member(type, [&](const TypeView::Member& member) {
    if (member.is_bits) {
      const std::uint64_t word = (at + member.offset) / kWord;
      for (std::uint64_t i = word; i < out.words.size() && i <= word + 1; ++i)
        if (out.words[i] == Class::None) out.words[i] = Class::Integer;
      return true;
    }
    const auto inner = types_->type_of(member.die);
    is_in_registers = inner && classify(*inner, at + member.offset, out, left - 1);
    return is_in_registers;
  });
  return is_in_registers;
}

bool CallConvention::classify(Dwarf_Die type, std::uint64_t at, Classes& out, int left) const {
  const auto size = types_->size_of(type);
  if (left == 0 || !size || *size > kMostInRegisters || at + *size > kMostInRegisters) return false;
  if (types_->is_struct(type)) return classify_members(type, at, out, left);
  if (dwarf_tag(&type) != DW_TAG_array_type) return classify_number(type, at, *size, out);
  const auto element = types_->type_of(type);
  if (!element) return false;
  if (types_->has(type, DW_AT_GNU_vector)) {
    for (std::uint64_t word = at / kWord; word < out.words.size(); ++word) out.words[word] = Class::Float;
    return true;
  }
  const std::uint64_t step = types_->size_of(*element).value_or(0);
  for (std::uint64_t i = 0; step != 0 && i + step <= *size; i += step)
    if (!classify(*element, at + i, out, left - 1)) return false;
  return true;
}

// A C++ struct with a destructor, its own or a member's. clang says it in DWARF (DW_AT_calling_convention),
// gcc does not.
bool CallConvention::is_passed_by_address(Dwarf_Die type, int left) const {
  if (left == 0 || !types_->is_struct(type)) return false;
  if (const auto convention = types_->number(type, DW_AT_calling_convention))
    return *convention == std::uint64_t{DW_CC_pass_by_reference};
  bool is_found = false;
  types_->each_function(type, [&](Dwarf_Die function) {
    const bool is_the_compilers =
        types_->has(function, DW_AT_defaulted) || types_->has(function, DW_AT_artificial);
    is_found = !is_the_compilers && types_->text(function, DW_AT_name).starts_with('~');
    return !is_found;
  });
  if (is_found) return true;
  types_->each_member(type, [&](const TypeView::Member& member) {
    const auto inner = types_->type_of(member.die);
    is_found = inner && is_passed_by_address(*inner, left - 1);
    return !is_found;
  });
  return is_found;
}

std::optional<CallConvention::Classes> CallConvention::classes_of(Dwarf_Die type, bool is_address) const {
  Classes out;
  const auto size = types_->size_of(type);
  if (!size || *size > kLargest) return std::nullopt;
  out.size = *size;
  if (is_address || is_passed_by_address(type, kDeepest)) {
    out.is_address = true;
    out.words = {Class::Integer};
    return out;
  }
  if (*size > kMostInRegisters) return out;
  out.words.assign((*size + kWord - 1) / kWord, Class::None);
  if (!classify(type, 0, out, kDeepest)) out.words.clear();
  return out;
}

ValueLocation CallConvention::put_on_stack(const Classes& classes) {
  const auto alignment = static_cast<std::int64_t>(classes.alignment);
  // The stack pointer before the call was a multiple of 16.
  const std::int64_t base = types_->rules().return_address;
  stack_ = (stack_ - base + alignment - 1) / alignment * alignment + base;
  ValueLocation location{.registers = {}, .on_stack = stack_, .is_address = classes.is_address};
  const std::uint64_t size = classes.is_address ? kWord : classes.size;
  stack_ += static_cast<std::int64_t>((size + kWord - 1) / kWord * kWord);
  return location;
}

bool CallConvention::is_all_floats(Dwarf_Die type, std::uint64_t& size, std::size_t& count, int left) const {
  constexpr std::size_t kMost = 4;
  if (left == 0) return false;
  if (types_->is_struct(type)) {
    bool is_whole = true;
    types_->each_member(type, [&](const TypeView::Member& member) {
      const auto inner = member.is_bits ? std::nullopt : types_->type_of(member.die);
      return is_whole = inner && is_all_floats(*inner, size, count, left - 1);
    });
    return is_whole && count != 0;
  }
  const std::uint64_t own = types_->size_of(type).value_or(0);
  if (dwarf_tag(&type) == DW_TAG_array_type && !types_->has(type, DW_AT_GNU_vector)) {
    const auto element = types_->type_of(type);
    const std::uint64_t step = element ? types_->size_of(*element).value_or(0) : 0;
    if (step == 0 || own / step > kMost) return false;
    for (std::uint64_t i = 0; i < own / step; ++i)
      if (!is_all_floats(*element, size, count, left - 1)) return false;
    return own != 0;
  }
  const bool is_float =
      types_->has(type, DW_AT_GNU_vector) || is_floating(types_->number(type, DW_AT_encoding).value_or(0));
  if (!is_float || (count != 0 && own != size)) return false;
  size = own;
  return ++count <= kMost;
}

// AAPCS64, 6.8.2: an argument for which the registers do not suffice is on the stack, and so are all later
// ones of its kind.
ValueLocation CallConvention::next_of_arm64(Dwarf_Die type, Classes classes) {
  ValueLocation location{.registers = {}, .on_stack = std::nullopt, .is_address = classes.is_address};
  const auto arguments = types_->rules().arguments;
  std::uint64_t member = 0;
  std::size_t floats = 0;
  if (classes.size == 0) return location;
  if (!classes.is_address && is_all_floats(type, member, floats, kDeepest)) {
    if (floating_ + floats > kFloating) {
      floating_ = kFloating;
      return put_on_stack(classes);
    }
    floating_ += floats;
    location.registers.assign(floats, {{}, member});
    return location;
  }
  if (classes.size > kMostInRegisters) classes.is_address = true;
  location.is_address = classes.is_address;
  std::uint64_t left = classes.is_address ? kWord : classes.size;
  const auto words = static_cast<std::size_t>((left + kWord - 1) / kWord);
  if (classes.alignment > kWord && words > 1) general_ += general_ % 2;
  if (general_ + words > arguments.size()) {
    general_ = arguments.size();
    return put_on_stack(classes);
  }
  for (std::size_t i = 0; i < words; ++i, left -= std::min(left, kWord))
    location.registers.push_back({arguments[general_++], std::min(left, kWord)});
  return location;
}

std::optional<ValueLocation> CallConvention::next_location(std::optional<Dwarf_Die> type, bool is_address) {
  const auto classes = type && !is_type_unknown_ ? classes_of(*type, is_address) : std::nullopt;
  if (!classes || types_->is_spent()) {
    is_type_unknown_ = true;
    return std::nullopt;
  }
  if (types_->rules().is_arm64) return next_of_arm64(*type, *classes);
  if (classes->words.empty()) return classes->size == 0 ? ValueLocation{} : put_on_stack(*classes);
  const bool is_vector = types_->has(*type, DW_AT_GNU_vector);
  const auto arguments = types_->rules().arguments;
  const auto count_of = [&](Class one) {
    return static_cast<std::size_t>(std::ranges::count(classes->words, one));
  };
  const std::size_t general = count_of(Class::Integer), floating = is_vector ? 1 : count_of(Class::Float);
  if (general == 0 && floating == 0) return ValueLocation{};  // an empty struct
  if (general_ + general > arguments.size() || floating_ + floating > kFloating)
    return put_on_stack(*classes);
  ValueLocation location{.registers = {}, .on_stack = std::nullopt, .is_address = classes->is_address};
  std::uint64_t left = classes->is_address ? kWord : classes->size;
  for (const Class word : classes->words) {
    const std::uint64_t bytes = std::min(left, kWord);
    location.registers.push_back(
        {word == Class::Integer ? arguments[general_++] : std::string_view{}, bytes});
    left -= bytes;
  }
  floating_ += floating;
  return location;
}

}  // namespace tacho::symbolize
