#include "bpf/object/btf_schema.h"

#include <bpf/btf.h>
#include <linux/btf.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "bpf/support/libbpf_log.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/parse_text.h"

namespace tacho::bpf {
namespace {

using format::FieldKind;
using format::PayloadField;
using format::PayloadSchema;

constexpr std::uint32_t kMaxPayload = 65535;  // a sample's raw size is a u16
constexpr std::size_t kMaxFields = 4096;      // of one payload: what a capture's schema may hold
constexpr std::size_t kMaxSteps = 16 * kMaxFields;
constexpr std::size_t kMaxGlobals = 1024;  // of one section
constexpr int kMaxDepth = 32;              // of types inside types
// The known roles and formats (tacho/event.h). The last ones take an argument: a number, the name of a map,
// or names of keys.
constexpr std::string_view kRoles[] = {
    "value",         "key",      "weight",        "queued",      "why_queued", "wakes",
    "waker",         "cgroup",   "stack",         "log2",        "count",      "sum",
    "live",          "max",      "live:count",    "function",    "depth",      "arguments",
    "argument_text", "returned", "returned_text", "unread_texts"};
constexpr std::string_view kRolesWithArgument[] = {"linear:", "stack:", "table:"};
constexpr std::string_view kFormats[] = {"hex", "oct", "kaddr", "uaddr"};
constexpr std::string_view kEventVariable = "__event_", kSummaryVariable = "__summary_";

// Units in members' names, and whether they measure time or size: if a single member has such a unit, it is
// the event's value.
struct UnitRow {
  std::string_view name;
  bool measures;
};
constexpr UnitRow kUnits[] = {{"ns", true},    {"us", true},       {"ms", true}, {"s", true},
                              {"bytes", true}, {"kb", true},       {"mb", true}, {"sectors", true},
                              {"pages", true}, {"percent", false}, {"hz", false}};

// Checks the header's length, the only field that libbpf does not check.
Result<> check_header(format::Bytes bytes) {
  format::Cursor in(bytes);
  const std::uint16_t magic = in.u16();
  const std::uint8_t version = in.u8();
  in.u8();  // flags
  const std::uint64_t header_size = in.u32();
  const std::uint64_t type_offset = in.u32();
  const std::uint64_t type_size = in.u32();
  const std::uint64_t text_offset = in.u32();
  const std::uint64_t text_size = in.u32();
  if (in.failed()) return Error{"BTF is truncated"};
  if (magic != BTF_MAGIC) return Error{"not BTF of this machine's byte order"};
  if (version != BTF_VERSION)
    return Error{"BTF of version " + std::to_string(version) + ", of which 1 is known"};
  const bool is_valid = header_size >= sizeof(btf_header) && header_size % 4 == 0 && type_offset % 4 == 0 &&
                        type_offset + type_size <= text_offset &&
                        header_size + text_offset + text_size <= bytes.size();
  return is_valid ? Result<>(Done{}) : Result<>(Error{"BTF is damaged: its parts are outside its bytes"});
}

// The btf_decl_tag strings of declarations, by (type id, member or -1).
using Tags = std::multimap<std::pair<std::uint32_t, std::int32_t>, std::string>;

class Reader {
 public:
  explicit Reader(const btf* types) : types_(types), count_(btf__type_cnt(types)) { collect_tags(); }

  Declarations read() {
    Declarations found;
    for (std::uint32_t id = 1; id < count_; ++id) {
      const btf_type* type = btf__type_by_id(types_, id);
      if (btf_is_var(type)) read_variable(id, type, found);
      if (btf_is_func(type)) read_function(id, type, found);
      if (btf_is_datasec(type)) read_globals(type, found);
    }
    find_unknown_words(found);
    return found;
  }

