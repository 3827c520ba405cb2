#include "symbolize/elf/function_parameters.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "symbolize/elf/call_convention.h"
#include "symbolize/elf/dwarf_file.h"

namespace tacho::symbolize {
namespace {

constexpr int kMostParameters = 256;
constexpr std::size_t kMostListed = 40;  // names in an error
constexpr std::size_t kMostPointers = 8;
constexpr int kDeepestMember = 16;                          // structs without a name in structs
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;  // of a stack frame, or of a struct
constexpr std::uint64_t kRegisterBytes = 8;

struct Parameter {
  Dwarf_Die die{};
  std::string_view name;
  ValueLocation location;
  std::string missing_reason;  // why its location is unknown; empty: it is known
};

// The variable or member that a name or "->" denotes.
struct Value {
  Dwarf_Die type{};
  bool is_in_memory = false;
  ParameterValue result;                       // how a probe reads it, if it is in memory
  std::vector<ValueLocation::Part> registers;  // else the registers,
  std::uint64_t offset = 0;                    // and its first byte in them
};

struct Step {
  std::string_view name;
  bool is_through_pointer = false;
};

// Splits "request->head.length" into steps; empty: the text is not of this form.
std::vector<Step> steps_of(std::string_view text) {
  std::vector<Step> steps;
  bool is_through_pointer = false;
  for (;;) {
    const auto end = std::ranges::find_if(
        text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; });
    const auto length = static_cast<std::size_t>(end - text.begin());
    if (length == 0) return {};
    steps.push_back({text.substr(0, length), is_through_pointer});
    text.remove_prefix(length);
    if (text.empty()) return steps;
    is_through_pointer = text.starts_with("->");
    if (!is_through_pointer && !text.starts_with('.')) return {};
    text.remove_prefix(is_through_pointer ? 2 : 1);
  }
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMostListed; ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostListed ? out + ", ..." : out;
}

// A parameter's DW_AT_location at the first instruction.
struct Location {
  enum class Kind : std::uint8_t {
    Missing,
    AtEntry,      // where the value is now
    Later,        // where the function will store it
    Unsupported,  // an expression of another form
  };
  Kind kind = Kind::Missing;
  ValueLocation value = {};
};

Location parse_location(const Dwarf_Op* ops, std::size_t count, bool frame_is_callers,
                        const CallRules& rules) {
  Location location{.kind = Location::Kind::Unsupported};
  for (std::size_t i = 0; i < count; ++i) {
    const Dwarf_Op& op = ops[i];
    const bool is_named = op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31;
    if (!is_named && op.atom != DW_OP_regx) break;
    const std::uint64_t number = is_named ? op.atom - DW_OP_reg0 : op.number;
    const bool has_size = i + 1 < count && ops[i + 1].atom == DW_OP_piece;
    location.value.registers.push_back(
        {rules.general_register(number), has_size ? ops[i + 1].number : kRegisterBytes});
    i += has_size ? 1 : 0;
    if (i + 1 == count) {
      location.kind = Location::Kind::AtEntry;
      return location;
    }
  }
  location.value.registers.clear();
  const auto stack = static_cast<int>(DW_OP_breg0 + rules.stack_number);
  const bool is_read = count == 2 && ops[1].atom == DW_OP_deref;
  if (count != 1 && !is_read) return location;
  const auto number = static_cast<std::int64_t>(ops[0].number);
  const bool is_near = number <= kMostBytes && number >= -kMostBytes;
  if (is_read) {  // a C++ struct that is passed by address; the function stores that address
    if (ops[0].atom == DW_OP_fbreg) location.kind = Location::Kind::Later;
    location.value.is_address = true;
  } else if (!rules.general_register(static_cast<std::uint64_t>(ops[0].atom - DW_OP_breg0)).empty() &&
             ops[0].atom != stack && number == 0) {
    location.kind = Location::Kind::AtEntry;
    location.value.registers.push_back({rules.general_register(ops[0].atom - DW_OP_breg0), kRegisterBytes});
    location.value.is_address = true;
  } else if (ops[0].atom == DW_OP_fbreg && is_near) {
    // A slot below the caller's frame is one to which the function will store the value.
    location.kind = frame_is_callers && number >= 0 ? Location::Kind::AtEntry : Location::Kind::Later;
    location.value.on_stack = number + rules.return_address;
  } else if (ops[0].atom == stack && is_near) {
    location.kind = number >= rules.return_address ? Location::Kind::AtEntry : Location::Kind::Later;
    location.value.on_stack = number;
  }
  return location;
}

void charge(Dwarf_Die& die, DwarfBudget& budget) {
  budget.attributes -= std::min(budget.attributes, cost_of(die));
}

bool is_integer_size(std::uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }
bool is_signed(std::uint64_t encoding) { return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char; }

bool same_registers(const ValueLocation& one, const ValueLocation& other) {
  return std::ranges::equal(one.registers, other.registers, {}, &ValueLocation::Part::name,
                            &ValueLocation::Part::name);
}

constexpr std::size_t kMostArguments = 64;
constexpr int kMostEnumerators = 4096, kMostChildren = 4096;

bool is_character(std::uint64_t encoding) {
  return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}

bool is_in_one_register(const ValueType& type) {
  return type.kind != ValueType::Kind::Floating && type.kind != ValueType::Kind::Struct;
}

// Argument::integer_register of a location.
std::uint8_t integer_register_of(const ValueLocation& location, const CallRules& rules) {
  constexpr std::ptrdiff_t kRecorded = 6;
  if (location.on_stack || location.registers.size() != 1) return Argument::kNoRegister;
  const auto found = std::ranges::find(rules.arguments, location.registers.front().name);
  const std::ptrdiff_t number = found - rules.arguments.begin();
  return number >= std::min(kRecorded, std::ssize(rules.arguments)) ? Argument::kNoRegister
                                                                    : static_cast<std::uint8_t>(number);
}

}  // namespace

