#include "record/events/event_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "record/events/branch_filter.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

constexpr int kMostPrecise = 3;
constexpr std::uint64_t kPreciseMask = std::uint64_t{kMostPrecise} << abi::kPreciseIpShift;

struct Term {
  std::string_view name;
  bool needs_value;  // else it is a switch, which may have 0 or 1
  Result<> (*set)(EventRequest& request, std::string_view value);
};

Result<> set_number(std::uint64_t& field, std::string_view value) {
  const auto number = number_in(value);
  if (!number) return use_error(fmt::format("'{}' is not a number", value));
  field = *number;
  return Done{};
}

Result<> set_count(std::optional<std::uint64_t>& field, std::string_view value) {
  std::uint64_t number = 0;
  if (auto done = set_number(number, value); !done) return done;
  if (number == 0) return use_error("0 is too small");
  field = number;
  return Done{};
}

// "no-inherit", "no-inherit=1"; =0 means the opposite.
Result<bool> switch_in(std::string_view value) {
  if (!value.empty() && value != "0" && value != "1")
    return use_error("'" + std::string(value) + "' is neither 0 nor 1");
  return value != "0";
}

Result<> set_inherit(EventRequest& request, std::string_view value, bool meaning) {
  const auto on = switch_in(value);
  if (!on) return on.error();
  request.inherit = *on == meaning;
  return Done{};
}

// Rings that are written over are set up for a whole recording, not for one event.
Result<> set_overwrite(std::string_view value, bool meaning) {
  const auto on = switch_in(value);
  if (!on) return on.error();
  if (*on != meaning) return Done{};
  return use_error("one event's ring cannot be written over while the others' are kept");
}

Result<> set_call_graph_term(EventRequest& request, std::string_view value) {
  if (value == "no") {
    request.call_graph = CallGraph::None;
    return Done{};
  }
  const auto stacks = parse_call_graph(value);
  if (!stacks) return stacks.error();
  request.call_graph = stacks->method;
  return Done{};
}

constexpr Term kTerms[] = {
    {"name", true,
     [](EventRequest& request, std::string_view value) -> Result<> {
       request.name = value;
       return Done{};
     }},
    {"period", true,
     [](EventRequest& request, std::string_view value) { return set_count(request.period, value); }},
    {"freq", true,
     [](EventRequest& request, std::string_view value) { return set_count(request.frequency, value); }},
    {"hz", true,
     [](EventRequest& request, std::string_view value) { return set_count(request.frequency, value); }},
    {"help", false,
     [](EventRequest& request, std::string_view) -> Result<> {
       request.asks_for_help = !request.recorder.empty();
       return request.asks_for_help ? Result<>(Done{})
                                    : use_error("recorders have it (tacho list recorders)");
     }},
    {"call-graph", true, set_call_graph_term},
    {"stack-size", true,
     [](EventRequest& request, std::string_view value) -> Result<> {
       const auto bytes = parse_stack_bytes(value);
       if (!bytes) return bytes.error();
       request.stack_bytes = *bytes;
       return Done{};
     }},
    {"max-stack", true,
     [](EventRequest& request, std::string_view value) -> Result<> {
       const auto frames = number_in(value);
       if (!frames || *frames == 0 || *frames > kMostStackFrames)
         return use_error(fmt::format("'{}' is no number of frames: 1 to {}", value, kMostStackFrames));
       request.max_frames = static_cast<std::uint16_t>(*frames);
       return Done{};
     }},
    {"branch_type", true,
     [](EventRequest& request, std::string_view value) -> Result<> {
       const auto branches = parse_branch_filter(value);
       if (!branches) return branches.error();
       request.branches = *branches;
       return Done{};
     }},
    {"no-inherit", false,
     [](EventRequest& request, std::string_view value) { return set_inherit(request, value, false); }},
    {"inherit", false,
     [](EventRequest& request, std::string_view value) { return set_inherit(request, value, true); }},
    {"overwrite", false, [](EventRequest&, std::string_view value) { return set_overwrite(value, true); }},
    {"no-overwrite", false,
     [](EventRequest&, std::string_view value) { return set_overwrite(value, false); }},
    {"time", false,
     [](EventRequest&, std::string_view value) -> Result<> {
       const auto on = switch_in(value);
       if (!on) return on.error();
       return *on ? Result<>(Done{})
                  : use_error("records are put in order by their times: every sample has one");
     }},
    {"config", true,
     [](EventRequest& request, std::string_view value) { return set_number(request.config, value); }},
    {"config1", true,
     [](EventRequest& request, std::string_view value) { return set_number(request.config1, value); }},
    {"config2", true,
     [](EventRequest& request, std::string_view value) { return set_number(request.config2, value); }},
};

std::uint64_t& word_of(EventRequest& request, const PmuField& field) {
  if (field.word == 1) return request.config1;
  return field.word == 2 ? request.config2 : request.config;
}

Result<> set_field(EventRequest& request, const PmuField& field, std::uint64_t value) {
  if (const std::uint64_t most = largest_value(field); value > most)
    return use_error(fmt::format("{} is too large: at most {}", value, most));
  word_of(request, field) |= placed(field, value);
  return Done{};
}