 private:
  // Reports unknown words: they are typing errors and have no effect.
  void find_unknown_words(Declarations& found) const {
    for (const auto& [place, text] : tags_) {
      const auto [type_id, member_index] = place;
      const btf_type* const type = btf__type_by_id(types_, type_id);
      const bool is_member = type != nullptr && btf_is_composite(type) && member_index >= 0 &&
                             member_index < static_cast<std::int32_t>(btf_vlen(type));
      if (!is_member) continue;
      const std::string member = "member '" + name(btf_members(type)[member_index].name_off) + "' of '" +
                                 name(type->name_off) + "': ";
      std::string_view word = text;
      if (format::take_prefix(word, "role:"))
        check_role(std::string(word), member, found);
      else if (format::take_prefix(word, "format:") && std::ranges::count(kFormats, word) == 0)
        found.unknown_words.push_back({member + "FORMAT(\"" + std::string(word) + "\")",
                                       std::string(word),
                                       "format",
                                       {std::begin(kFormats), std::end(kFormats)}});
    }
    std::vector<std::string> events;
    for (const PayloadSchema& event : found.events) events.push_back(event.event);
    for (const auto& [map, event] : found.channels)
      if (std::ranges::count(events, event) == 0)
        found.unknown_words.push_back(
            {"map '" + map + "': EVENT_CHANNEL(" + event + ")", event, "EVENT()", events});
  }
  static void check_role(const std::string& role, const std::string& member, Declarations& found) {
    constexpr std::string_view kUnless = " unless ";
    const std::size_t unless = role.find(kUnless);
    const std::string word = role.substr(0, unless);
    const auto begins = [&](std::string_view known) { return word.starts_with(known); };
    const std::string declaration = member + "ROLE(\"" + role + "\")";
    if (std::ranges::count(kRoles, word) == 0 && std::ranges::none_of(kRolesWithArgument, begins)) {
      std::vector<std::string> known(std::begin(kRoles), std::end(kRoles));
      known.insert(known.end(), std::begin(kRolesWithArgument), std::end(kRolesWithArgument));
      found.unknown_words.push_back({declaration, word, "role", std::move(known)});
    }
    if (unless == std::string::npos) return;
    const std::string constant = role.substr(unless + kUnless.size());
    std::vector<std::string> constants;
    for (const Global& global : found.globals)
      if (global.is_constant()) constants.push_back(global.name);
    if (std::ranges::count(constants, constant) == 0)
      found.unknown_words.push_back({declaration, constant, "`const volatile` global", std::move(constants)});
  }

  // struct btf_decl_tag is incomplete in older headers: after the btf_type there is one s32.
  void collect_tags() {
    for (std::uint32_t id = 1; id < count_; ++id) {
      const btf_type* type = btf__type_by_id(types_, id);
      if (!btf_is_decl_tag(type)) continue;
      const auto member = *reinterpret_cast<const std::int32_t*>(btf_decl_tag(type));
      tags_.emplace(std::pair(type->type, member), name(type->name_off));
    }
  }
  std::string name(std::uint32_t offset) const { return std::string(name_at(types_, offset)); }
  // The value of a declaration's tag with this key: "ns" for "unit:ns".
  std::optional<std::string> tag(std::uint32_t id, std::int32_t member, std::string_view key) const {
    const auto [first, last] = tags_.equal_range(std::pair(id, member));
    for (auto each = first; each != last; ++each)
      if (each->second.starts_with(key)) return each->second.substr(key.size());
    return std::nullopt;
  }
  struct Resolved {
    std::uint32_t id = 0;
    const btf_type* type = nullptr;
  };
  // A type without const, volatile, typedef and similar.
  Resolved strip(std::uint32_t id) const {
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      const btf_type* type = btf__type_by_id(types_, id);
      if (type == nullptr) return {};
      if (!btf_is_mod(type) && !btf_is_typedef(type)) return {id, type};
      id = type->type;
    }
    return {};
  }
  // The id of the type that a pointer type points to.
  std::optional<std::uint32_t> pointed_to(std::uint32_t pointer_id) const {
    const btf_type* const pointer = strip(pointer_id).type;
    return pointer != nullptr && btf_is_ptr(pointer) ? std::optional(pointer->type) : std::nullopt;
  }

