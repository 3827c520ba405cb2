#include "symbolize/elf/type_view.h"

#include <dwarf.h>

#include <algorithm>
#include <array>

namespace tacho::symbolize {
namespace {

constexpr int kMostReferences = 32;  // entries from an instance to its first description, or behind typedefs
constexpr int kMostMembers = 4096;

bool is_only_a_name(int tag) {
  constexpr std::array kTags = {DW_TAG_typedef,       DW_TAG_const_type,  DW_TAG_volatile_type,
                                DW_TAG_restrict_type, DW_TAG_atomic_type, DW_TAG_immutable_type};
  return std::ranges::find(kTags, tag) != kTags.end();
}

}  // namespace

bool TypeView::attribute(Dwarf_Die die, unsigned name, Dwarf_Attribute& out, Dwarf_Die& owner) const {
  for (int left = kMostReferences; left > 0; --left) {
    if (dwarf_attr(&die, name, &out) != nullptr) {
      owner = die;
      return true;
    }
    Dwarf_Die origin{};
    if (!file_->follow(die, DW_AT_abstract_origin, origin) &&
        !file_->follow(die, DW_AT_specification, origin))
      return false;
    die = origin;
  }
  return false;
}

std::string_view TypeView::text(Dwarf_Die die, unsigned name) const {
  Dwarf_Attribute unused;
  Dwarf_Die owner{};
  return attribute(die, name, unused, owner) ? file_->text(owner, name) : std::string_view{};
}

bool TypeView::follow(Dwarf_Die die, unsigned name, Dwarf_Die& target) const {
  Dwarf_Attribute unused;
  Dwarf_Die owner{};
  return attribute(die, name, unused, owner) && file_->follow(owner, name, target);
}

bool TypeView::has(Dwarf_Die die, unsigned name) const {
  Dwarf_Attribute unused;
  Dwarf_Die owner{};
  return attribute(die, name, unused, owner);
}

std::optional<std::uint64_t> TypeView::number(Dwarf_Die die, unsigned name) const {
  Dwarf_Attribute found;
  Dwarf_Die owner{};
  Dwarf_Word value = 0;
  if (!attribute(die, name, found, owner) || dwarf_formudata(&found, &value) != 0) return std::nullopt;
  return value;
}

std::optional<Dwarf_Die> TypeView::type_of(Dwarf_Die die) const {
  Dwarf_Die type{};
  if (!follow(die, DW_AT_type, type)) return std::nullopt;
  for (int left = kMostReferences; left > 0; --left) {
    if (!is_only_a_name(dwarf_tag(&type))) return type;
    Dwarf_Die behind{};
    if (!file_->follow(type, DW_AT_type, behind)) return std::nullopt;
    type = behind;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> TypeView::size_of(Dwarf_Die type) const {
  constexpr std::uint64_t kPointer = 8;
  if (is_pointer(type) || is_reference(type)) return kPointer;
  if (const auto size = number(type, DW_AT_byte_size)) return size;
  Dwarf_Word size = 0;  // of arrays libdw counts the elements
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

std::string TypeView::words_of(Dwarf_Die type, int left) const {
  if (left == 0) return "...";
  const int tag = dwarf_tag(&type);
  Dwarf_Die behind{};
  const bool has_more = file_->follow(type, DW_AT_type, behind);
  const std::string inner = has_more ? words_of(behind, left - 1) : "void";
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
  const std::string_view kind = tag == DW_TAG_structure_type     ? "struct"
                                : tag == DW_TAG_union_type       ? "union"
                                : tag == DW_TAG_enumeration_type ? "enum"
                                                                 : "";
  if (name.empty()) return std::string(kind.empty() ? "?" : kind);
  return std::string(name);
}

std::string TypeView::name_of(Dwarf_Die die) const {
  constexpr int kDeepest = 8;
  constexpr std::size_t kLongest = 60;
  Dwarf_Die type{};
  std::string name = follow(die, DW_AT_type, type) ? words_of(type, kDeepest) : "void";
  if (name.size() > kLongest) name = name.substr(0, kLongest - 3) + "...";
  return name;
}

void TypeView::each_function(Dwarf_Die type, const std::function<bool(Dwarf_Die)>& seen) const {
  Dwarf_Die child{};
  if (dwarf_child(&type, &child) != 0) return;
  for (int left = kMostMembers; left > 0; --left) {
    if (dwarf_tag(&child) == DW_TAG_subprogram && !seen(child)) return;
    Dwarf_Die next{};
    if (dwarf_siblingof(&child, &next) != 0) return;
    child = next;
  }
}

void TypeView::each_member(Dwarf_Die type, const std::function<bool(const Member&)>& seen) const {
  Dwarf_Die child{};
  if (dwarf_child(&type, &child) != 0) return;
  for (int left = kMostMembers; left > 0; --left) {
    const int tag = dwarf_tag(&child);
    const bool is_static = has(child, DW_AT_external) || has(child, DW_AT_declaration);
    if ((tag == DW_TAG_member && !is_static) || tag == DW_TAG_inheritance) {
      Member member;
      member.die = child;
      if (tag == DW_TAG_member) member.name = text(child, DW_AT_name);
      const auto at = number(child, DW_AT_data_member_location);
      member.at = at.value_or(0);
      const bool is_computed = !at && has(child, DW_AT_data_member_location);
      member.is_bits = has(child, DW_AT_bit_size) || is_computed || has(child, DW_AT_virtuality);
      if (!seen(member)) return;
    }
    Dwarf_Die next{};
    if (dwarf_siblingof(&child, &next) != 0) return;
    child = next;
  }
}

}  // namespace tacho::symbolize
