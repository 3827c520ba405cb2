#include "record/events/probe_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "record/parse_text.h"

namespace tacho::record {
namespace {

using bpf::ProbeArgument;
using Source = ProbeArgument::Source;
using Shape = ProbeArgument::Shape;

struct TypeRow {
  std::string_view name;
  std::uint8_t size;
  bool is_signed;
  Shape shape;
};
constexpr TypeRow kTypes[] = {
    {"u8", 1, false, Shape::Number},       {"u16", 2, false, Shape::Number},
    {"u32", 4, false, Shape::Number},      {"u64", 8, false, Shape::Number},
    {"s8", 1, true, Shape::Number},        {"s16", 2, true, Shape::Number},
    {"s32", 4, true, Shape::Number},       {"s64", 8, true, Shape::Number},
    {"x8", 1, false, Shape::Hex},          {"x16", 2, false, Shape::Hex},
    {"x32", 4, false, Shape::Hex},         {"x64", 8, false, Shape::Hex},
    {"string", 8, false, Shape::UserText}, {"ustring", 8, false, Shape::UserText},
};

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(
             text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}
// "length" of "request->head.length".
std::string_view last_name(std::string_view text) {
  const std::size_t end = text.find_last_of(".>");
  return end == std::string_view::npos ? text : text.substr(end + 1);
}
// 2 of "arg2".
std::optional<std::size_t> position_of(std::string_view text) {
  const auto number = take_prefix(text, "arg") ? whole_number<std::size_t>(text) : std::nullopt;
  return number != 0 ? number : std::nullopt;
}

ProbeArgument at_register(std::string_view name, ProbeArgument out) {
  const auto field = bpf::register_field(name);
  if (!field || (out.source == Source::Memory && field->size != 8)) return out;
  out.register_offset = field->offset;
  out.name = "known";
  return out;
}

ProbeArgument constant_of(std::optional<std::int64_t> constant, ProbeArgument out) {
  if (!constant) return out;
  out.constant = *constant;
  out.source = Source::Constant;
  out.name = "known";
  return out;
}

// marker_location(): the location of a marker's argument, without its size. The result has a name if it is
// supported.
#ifdef __aarch64__
constexpr std::string_view kRegisterNames = "x0, %w0 or %sp", kRegisterName = "x0";

// "x0", "w1", "[sp, 16]", "[x19]", "7".
ProbeArgument marker_location(std::string_view where, ProbeArgument out) {
  if (const auto constant = whole_number<std::int64_t>(where)) return constant_of(constant, std::move(out));
  if (take_prefix(where, "[")) {
    if (!where.ends_with(']')) return out;
    where.remove_suffix(1);
    const std::string_view base = take_until(where, ',');
    const std::string_view offset = trimmed(where);
    const auto displacement = offset.empty() ? 0 : whole_number<std::int32_t>(offset);
    if (!displacement) return out;
    out.displacement = *displacement;
    out.source = Source::Memory;
    where = base;
  }
  return at_register(where, std::move(out));
}
#else
constexpr std::string_view kRegisterNames = "rdi, %edi or %di", kRegisterName = "di";

// "%rdi", "-12(%rbp)", "$7".
ProbeArgument marker_location(std::string_view where, ProbeArgument out) {
  if (where.starts_with('$')) return constant_of(whole_number<std::int64_t>(where.substr(1)), std::move(out));
  const auto open = where.find('(');
  if (open != std::string_view::npos) {
    const auto displacement =
        open == 0 ? std::optional<std::int32_t>(0) : whole_number<std::int32_t>(where.substr(0, open));
    if (!where.ends_with(')') || !displacement) return out;
    out.displacement = *displacement;
    where = where.substr(open + 1, where.size() - open - 2);
    out.source = Source::Memory;
  }
  if (!where.starts_with('%')) return out;
  return at_register(where.substr(1), std::move(out));
}
#endif

// A size before the location: "8@%rdi". The result has a name if the location is supported.
ProbeArgument marker_argument(std::string_view text) {
  ProbeArgument out;
  std::string_view where = text;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    std::string_view size = text.substr(0, at);
    out.is_signed = take_prefix(size, "-");
    const auto bytes = whole_number<std::uint8_t>(size);
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return out;
    out.size = *bytes;
    where = text.substr(at + 1);
  }
  return marker_location(where, std::move(out));
}

std::string names_of(std::span<const bpf::FunctionArgument> arguments) {
  std::string names;
  for (const auto& one : arguments) names += (names.empty() ? "" : ", ") + one.name;
  return names.empty() ? "it has none" : "it has " + names;
}

Result<ProbeArgument> of_function(const bpf::FunctionArgument& one) {
  const auto field = bpf::argument_register(one.number);
  if (!field || one.size == 0)
    return use_error(fmt::format("'{}' is not in a single register and cannot be read", one.name));
  ProbeArgument out;
  out.register_offset = field->offset;
  out.size = one.size;
  out.is_signed = one.is_signed;
  if (one.is_pointer) out.shape = Shape::Hex;
  return out;
}

Result<ProbeArgument> at_position(std::size_t number, const KnownArguments& known) {
  if (known.kind == ProbeKind::Marker) {
    if (number > known.marker.size())
      return use_error(fmt::format("arg{}: the marker has {} arguments", number, known.marker.size()));
    const ProbeArgument& found = known.marker[number - 1];
    if (found.name.empty())
      return use_error(fmt::format("arg{}: its location in the marker's note is not supported", number));
    return found;
  }
  if (known.at_return) return use_error("a return probe has no arguments; ret is the return value");
  if (number <= known.function.size()) return of_function(known.function[number - 1]);
  const auto field = bpf::argument_register(number);
  if (!field)
    return use_error(fmt::format("arg{}: only the first {} arguments are in registers; name a register, %{}",
                                 number, bpf::kRegisterArguments, bpf::kStackRegister));
  ProbeArgument out;
  out.register_offset = field->offset;
  return out;
}

Result<ProbeArgument> find_source(const std::string& source, const KnownArguments& known) {
  if (source.starts_with('%')) {
    const auto field = bpf::register_field(std::string_view(source).substr(1));
    if (!field)
      return use_error(fmt::format("there is no register '{}'; for example %{}", source, kRegisterNames));
    ProbeArgument out;
    out.register_offset = field->offset;
    out.size = field->size;
    return out;
  }
  if (const auto named = std::ranges::find(known.named, source, &NamedArgument::source);
      named != known.named.end())
    return named->value;
  if (known.at_return && (source == "ret" || source == "$retval")) {
    ProbeArgument out;
    out.register_offset = bpf::register_field(bpf::kResultRegister)->offset;
    out.is_signed = true;
    return out;
  }
  if (!known.at_return && known.kind == ProbeKind::Kernel) {
    const auto row = std::ranges::find(known.function, source, &bpf::FunctionArgument::name);
    if (row != known.function.end()) return of_function(*row);
  }
  if (const auto number = position_of(source)) return at_position(*number, known);
  if (known.at_return)
    return use_error(
        fmt::format("'{}': a return probe has only ret and registers (%{})", source, bpf::kResultRegister));
  if (known.kind == ProbeKind::Kernel)
    return use_error(fmt::format("the function has no argument '{}'; {}", source, names_of(known.function)));
  if (known.kind == ProbeKind::Marker)
    return use_error(
        fmt::format("'{}': a marker's arguments have no names, but positions: {}=arg1", source, source));
  return use_error(fmt::format("'{}': {}; say where it is: {}=arg1, or {}=%{}", source,
                               known.missing_reason.empty()
                                   ? "names are known at the start of a function that has a name"
                                   : known.missing_reason,
                               last_name(source), last_name(source), kRegisterName));
}

}  // namespace