  void read_variable(std::uint32_t id, const btf_type* variable, Declarations& found) const {
    const std::string variable_name = name(variable->name_off);
    if (const auto event = tag(id, -1, "event:")) found.channels.emplace_back(variable_name, *event);
    if (const auto map = tag(id, -1, "summary:"); map && variable_name.starts_with(kSummaryVariable))
      found.summaries.push_back(
          describe_summary(variable_name.substr(kSummaryVariable.size()), *map, variable->type));
    if (!variable_name.starts_with(kEventVariable)) return;
    const std::string event = variable_name.substr(kEventVariable.size());
    auto schema = describe_event(event, variable->type);
    if (schema)
      found.events.push_back(std::move(*schema));
    else
      found.problems.push_back(std::move(schema.error()).in("event " + event).what);
  }

  void read_function(std::uint32_t id, const btf_type* function, Declarations& found) const {
    const auto text = tag(id, -1, "alternative:");
    if (!text) return;
    const auto slash = text->find('/');
    const std::string program = name(function->name_off);
    found.alternatives.push_back(
        {program, text->substr(0, slash), slash == std::string::npos ? program : text->substr(slash + 1)});
  }

  void read_globals(const btf_type* section, Declarations& found) const {
    const std::string section_name = name(section->name_off);
    if (section_name != ".rodata" && section_name != ".data" && section_name != ".bss") return;
    const btf_var_secinfo* variables = btf_var_secinfos(section);
    for (std::uint32_t i = 0; i < btf_vlen(section) && found.globals.size() < kMaxGlobals; ++i) {
      const btf_type* variable = btf__type_by_id(types_, variables[i].type);
      if (variable == nullptr || !btf_is_var(variable)) continue;
      Global global;
      global.name = name(variable->name_off);
      if (global.name.find('.') != std::string::npos) continue;  // static in a function, such as a format
      global.help = tag(variables[i].type, -1, "help:").value_or("");
      read_qualifiers(variable->type, global);
      const auto size = btf__resolve_size(types_, variable->type);
      global.layout.type_name = type_name(variable->type);
      global.layout.size = size > 0 && size <= kMaxPayload ? static_cast<std::uint32_t>(size) : 0;
      Description description{global.layout, 0};
      if (auto done = describe(variable->type, Target{.name = global.name}, description); !done) {
        global.layout.fields.clear();
        global.problem = std::move(done.error().what);
      }
      found.globals.push_back(std::move(global));
    }
  }

  // An array has the qualifiers of its elements.
  void read_qualifiers(std::uint32_t id, Global& global) const {
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      const btf_type* type = btf__type_by_id(types_, id);
      if (type == nullptr) return;
      global.is_const |= btf_kind(type) == BTF_KIND_CONST;
      global.is_volatile |= btf_is_volatile(type);
      if (!btf_is_mod(type) && !btf_is_typedef(type) && !btf_is_array(type)) return;
      id = btf_is_array(type) ? btf_array(type)->type : type->type;
    }
  }

  Result<PayloadSchema> describe_event(std::string event, std::uint32_t pointer_id) const {
    const auto type_id = pointed_to(pointer_id);
    if (!type_id) return Error{"not declared with EVENT(name, type)"};
    PayloadSchema schema;
    schema.event = std::move(event);
    schema.type_name = type_name(*type_id);
    const Resolved payload = strip(*type_id);
    if (payload.type == nullptr || btf_is_fwd(payload.type) || btf_is_void(payload.type))
      return Error{"its type is not defined in the object; include the definition before EVENT()"};
    const auto size = btf__resolve_size(types_, payload.id);
    if (size < 0 || size > kMaxPayload)
      return Error{"its type has no size, or one above the 65535 bytes that a sample can carry"};
    schema.size = static_cast<std::uint32_t>(size);
    const std::string whole = btf_is_composite(payload.type) ? "" : "value";
    Description description{schema, 0};
    if (auto described = describe(payload.id, Target{.name = whole}, description); !described)
      return std::move(described.error());
    finish(schema);
    return schema;
  }