struct FunctionParameters::State {
  explicit State(DwarfFile file) : dwarf(std::move(file)), types(dwarf) {}

  DwarfFile dwarf;
  TypeView types;
  // By the offsets of their entries in the file.
  mutable std::unordered_map<Dwarf_Off, std::shared_ptr<const EnumNames>> enumerations;

  std::optional<Dwarf_Die> function_at(std::uint64_t entry, std::string& missing_reason) const {
    DwarfBudget budget = DwarfBudget::of(dwarf.image().size());
    Dwarf_CU* cu = nullptr;
    std::uint8_t type = 0;
    Dwarf_Die unit{};
    while (budget.units-- > 0 && budget.attributes > 0 &&
           dwarf_get_units(dwarf.get(), cu, &cu, nullptr, &type, &unit, nullptr) == 0) {
      const int tag = dwarf_tag(&unit);
      if ((tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) || !may_hold(unit, entry)) continue;
      if (type == DW_UT_skeleton || dwarf_hasattr(&unit, DW_AT_GNU_dwo_name)) {
        missing_reason = "its debugging information is in .dwo files, which are not read for this";
        continue;
      }
      if (auto found = function_in(unit, entry, budget)) return found;
    }
    return std::nullopt;
  }

  std::optional<Dwarf_Die> function_in(const Dwarf_Die& unit, std::uint64_t entry,
                                       DwarfBudget& budget) const {
    DieIterator walk(unit);
    while (walk.next_die() && budget.attributes > 0) {
      Dwarf_Die& die = walk.die();
      charge(die, budget);
      Dwarf_Addr begins = 0;
      if (dwarf_tag(&die) == DW_TAG_subprogram && dwarf_entrypc(&die, &begins) == 0 && begins == entry)
        return die;
    }
    return std::nullopt;
  }

  // Whether the unit may have code at `entry`; true if the unit has no address ranges.
  bool may_hold(Dwarf_Die& unit, std::uint64_t entry) const {
    Dwarf_Addr base = 0, start = 0, end = 0;
    std::ptrdiff_t offset = 0;
    bool has_ranges = false;
    for (int left = 1 << 16; left > 0; --left) {
      const std::ptrdiff_t next = dwarf_ranges(&unit, offset, &base, &start, &end);
      if (next <= 0 || next <= offset) break;
      offset = next;
      has_ranges = true;
      if (start <= entry && entry < end) return true;
    }
    return !has_ranges;
  }