// "event=0xcd,umask=0x1,inv": what sysfs says of a named event.
Result<> set_fields(EventRequest& request, const Pmu& pmu, std::string_view terms) {
  while (!terms.empty()) {
    const std::string_view term = terms.substr(0, terms.find(','));
    terms.remove_prefix(std::min(term.size() + 1, terms.size()));
    const std::string_view name = term.substr(0, term.find('='));
    const auto value = name.size() == term.size() ? std::optional<std::uint64_t>(1)
                                                  : number_in(term.substr(name.size() + 1));
    const auto field = std::ranges::find(pmu.fields, name, &PmuField::name);
    if (field == pmu.fields.end() || !value)
      return use_error(fmt::format("this kernel describes it as '{}', which is not understood", term));
    if (auto done = set_field(request, *field, *value); !done) return done;
  }
  return Done{};
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> raw_number(std::string_view word) {
  constexpr std::size_t kMostDigits = 16;
  const std::string_view digits = word.substr(std::min<std::size_t>(word.size(), 1));
  if (!word.starts_with('r') || digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
  return number_in("0x" + std::string(digits));
}

std::vector<std::string> general_term_names() {
  std::vector<std::string> names;
  for (const Term& term : kTerms) names.emplace_back(term.name);
  return names;
}

std::optional<Result<>> set_general_term(EventRequest& request, const TermText& term) {
  const auto row = std::ranges::find(kTerms, term.name, &Term::name);
  if (row == std::end(kTerms)) return std::nullopt;
  if (row->needs_value && !term.has_value) return Result<>(use_error("it needs a value"));
  if (term.has_value && term.value.empty()) return Result<>(use_error("the value is empty"));
  return row->set(request, term.value);
}

std::optional<Result<>> set_pmu_term(EventRequest& request, const Pmu& pmu, const TermText& term) {
  if (!term.has_value) {
    const auto event = std::ranges::find(pmu.events, term.name, &PmuEvent::name);
    if (event != pmu.events.end()) return set_fields(request, pmu, event->terms);
  }
  const auto field = std::ranges::find(pmu.fields, term.name, &PmuField::name);
  if (field == pmu.fields.end()) return std::nullopt;
  const auto value = term.has_value ? number_in(term.value) : std::optional<std::uint64_t>(1);
  if (!value) return Result<>(use_error(fmt::format("'{}' is not a number", term.value)));
  return set_field(request, *field, *value);
}

bool are_modifiers(std::string_view letters) {
  return letters.find_first_not_of("ukhpPGHSDIWeb") == std::string_view::npos;
}

std::optional<LetterError> set_modifiers(EventRequest& request, std::string_view letters, Modify what) {
  if (letters.empty())
    return LetterError{0, "a modifier is missing; known: u (user), k (kernel), h, p, P, G, H, I, S, D, e"};
  constexpr std::uint64_t kSides = abi::kExcludeUser | abi::kExcludeKernel | abi::kExcludeHv;
  constexpr std::uint64_t kGuests = abi::kExcludeHost | abi::kExcludeGuest;
  std::uint64_t flags = request.flags;
  if (what == Modify::Event) flags &= ~(kSides | kGuests | kPreciseMask);
  const auto only_side = [&flags](std::uint64_t side) {
    if ((flags & kSides) == 0) flags |= kSides;
    flags &= ~side;
  };
  const auto only_guests = [&](std::uint64_t side) {
    if (!request.names_guests) flags |= kGuests;
    request.names_guests = true;
    flags &= ~side;
  };
  std::uint64_t precise = (flags & kPreciseMask) >> abi::kPreciseIpShift;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    if (letter != 'p' && letters.find(letter) < i)
      return LetterError{i, fmt::format("the modifier '{}' stands here twice", letter)};
    switch (letter) {
      case 'u':
        only_side(abi::kExcludeUser);
        break;
      case 'k':
        only_side(abi::kExcludeKernel);
        break;
      case 'h':
        only_side(abi::kExcludeHv);
        break;
      case 'G':
        only_guests(abi::kExcludeGuest);
        break;
      case 'H':
        only_guests(abi::kExcludeHost);
        break;
      case 'I':
        flags |= abi::kExcludeIdle;
        break;
      case 'D':
        flags |= abi::kPinned;
        break;
      case 'e':
        flags |= abi::kExclusive;
        break;
      case 'S':
        request.reads_group = true;
        break;
      case 'P':
        request.most_precise = true;
        break;
      case 'p':
        ++precise;
        break;
      case 'W':
      case 'b':
        break;  // of groups that may be broken up, and of counting: a sample is the same with and without
      default:
        return LetterError{
            i, fmt::format("unknown modifier '{}'; known: u (user), k (kernel), h (hypervisor), p and P "
                           "(precise), G and H (guest, host), I (not when idle), S (read the group), D "
                           "(pinned), e (exclusive)",
                           letter)};
    }
    // What the host's user does and what is precise cannot be a guest's, unless guests were named.
    if ((letter == 'u' || letter == 'p') && !request.names_guests) flags |= abi::kExcludeGuest;
    if (precise > kMostPrecise) return LetterError{i, "at most ppp"};
  }
  request.flags = (flags & ~kPreciseMask) | precise << abi::kPreciseIpShift;
  return std::nullopt;
}

std::string hint_at(const EventRequest& object, std::string_view text, std::size_t at) {
  const std::size_t last = text.rfind('/');
  if (object.kind != EventKind::BpfObject || object.constants.empty() || text[at - 1] != '/' || last < at)
    return {};
  const std::size_t equals = text.rfind('=', at - 1);
  if (equals == std::string_view::npos) return {};
  const std::string_view rest = text.substr(equals + 1, last - equals - 1);
  const std::string_view value = rest.substr(0, rest.find(','));
  if (value.find_first_of("'\"") != std::string_view::npos) return {};
  return fmt::format("; a value with a slash needs quotes: {}='{}'", object.constants.back().name, value);
}

}  // namespace tacho::record