  // `pointer_id`: a pointer to the type of the map's variable, whose members `key` and `value` point to the
  // types of the map's keys and values.
  SummaryTypes describe_summary(std::string event, std::string map, std::uint32_t pointer_id) const {
    SummaryTypes summary{std::move(event), std::move(map), {}, {}};
    const Resolved type = strip(pointed_to(pointer_id).value_or(0));
    if (type.type == nullptr || !btf_is_struct(type.type)) return summary;
    const btf_member* members = btf_members(type.type);
    for (std::uint32_t i = 0; i < btf_vlen(type.type); ++i) {
      const std::string member = name(members[i].name_off);
      if (member == "key") summary.key = describe_pointed_to(members[i].type, member);
      if (member == "value") summary.value = describe_pointed_to(members[i].type, member);
    }
    return summary;
  }
  std::optional<PayloadSchema> describe_pointed_to(std::uint32_t pointer_id, const std::string& whole) const {
    const auto type_id = pointed_to(pointer_id);
    if (!type_id) return std::nullopt;
    const Resolved type = strip(*type_id);
    const auto size = type.type == nullptr ? -1 : btf__resolve_size(types_, type.id);
    if (size <= 0 || size > kMaxPayload) return std::nullopt;
    PayloadSchema schema;
    schema.type_name = type_name(*type_id);
    schema.size = static_cast<std::uint32_t>(size);
    Description description{schema, 0};
    const std::string named = btf_is_composite(type.type) ? "" : "(" + whole + ")";
    if (!describe(type.id, Target{.name = named}, description)) return std::nullopt;
    return schema;
  }