  std::vector<Parameter> parameters_of(Dwarf_Die function, std::uint64_t entry,
                                       std::string_view symbol) const {
    std::vector<Parameter> all = entries_of(function);
    Dwarf_Die unit{};
    const bool has_unit = dwarf_diecu(&function, &unit, nullptr, nullptr) != nullptr;
    // "f.isra.0": a copy by the compiler, which may not follow the calling convention.
    const bool is_copy = symbol.find('.') != std::string_view::npos;
    const bool is_plain = has_unit && follows_convention(dwarf_srclang(&unit)) && !is_copy;
    const bool is_external = types.has(function, DW_AT_external);
    std::vector<Location> locations;
    std::vector<std::optional<ValueLocation>> expected;
    CallConvention convention(types, types.type_of(function));
    bool is_as_expected = true;
    for (const Parameter& one : all) {
      locations.push_back(location_of(one.die, function, entry));
      const ValueLocation& value = locations.back().value;
      expected.push_back(convention.next_location(types.type_of(one.die), value.is_address));
      if (locations.back().kind == Location::Kind::AtEntry && expected.back() && !value.on_stack)
        is_as_expected = is_as_expected && same_registers(value, *expected.back());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_there = locations[i].kind == Location::Kind::Later ||
                            (locations[i].kind == Location::Kind::Unsupported && is_as_expected);
      if (locations[i].kind == Location::Kind::AtEntry) {
        all[i].location = std::move(locations[i].value);
        all[i].location.is_address |= expected[i] && expected[i]->is_address;
      } else if (is_plain && expected[i] && (is_external || is_there)) {
        all[i].location = *expected[i];
      } else {
        all[i].missing_reason =
            "the compiler does not say where it is when the function begins, and may have left it out";
      }
      if (all[i].missing_reason.empty() && !all[i].location.on_stack && all[i].location.registers.empty())
        all[i].missing_reason = "it has no bytes";
    }
    return all;
  }

  // The parameters, without their locations. Those of a template's parameter pack are children of the pack.
  std::vector<Parameter> entries_of(Dwarf_Die function) const {
    std::vector<Parameter> out;
    const auto add = [&](Dwarf_Die& child) {
      if (dwarf_tag(&child) == DW_TAG_formal_parameter)
        out.push_back(
            {.die = child, .name = types.text(child, DW_AT_name), .location = {}, .missing_reason = {}});
      return std::ssize(out) < kMostParameters;
    };
    each_child(function, kMostChildren, [&](Dwarf_Die& child) {
      if (dwarf_tag(&child) == DW_TAG_GNU_formal_parameter_pack) each_child(child, kMostParameters, add);
      return add(child);
    });
    return out;
  }