std::vector<ArgumentRequest> parse_arguments(std::string_view text, std::optional<ArgumentError>& wrong) {
  std::vector<ArgumentRequest> out;
  const auto fail = [&](std::size_t at, std::string what) {
    wrong = ArgumentError{at, std::move(what)};
    return std::vector<ArgumentRequest>();
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = trimmed(text.substr(begin, end - begin));
    const std::size_t at = item.empty() ? begin : static_cast<std::size_t>(item.data() - text.data());
    const std::size_t colon = std::min(item.find(':'), item.size());
    const std::string_view what = trimmed(item.substr(0, colon));
    const std::size_t sign = what.find('=');
    ArgumentRequest one;
    one.source = trimmed(sign == std::string_view::npos ? what : what.substr(sign + 1));
    one.name = sign == std::string_view::npos ? std::string(last_name(one.source))
                                              : std::string(trimmed(what.substr(0, sign)));
    if (one.source == "?") one.name = "what";  // the available names are looked up later
    if (one.name.starts_with('%') || one.name.starts_with('$')) one.name.erase(0, 1);
    if (one.source.empty() || !is_name(one.name))
      return fail(at, "an argument is [NAME=]SOURCE[:TYPE], where SOURCE is a name, arg1 or %REGISTER");
    if (colon != item.size()) {
      one.type = trimmed(item.substr(colon + 1));
      if (std::ranges::find(kTypes, one.type, &TypeRow::name) == std::end(kTypes))
        return fail(at + colon + 1,
                    fmt::format("there is no type '{}'; u8 to u64, s8 to s64, x8 to x64, string, "
                                "ustring",
                                one.type));
    }
    if (std::ranges::find(out, one.name, &ArgumentRequest::name) != out.end())
      return fail(at, fmt::format("there are two '{}'; rename one: other={}", one.name, one.source));
    out.push_back(std::move(one));
    begin = end + 1;
  }
  const auto is_text = [](const ArgumentRequest& one) { return one.type.ends_with("string"); };
  if (out.size() > bpf::kMostProbeArguments ||
      static_cast<std::size_t>(std::ranges::count_if(out, is_text)) > bpf::kMostProbeTexts)
    return fail(0, fmt::format("a probe has at most {} arguments, {} of them texts", bpf::kMostProbeArguments,
                               bpf::kMostProbeTexts));
  return out;
}