  // The type's name in the source: the typedef's for a struct without name.
  std::string type_name(std::uint32_t id) const {
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      const btf_type* type = btf__type_by_id(types_, id);
      if (type == nullptr) return "";
      if (std::string found = name(type->name_off); !found.empty() && !btf_is_type_tag(type)) return found;
      if (!btf_is_mod(type)) return "";
      id = type->type;
    }
    return "";
  }

  // A value that is described: its name and offset, and the declaration whose tags apply to it.
  struct Target {
    std::string name;
    std::uint64_t bit_offset = 0;
    std::uint32_t bitfield = 0;  // bits, when it is one
    std::uint32_t struct_id = 0;
    std::int32_t member = -1;
    int depth = 0;
  };
  struct Description {
    PayloadSchema& schema;
    std::size_t steps;  // so far; limited, since damaged types can contain each other
  };

  Result<> describe(std::uint32_t type_id, const Target& target, Description& description) const {
    const Resolved resolved = strip(type_id);
    if (resolved.type == nullptr || target.depth > kMaxDepth || ++description.steps > kMaxSteps)
      return Error{"damaged BTF"}.in(target.name);
    if (btf_is_composite(resolved.type)) return describe_struct(resolved, target, description);
    if (btf_is_array(resolved.type)) return describe_array(resolved, target, description);
    auto field = scalar(resolved.type);
    if (!field) return std::move(field.error()).in("member '" + target.name + "'");
    return add(std::move(*field), target, description);
  }

  Result<> describe_struct(const Resolved& type, const Target& target, Description& description) const {
    const btf_member* members = btf_members(type.type);
    for (std::uint32_t i = 0; i < btf_vlen(type.type); ++i) {
      const std::string own = name(members[i].name_off);
      Target inner = target;
      inner.name += (target.name.empty() || own.empty() ? "" : ".") + own;
      inner.bit_offset += btf_member_bit_offset(type.type, i);
      inner.bitfield = btf_member_bitfield_size(type.type, i);
      inner.struct_id = type.id;
      inner.member = static_cast<std::int32_t>(i);
      inner.depth = target.depth + 1;
      if (auto described = describe(members[i].type, inner, description); !described) return described;
    }
    return Done{};
  }

  Result<> describe_array(const Resolved& type, const Target& target, Description& description) const {
    std::uint64_t count = 1;
    Resolved element = type;
    // An array of arrays of numbers is shown as one array.
    bool rows_of_text = false;
    for (int depth = 0; element.type != nullptr && btf_is_array(element.type) && depth < kMaxDepth; ++depth) {
      const struct btf_array* array = btf_array(element.type);
      const Resolved next = strip(array->type);
      rows_of_text = depth > 0 && next.type != nullptr && is_char(next.type);
      if (rows_of_text) break;
      count *= array->nelems;
      if (count > kMaxPayload)
        return Error{"member '" + target.name + "': more elements than a sample can carry"};
      element = next;
    }
    if (element.type == nullptr) return Error{"damaged BTF"}.in(target.name);
    if (btf_is_composite(element.type) || rows_of_text)
      return describe_each(element, count, target, description);
    auto field = scalar(element.type);
    if (!field) return std::move(field.error()).in("member '" + target.name + "'");
    const bool bytes_named_comm =  // u8 comm[16] is text
        field->bit_size == 8 && (target.name == "comm" || target.name.ends_with(".comm"));
    if (is_char(element.type) || bytes_named_comm) field->kind = FieldKind::Text;
    field->count = static_cast<std::uint32_t>(count * field->count);
    field->is_array = field->kind != FieldKind::Text;
    return add(std::move(*field), target, description);
  }

  // An array of structs or of texts: each element has fields of its own, "name[3].member".
  Result<> describe_each(const Resolved& element, std::uint64_t count, const Target& target,
                         Description& description) const {
    const auto size = btf__resolve_size(types_, element.id);
    if (count == 0 || size <= 0)
      return Error{"member '" + target.name +
                   "': an array of structs needs a length; only numbers and text may go without"};
    for (std::uint64_t i = 0; i < count; ++i) {
      Target inner = target;
      inner.name.append("[").append(std::to_string(i)).append("]");
      inner.bit_offset += i * static_cast<std::uint64_t>(size) * 8;
      inner.depth = target.depth + 1;
      if (auto described = describe(element.id, inner, description); !described) return described;
    }
    return Done{};
  }

  bool is_char(const btf_type* type) const {
    return btf_is_int(type) && type->size == 1 && name(type->name_off) == "char";
  }

  Result<PayloadField> scalar(const btf_type* type) const {
    PayloadField field;
    field.bit_size = type->size * 8;
    if (btf_is_int(type)) {
      const int encoding = btf_int_encoding(type);
      field.kind = (encoding & BTF_INT_BOOL) != 0     ? FieldKind::Bool
                   : (encoding & BTF_INT_SIGNED) != 0 ? FieldKind::Signed
                                                      : FieldKind::Unsigned;
      field.bit_size = btf_int_bits(type);
    } else if (btf_is_any_enum(type)) {
      field.kind = FieldKind::Enum;
      read_enumerators(type, field);
    } else if (btf_is_float(type)) {
      field.kind = FieldKind::Float;
    } else if (btf_is_ptr(type)) {
      field.bit_size = 64;  // on BPF, also on a 32-bit host
      field.format = "hex";
    } else {
      return Error{"its type cannot be shown (kind " + std::to_string(btf_kind(type)) + " of BTF)"};
    }
    if (field.bit_size == 128 && field.kind != FieldKind::Float) {  // __int128: two halves
      field.bit_size = 64;
      field.count = 2;
      field.is_array = true;
      field.format = "hex";
    }
    const bool whole_float = field.kind != FieldKind::Float || field.bit_size == 32 || field.bit_size == 64;
    if (field.bit_size == 0 || field.bit_size > 64 || !whole_float)
      return Error{"a number of " + std::to_string(field.bit_size) + " bits cannot be shown"};
    return field;
  }

  // Enumerators of all enums of a C source need different names: the part from ___ on is not shown.
  std::string enumerator_name(std::uint32_t offset) const {
    const std::string whole = name(offset);
    return whole.substr(0, whole.find("___", 1));
  }
  void read_enumerators(const btf_type* type, PayloadField& field) const {
    const std::uint32_t count = btf_vlen(type);
    field.is_signed = btf_kflag(type);
    if (btf_is_enum64(type)) {
      const struct btf_enum64* values = tacho_enum64(type);
      for (std::uint32_t i = 0; i < count; ++i)
        field.enumerators.emplace_back(static_cast<std::int64_t>(btf_enum64_value(values + i)),
                                       enumerator_name(*reinterpret_cast<const std::uint32_t*>(values + i)));
      return;
    }
    const struct btf_enum* values = btf_enum(type);
    // Older compilers do not mark signed enums: a negative value shows it.
    field.is_signed |= std::any_of(values, values + count, [](const auto& each) { return each.val < 0; });
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::int64_t value = field.is_signed ? std::int64_t{values[i].val}
                                                 : std::int64_t{static_cast<std::uint32_t>(values[i].val)};
      field.enumerators.emplace_back(value, enumerator_name(values[i].name_off));
    }
  }

  Result<> add(PayloadField field, const Target& target, Description& description) const {
    if (description.schema.fields.size() >= kMaxFields)
      return Error{"more than " + std::to_string(kMaxFields) + " members"};
    field.name = target.name;
    if (field.name.empty()) return Done{};  // unnamed bits are padding
    field.bit_offset = static_cast<std::uint32_t>(target.bit_offset);
    if (target.bitfield != 0) field.bit_size = target.bitfield;
    const std::uint64_t end = target.bit_offset + std::uint64_t{field.bit_size} * field.count;
    if (field.bit_size > 64 || end > std::uint64_t{description.schema.size} * 8)
      return Error{"member '" + target.name + "' is outside its struct: damaged BTF"};
    field.unit = tag(target.struct_id, target.member, "unit:").value_or(unit_of_name(field));
    field.role = tag(target.struct_id, target.member, "role:").value_or("");
    if (const auto format = tag(target.struct_id, target.member, "format:")) field.format = *format;
    if (field.format.empty() && is_address(field)) field.format = "hex";
    description.schema.fields.push_back(std::move(field));
    return Done{};
  }

  static bool is_number(const PayloadField& field) {
    return field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed ||
           field.kind == FieldKind::Float;
  }
  static std::string unit_of_name(const PayloadField& field) {
    if (!is_number(field)) return "";
    const auto start = field.name.find_last_of("._");
    const std::string_view last =
        std::string_view(field.name).substr(start == std::string::npos ? 0 : start + 1);
    const auto row = std::ranges::find(kUnits, last, &UnitRow::name);
    return row == std::end(kUnits) ? "" : std::string(row->name);
  }
  static bool is_address(const PayloadField& field) {
    return field.kind == FieldKind::Unsigned && field.bit_size == 64 &&
           (field.name.ends_with("addr") || field.name.ends_with("address"));
  }

  // Removes members of size 0, except an array without length at the end; and finds the value.
  static void finish(PayloadSchema& schema) {
    auto& fields = schema.fields;
    const auto last = fields.empty() ? fields.end() : fields.end() - 1;
    const auto is_empty = [](const PayloadField& field) { return field.count == 0; };
    fields.erase(std::remove_if(fields.begin(), last, is_empty), last);
    if (std::ranges::find(fields, "value", &PayloadField::role) != fields.end()) return;
    const auto measures = [](const PayloadField& field) {
      const auto row = std::ranges::find(kUnits, std::string_view(field.unit), &UnitRow::name);
      return field.role.empty() && !field.is_array && row != std::end(kUnits) && row->measures;
    };
    if (std::ranges::count_if(fields, measures) == 1) std::ranges::find_if(fields, measures)->role = "value";
  }

  // Without "struct" this would be libbpf's function of that name.
  static const struct btf_enum64* tacho_enum64(const btf_type* type) {
    return reinterpret_cast<const struct btf_enum64*>(type + 1);
  }

  const btf* types_;
  std::uint32_t count_;
  Tags tags_;
};

}  // namespace

const PayloadSchema* Declarations::event(const std::string& name) const {
  const auto found = std::ranges::find(events, name, &PayloadSchema::event);
  return found == events.end() ? nullptr : &*found;
}

Result<Declarations> read_declarations(format::Bytes bytes) {
  if (auto checked = check_header(bytes); !checked) return std::move(checked.error());
  LibbpfLog log;
  const OwnedBtf types = parse_btf(bytes);
  if (types == nullptr) return Error{"BTF is damaged"};
  return Reader(types.get()).read();
}

}  // namespace tacho::bpf