  Location location_of(Dwarf_Die parameter, Dwarf_Die function, std::uint64_t entry) const {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&parameter, DW_AT_location, &attribute) == nullptr) return {};
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_addr(&attribute, entry, &ops, &count, 1) != 1 || count == 0) return {};
    Dwarf_Attribute base;
    Dwarf_Op* frame = nullptr;
    std::size_t frame_count = 0;
    const bool frame_is_callers = dwarf_attr(&function, DW_AT_frame_base, &base) != nullptr &&
                                  dwarf_getlocation_addr(&base, entry, &frame, &frame_count, 1) == 1 &&
                                  frame_count == 1 && frame[0].atom == DW_OP_call_frame_cfa;
    return parse_location(ops, count, frame_is_callers, types.rules());
  }

  std::string listed_parameters(const std::vector<Parameter>& all) const {
    std::vector<std::string> names;
    for (const Parameter& one : all)
      if (!one.name.empty()) names.push_back(std::string(one.name) + " (" + types.name_of(one.die) + ")");
    return names.empty() ? "the function has no arguments with names" : "the function has " + joined(names);
  }

  std::string listed_members(Dwarf_Die type) const {
    std::vector<std::string> names;
    types.each_member(type, [&names](const TypeView::Member& member) {
      if (!member.name.empty()) names.emplace_back(member.name);
      return names.size() <= kMostListed;
    });
    return names.empty() ? "nothing with a name" : joined(names);
  }

  Result<ParameterValue> value_of(const std::vector<Parameter>& all, std::string_view wanted) const {
    const std::vector<Step> steps = steps_of(wanted);
    if (steps.empty()) return Error{"is no name, nor a name with members: request->head.length"};
    const auto one = std::ranges::find(all, steps.front().name, &Parameter::name);
    if (one == all.end()) return Error{"there is no such argument; " + listed_parameters(all)};
    if (!one->missing_reason.empty())
      return Error{one->missing_reason + "; name the register, as %" +
                   std::string(types.rules().arguments.front())};
    const auto type = types.type_of(one->die);
    if (!type) return Error{"its type is not described"};
    Value value;
    value.type = *type;
    value.registers = one->location.registers;
    if (one->location.on_stack) {
      value.is_in_memory = true;
      value.result = {.register_name = types.rules().stack_pointer,
                      .from = ParameterValue::From::Memory,
                      .displacement = *one->location.on_stack};
    }
    if (one->location.is_address)
      if (auto done = dereference(value); !done) return std::move(done.error());
    const auto follow_reference = [&]() -> Result<> {
      if (!types.is_reference(value.type)) return Done{};
      const auto target = types.type_of(value.type);
      if (!target) return Error{"it refers to something without a type"};
      value.type = *target;
      return dereference(value);
    };
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (auto done = follow_reference(); !done) return std::move(done.error());
      if (steps[i].is_through_pointer && !types.is_pointer(value.type))
        return Error{"the expression before ->" + std::string(steps[i].name) + " is no pointer"};
      if (auto done = go_to_member(value, steps[i]); !done) return std::move(done.error());
    }
    if (auto done = follow_reference(); !done) return std::move(done.error());
    return as_probe_value(std::move(value));
  }

  Result<> go_to_member(Value& value, const Step& step) const {
    if (types.is_pointer(value.type)) {
      const auto target = types.type_of(value.type);
      if (!target) return Error{in_quotes(step.name) + ": the pointer does not say what it points to"};
      if (auto done = dereference(value); !done) return done;
      value.type = *target;
    }
    if (!types.is_struct(value.type))
      return Error{in_quotes(step.name) + ": the expression before it is no struct"};
    if (types.has(value.type, DW_AT_declaration))
      return Error{in_quotes(step.name) + ": its members are not described there (it is only declared)"};
    TypeView::Member member;
    if (!find_member(value.type, step.name, member, kDeepestMember))
      return Error{"there is no member " + in_quotes(step.name) + "; there is " + listed_members(value.type)};
    if (member.is_bits) return Error{in_quotes(step.name) + " is a bit field, which cannot be read"};
    if (member.offset > std::uint64_t{kMostBytes})
      return Error{in_quotes(step.name) + " is too far from its struct's start"};
    const auto type = types.type_of(member.die);
    if (!type) return Error{in_quotes(step.name) + " has no type"};
    if (value.is_in_memory)
      value.result.displacement += static_cast<std::int64_t>(member.offset);
    else
      value.offset += member.offset;
    value.type = *type;
    return Done{};
  }

  bool find_member(Dwarf_Die type, std::string_view name, TypeView::Member& found, int left) const {
    bool is_found = false;
    types.each_member(type, [&](const TypeView::Member& member) {
      if (member.name == name && !name.empty()) {
        found = member;
        is_found = true;
      } else if (const auto inner = types.type_of(member.die);
                 member.name.empty() && left > 0 && inner && types.is_struct(*inner)) {
        is_found = find_member(*inner, name, found, left - 1);
        found.offset += is_found ? member.offset : 0;
        found.is_bits |= is_found && member.is_bits;
      }
      return !is_found;
    });
    return is_found;
  }

  // Replaces a value that is an address by the memory there.
  Result<> dereference(Value& value) const {
    if (!value.is_in_memory) {
      std::uint64_t begin = 0;
      for (const ValueLocation::Part& part : value.registers) {
        if (begin == value.offset && part.bytes == kRegisterBytes && !part.name.empty()) {
          value.result = {.register_name = part.name, .from = ParameterValue::From::Memory};
          value.is_in_memory = true;
          return Done{};
        }
        begin += part.bytes;
      }
      return Error{"its address is in no register of its own"};
    }
    if (value.result.pointers.size() == kMostPointers) return Error{"that leads through too many pointers"};
    value.result.pointers.push_back(std::exchange(value.result.displacement, 0));
    return Done{};
  }

  Result<ParameterValue> as_probe_value(Value value) const {
    using Kind = ParameterValue::Kind;
    if (types.is_struct(value.type))
      return Error{"is a struct; name a member, as with a dot or ->: " + listed_members(value.type)};
    const auto size = types.size_of(value.type);
    const int tag = dwarf_tag(&value.type);
    Kind kind = Kind::Unsigned;
    if (tag == DW_TAG_array_type) {
      const auto element = types.type_of(value.type);
      if (!value.is_in_memory || !element || types.size_of(*element) != std::uint64_t{1})
        return Error{"is an array; only texts in memory are read"};
      value.result.from = ParameterValue::From::Address;
      value.result.kind = Kind::Text;
      value.result.size = kRegisterBytes;
      return value.result;
    }
    if (types.is_pointer(value.type)) {
      kind = Kind::Pointer;
    } else if (tag == DW_TAG_base_type) {
      const std::uint64_t encoding = encoding_of(value.type);
      if (is_floating(encoding))
        return Error{"is a floating point number, whose registers a probe cannot read"};
      if (is_signed(encoding)) kind = Kind::Signed;
    } else if (tag == DW_TAG_enumeration_type) {
      const auto under = types.type_of(value.type);
      if (under && is_signed(encoding_of(*under))) kind = Kind::Signed;
    }
    if (!size || !is_integer_size(*size)) return Error{"is no number of 1, 2, 4 or 8 bytes"};
    if (!value.is_in_memory) {
      std::uint64_t begin = 0;
      const auto part = std::ranges::find_if(value.registers, [&](const ValueLocation::Part& one) {
        const bool is_there = value.offset >= begin && value.offset + *size <= begin + one.bytes;
        if (!is_there) begin += one.bytes;
        return is_there;
      });
      if (part == value.registers.end()) return Error{"is in several registers"};
      if (part->name.empty())
        return Error{"is in a register for floating point numbers, which a probe cannot read"};
      value.result = {.register_name = part->name,
                      .shift = static_cast<std::uint8_t>(8 * (value.offset - begin))};
    }
    value.result.size = static_cast<std::uint8_t>(*size);
    value.result.kind = kind;
    return value.result;
  }

  std::uint64_t encoding_of(Dwarf_Die type) const { return types.number(type, DW_AT_encoding).value_or(0); }

  // Pointers to char are texts; those to uint8_t or int8_t, which have the same encoding, are not.
  bool is_text(Dwarf_Die pointer) const {
    const auto target = types.type_of(pointer);
    return target && dwarf_tag(&const_cast<Dwarf_Die&>(*target)) == DW_TAG_base_type &&
           is_character(encoding_of(*target)) && types.text(*target, DW_AT_name) == "char";
  }

  std::shared_ptr<const EnumNames> names_of(Dwarf_Die enumeration, DwarfBudget& budget) const {
    auto& known = enumerations[dwarf_dieoffset(&enumeration)];
    if (known) return known;
    EnumNames names;
    each_child(enumeration, kMostEnumerators, [&](Dwarf_Die& child) {
      if (budget.attributes == 0) return false;
      charge(child, budget);
      Dwarf_Attribute attribute;
      Dwarf_Sword value = 0;
      const std::string_view name = types.text(child, DW_AT_name);
      if (dwarf_tag(&child) == DW_TAG_enumerator && !name.empty() &&
          dwarf_attr(&child, DW_AT_const_value, &attribute) != nullptr &&
          dwarf_formsdata(&attribute, &value) == 0)
        names.emplace_back(value, name);
      return true;
    });
    return known = std::make_shared<const EnumNames>(std::move(names));
  }

  // Of a parameter or function; nothing: void, or unknown.
  std::optional<ValueType> value_type(Dwarf_Die of, DwarfBudget& budget) const {
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
    if (bytes && is_integer_size(*bytes)) value.bytes = static_cast<std::uint8_t>(*bytes);
    if (tag == DW_TAG_enumeration_type && bytes && is_integer_size(*bytes)) {
      value.kind = Kind::Enumeration;
      value.names = names_of(*type, budget);
    } else if (tag != DW_TAG_base_type || !bytes) {
      value.kind = Kind::Struct;
    } else if (const std::uint64_t encoding = encoding_of(*type); is_floating(encoding)) {
      value.kind = Kind::Floating;
    } else if (!is_integer_size(*bytes)) {
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

  Prototype prototype_of(Dwarf_Die function, DwarfBudget& budget) const {
    Prototype prototype;
    CallConvention convention(types, types.type_of(function));
    prototype.returned = value_type(function, budget);
    if (prototype.returned && !is_in_one_register(*prototype.returned)) prototype.returned.reset();
    each_child(function, kMostChildren, [&](Dwarf_Die& child) {
      if (budget.attributes == 0 || prototype.arguments.size() == kMostArguments) return false;
      charge(child, budget);
      if (dwarf_tag(&child) != DW_TAG_formal_parameter) return true;
      const auto location = convention.next_location(types.type_of(child));
      const auto type = value_type(child, budget);
      Argument argument{.name = std::string(types.text(child, DW_AT_name)),
                        .type = type.value_or(ValueType{.kind = ValueType::Kind::Struct})};
      if (location && !location->is_address && is_in_one_register(argument.type))
        argument.integer_register = integer_register_of(*location, types.rules());
      prototype.arguments.push_back(std::move(argument));
      return true;
    });
    return prototype;
  }
};

FunctionParameters::FunctionParameters(std::unique_ptr<State> state) : state_(std::move(state)) {}
FunctionParameters::FunctionParameters(FunctionParameters&&) noexcept = default;
FunctionParameters::~FunctionParameters() = default;

Result<FunctionParameters> FunctionParameters::open(format::Fd file) {
  auto dwarf = DwarfFile::open(file);
  if (!dwarf) return std::move(dwarf.error());
  return FunctionParameters(std::make_unique<State>(std::move(*dwarf)));
}

std::optional<SupplementaryFile> FunctionParameters::supplementary_file() const {
  return state_->dwarf.supplementary_file();
}
Result<> FunctionParameters::use_supplementary_file(format::Fd file) {
  return state_->dwarf.use_supplementary_file(file);
}

Result<std::vector<ParameterValue>> FunctionParameters::find_values(
    format::ElfAddress entry, std::string_view symbol, const std::vector<std::string>& wanted) const {
  std::string missing_reason = "its debugging information has no function that starts there";
  const auto function = state_->function_at(entry.value, missing_reason);
  if (!function) return Error{missing_reason, ENOENT};
  const std::vector<Parameter> all = state_->parameters_of(*function, entry.value, symbol);
  std::vector<ParameterValue> out;
  for (const std::string& one : wanted) {
    if (one == "?") return Error{state_->listed_parameters(all)};
    auto value = state_->value_of(all, one);
    if (!value) return std::move(value.error()).in(in_quotes(one));
    out.push_back(std::move(*value));
  }
  return out;
}

std::vector<std::optional<Prototype>> FunctionParameters::prototypes(
    std::span<const format::ElfAddress> entries) const {
  std::vector<std::optional<Prototype>> found(entries.size());
  std::unordered_map<std::uint64_t, std::size_t> wanted;
  for (std::size_t i = 0; i < entries.size(); ++i) wanted.try_emplace(entries[i].value, i);
  const std::unordered_map<std::uint64_t, std::size_t> firsts = wanted;  // an entry may be listed twice
  DwarfBudget budget = DwarfBudget::of(state_->dwarf.image().size());
  Dwarf_CU* cu = nullptr;
  std::uint8_t type = 0;
  Dwarf_Die unit{};
  while (!wanted.empty() && budget.units-- > 0 && budget.attributes > 0 &&
         dwarf_get_units(state_->dwarf.get(), cu, &cu, nullptr, &type, &unit, nullptr) == 0) {
    if (dwarf_tag(&unit) != DW_TAG_compile_unit || type == DW_UT_skeleton ||
        !follows_convention(dwarf_srclang(&unit)))
      continue;
    DieIterator walk(unit);
    while (!wanted.empty() && budget.attributes > 0 && walk.next_die()) {
      Dwarf_Die& die = walk.die();
      const int tag = dwarf_tag(&die);
      charge(die, budget);
      Dwarf_Addr begins = 0;
      if (tag != DW_TAG_subprogram || dwarf_entrypc(&die, &begins) != 0) continue;
      const auto entry = wanted.find(begins);
      if (entry == wanted.end()) continue;
      found[entry->second] = state_->prototype_of(die, budget);
      wanted.erase(entry);
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) found[i] = found[firsts.at(entries[i].value)];
  return found;
}

}  // namespace tacho::symbolize