std::vector<ProbeArgument> marker_arguments(std::string_view note) {
  constexpr std::size_t kMost = 64;
  std::vector<ProbeArgument> out;
  while (!note.empty() && out.size() < kMost) {
    // "8@[sp, 16]" of arm64 has a space in it.
    const std::size_t open = note.find('['), space = note.find(' ');
    const std::size_t end =
        std::min(open < space ? note.find(' ', note.find(']', open)) : space, note.size());
    if (end != 0) out.push_back(marker_argument(note.substr(0, end)));
    note.remove_prefix(std::min(end + 1, note.size()));
  }
  return out;
}

bool needs_debug_information(const ArgumentRequest& request) {
  const std::string& source = request.source;
  return !source.starts_with('%') && !source.starts_with('$') && !position_of(source);
}

EventRequest output_of(const EventRequest& request) {
  EventRequest output = request;
  output.what = CounterRequest{};
  output.type = format::abi::kSoftware;
  output.config = format::abi::kBpfOutput;
  output.config1 = output.config2 = 0;
  output.probe_target.clear();
  output.condition.clear();
  return output;
}

format::EventAttr probe_attr(const EventRequest& request) {
  format::EventAttr attr;
  attr.type = request.type;
  attr.config = request.config;
  attr.config2 = request.config2;
  attr.sample_period = 1;
  attr.flags = format::abi::kDisabled;
  return attr;
}

Result<std::vector<ProbeArgument>> place_arguments(std::span<const ArgumentRequest> requests,
                                                   const KnownArguments& known) {
  std::vector<ProbeArgument> out;
  for (const ArgumentRequest& request : requests) {
    auto found = find_source(request.source, known);
    if (!found) return std::move(found.error());
    found->name = request.name;
    if (const auto type = std::ranges::find(kTypes, request.type, &TypeRow::name); type != std::end(kTypes)) {
      found->shape = type->shape;
      const bool is_text = type->shape == Shape::UserText;
      if (is_text && known.kind == ProbeKind::Kernel && request.type == "string")
        found->shape = Shape::KernelText;
      // For memory and constants the note has the size.
      if (found->source == Source::Register) found->size = type->size;
      if (!is_text) found->is_signed = type->is_signed;
    }
    out.push_back(std::move(*found));
  }
  return out;
}

}  // namespace tacho::record
