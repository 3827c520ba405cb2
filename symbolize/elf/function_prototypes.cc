#include "symbolize/elf/function_prototypes.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "symbolize/elf/call_convention.h"
#include "symbolize/elf/dwarf_file.h"
#include "symbolize/elf/type_view.h"

namespace tacho::symbolize {
namespace {

constexpr std::size_t kMostArguments = 64;
constexpr int kMostEnumerators = 4096, kMostChildren = 4096;

bool is_number_of(std::uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

bool is_signed(std::uint64_t encoding) { return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char; }
bool is_character(std::uint64_t encoding) {
  return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}
// The one register that holds all of a value, as its place among those for whole numbers.
std::uint8_t word_of(const ValuePlace& place) {
  constexpr std::array<std::string_view, 6> kArguments{"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
  if (place.on_stack || place.registers.size() != 1) return Argument::kNowhere;
  const auto found = std::ranges::find(kArguments, place.registers.front().name);
  return found == kArguments.end() ? Argument::kNowhere
                                   : static_cast<std::uint8_t>(found - kArguments.begin());
}

// For an entry that is stepped over.
void charge(Dwarf_Die& die, DwarfBudget& budget) {
  std::size_t attributes = 1;
  if (dwarf_tag(&die) != DW_TAG_invalid) dwarf_getattrcnt(die.abbrev, &attributes);
  budget.attributes -= std::min(budget.attributes, attributes + 1);
}

}  // namespace

struct FunctionPrototypes::State {
  explicit State(DwarfFile file) : dwarf(std::move(file)), types(dwarf) {}

  DwarfFile dwarf;
  TypeView types;
  // By the offsets of their entries in the file.
  mutable std::unordered_map<Dwarf_Off, std::shared_ptr<const EnumNames>> enumerations;

  std::uint64_t encoding_of(Dwarf_Die type) const { return types.number(type, DW_AT_encoding).value_or(0); }
  bool is_text(Dwarf_Die pointer) const;
  std::shared_ptr<const EnumNames> names_of(Dwarf_Die enumeration, DwarfBudget& budget) const;
  std::optional<ValueType> value_type(Dwarf_Die of, DwarfBudget& budget) const;
  Prototype prototype_of(Dwarf_Die function, DwarfBudget& budget) const;
};

// uint8_t and its like are numbers: char alone has the name.
bool FunctionPrototypes::State::is_text(Dwarf_Die pointer) const {
  const auto target = types.type_of(pointer);
  return target && dwarf_tag(&const_cast<Dwarf_Die&>(*target)) == DW_TAG_base_type &&
         is_character(encoding_of(*target)) && types.text(*target, DW_AT_name) == "char";
}

std::shared_ptr<const EnumNames> FunctionPrototypes::State::names_of(Dwarf_Die enumeration,
                                                                     DwarfBudget& budget) const {
  auto& known = enumerations[dwarf_dieoffset(&enumeration)];
  if (known) return known;
  EnumNames names;
  Dwarf_Die child{};
  bool has_more = dwarf_child(&enumeration, &child) == 0;
  for (int left = kMostEnumerators; has_more && left > 0 && budget.attributes > 0; --left) {
    charge(child, budget);
    Dwarf_Attribute attribute;
    Dwarf_Sword value = 0;
    const std::string_view name = types.text(child, DW_AT_name);
    if (dwarf_tag(&child) == DW_TAG_enumerator && !name.empty() &&
        dwarf_attr(&child, DW_AT_const_value, &attribute) != nullptr &&
        dwarf_formsdata(&attribute, &value) == 0)
      names.emplace_back(value, name);
    has_more = dwarf_siblingof(&child, &child) == 0;
  }
  return known = std::make_shared<const EnumNames>(std::move(names));
}

// Of a parameter or function; nothing: void, or unknown.
std::optional<ValueType> FunctionPrototypes::State::value_type(Dwarf_Die of, DwarfBudget& budget) const {
  using Kind = ValueType::Kind;
  auto type = types.type_of(of);
  if (!type) return std::nullopt;
  ValueType value;
  value.name = types.name_of(of);
  const int tag = dwarf_tag(&*type);
  if (types.is_pointer(*type) || types.is_reference(*type)) {
    value.kind = types.is_pointer(*type) && is_text(*type) ? Kind::Text : Kind::Pointer;
    return value;
  }
  const auto bytes = types.size_of(*type);
  if (bytes && is_number_of(*bytes)) value.bytes = static_cast<std::uint8_t>(*bytes);
  if (tag == DW_TAG_enumeration_type && bytes && is_number_of(*bytes)) {
    value.kind = Kind::Enumeration;
    value.names = names_of(*type, budget);
  } else if (tag != DW_TAG_base_type || !bytes) {
    value.kind = Kind::Struct;
  } else if (const std::uint64_t encoding = encoding_of(*type); is_floating(encoding)) {
    value.kind = Kind::Floating;
  } else if (!is_number_of(*bytes)) {
    value.kind = Kind::Struct;  // __int128
  } else if (encoding == DW_ATE_boolean) {
    value.kind = Kind::Bool;
  } else if (*bytes == 1 && is_character(encoding) && value.name.ends_with("char") &&
             value.name.find("signed") == std::string::npos) {
    value.kind = Kind::Character;
  } else {
    value.kind = is_signed(encoding) ? Kind::Signed : Kind::Unsigned;
  }
  return value;
}

Prototype FunctionPrototypes::State::prototype_of(Dwarf_Die function, DwarfBudget& budget) const {
  Prototype prototype;
  const auto returned = types.type_of(function);
  CallConvention convention(types, returned);
  prototype.returned = value_type(function, budget);
  if (prototype.returned && (prototype.returned->kind == ValueType::Kind::Floating ||
                             prototype.returned->kind == ValueType::Kind::Struct))
    prototype.returned.reset();
  Dwarf_Die child{};
  bool has_more = dwarf_child(&function, &child) == 0;
  for (int left = kMostChildren; has_more && left > 0 && budget.attributes > 0; --left) {
    if (prototype.arguments.size() == kMostArguments) break;
    charge(child, budget);
    if (dwarf_tag(&child) == DW_TAG_formal_parameter) {
      Argument argument{.name = std::string(types.text(child, DW_AT_name)), .type = {}};
      const auto place = convention.next(types.type_of(child));
      if (auto type = value_type(child, budget)) {
        argument.type = std::move(*type);
      } else {
        argument.type.kind = ValueType::Kind::Struct;
      }
      const bool is_one =
          argument.type.kind != ValueType::Kind::Struct && argument.type.kind != ValueType::Kind::Floating;
      if (place && !place->is_address && is_one) argument.word = word_of(*place);
      prototype.arguments.push_back(std::move(argument));
    }
    has_more = dwarf_siblingof(&child, &child) == 0;
  }
  return prototype;
}

FunctionPrototypes::FunctionPrototypes(std::unique_ptr<State> state) : state_(std::move(state)) {}
FunctionPrototypes::FunctionPrototypes(FunctionPrototypes&&) noexcept = default;
FunctionPrototypes::~FunctionPrototypes() = default;

Result<FunctionPrototypes> FunctionPrototypes::open(format::Fd file) {
  auto dwarf = DwarfFile::open(file);
  if (!dwarf) return std::move(dwarf.error());
  return FunctionPrototypes(std::make_unique<State>(std::move(*dwarf)));
}

std::optional<SharedPart> FunctionPrototypes::shared_part() const { return state_->dwarf.shared_part(); }
Result<> FunctionPrototypes::use_shared_part(format::Fd file) { return state_->dwarf.use_shared_part(file); }

std::vector<std::optional<Prototype>> FunctionPrototypes::find(
    std::span<const format::ElfAddress> entries) const {
  std::vector<std::optional<Prototype>> found(entries.size());
  std::unordered_map<std::uint64_t, std::size_t> wanted;
  for (std::size_t i = 0; i < entries.size(); ++i) wanted.try_emplace(entries[i].value, i);
  DwarfBudget budget = DwarfBudget::of(state_->dwarf.image().size());
  Dwarf_CU* cu = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die unit{};
  while (!wanted.empty() && budget.units-- > 0 && budget.attributes > 0 &&
         dwarf_get_units(state_->dwarf.get(), cu, &cu, &version, &type, &unit, nullptr) == 0) {
    if (dwarf_tag(&unit) != DW_TAG_compile_unit || type == DW_UT_skeleton ||
        !follows_convention(dwarf_srclang(&unit)))
      continue;
    DieWalk walk(unit);
    while (!wanted.empty() && budget.attributes > 0 && walk.next()) {
      Dwarf_Die& die = walk.die();
      const int tag = dwarf_tag(&die);
      charge(die, budget);
      Dwarf_Addr begins = 0;
      if (tag != DW_TAG_subprogram || dwarf_entrypc(&die, &begins) != 0) continue;
      const auto place = wanted.find(begins);
      if (place == wanted.end()) continue;
      found[place->second] = state_->prototype_of(die, budget);
      wanted.erase(place);
    }
  }
  // The same entry may be asked for twice.
  std::unordered_map<std::uint64_t, std::size_t> firsts;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto [first, is_new] = firsts.try_emplace(entries[i].value, i);
    if (!is_new) found[i] = found[first->second];
  }
  return found;
}

}  // namespace tacho::symbolize
