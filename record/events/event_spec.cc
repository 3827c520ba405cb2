#include "record/events/event_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "cli/nearest.h"
#include "record/events/event_names.h"
#include "record/events/probe_arguments.h"
#include "record/events/recorders.h"
#include "record/events/sample_fields.h"
#include "record/parse_text.h"

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

// The value of a switch: "no-inherit", "no-inherit=1"; =0 means the opposite.
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

// Overwritten rings are for a whole recording, not for one event.
Result<> set_overwrite(std::string_view value, bool meaning) {
  const auto on = switch_in(value);
  if (!on) return on.error();
  if (*on != meaning) return Done{};
  return use_error("--overwrite is for all events, not for one");
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
                                    : use_error("only recorders have it (tacho list recorders)");
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
         return use_error(fmt::format("'{}' is not a number of frames: 1 to {}", value, kMostStackFrames));
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
       return *on ? Result<>(Done{}) : use_error("records are sorted by time, so every sample has a time");
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

// Parses "event=0xcd,umask=0x1,inv", the description of a named event in sysfs.
Result<> set_fields(EventRequest& request, const Pmu& pmu, std::string_view terms) {
  while (!terms.empty()) {
    const std::string_view term = take_until(terms, ',');
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
  const bool is_hexadecimal = take_prefix(text, "0x") || take_prefix(text, "0X");
  return whole_number<std::uint64_t>(text, is_hexadecimal ? 16 : 10);
}

std::optional<std::uint64_t> raw_number(std::string_view word) {
  constexpr std::size_t kMostDigits = 16;
  const std::string_view digits = word.substr(std::min<std::size_t>(word.size(), 1));
  if (!word.starts_with('r') || digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
  return whole_number<std::uint64_t>(digits, 16);
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
      return LetterError{i, fmt::format("the modifier '{}' is given twice", letter)};
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
        break;  // weak groups, and counting: no effect on samples
      default:
        return LetterError{
            i, fmt::format("unknown modifier '{}'; known: u (user), k (kernel), h (hypervisor), p and P "
                           "(precise), G and H (guest, host), I (not when idle), S (read the group), D "
                           "(pinned), e (exclusive)",
                           letter)};
    }
    // Events of the host's user code and precise ones exclude guests, unless G or H was given.
    if ((letter == 'u' || letter == 'p') && !request.names_guests) flags |= abi::kExcludeGuest;
    if (precise > kMostPrecise) return LetterError{i, "at most ppp"};
  }
  request.flags = (flags & ~kPreciseMask) | precise << abi::kPreciseIpShift;
  return std::nullopt;
}

std::string hint_at(const EventRequest& object, std::string_view text, std::size_t at) {
  const std::size_t last = text.rfind('/');
  if (object.constants().empty() || text[at - 1] != '/' || last < at) return {};
  const std::size_t equals = text.rfind('=', at - 1);
  if (equals == std::string_view::npos) return {};
  const std::string_view rest = text.substr(equals + 1, last - equals - 1);
  const std::string_view value = rest.substr(0, rest.find(','));
  if (value.find_first_of("'\"") != std::string_view::npos) return {};
  return fmt::format("; a value with a slash needs quotes: {}='{}'", object.constants().back().name, value);
}

namespace {

// Events of perf stat, which have no samples.
constexpr std::string_view kToolEvents[] = {"duration_time", "user_time", "system_time"};
// Names of global variables, their members and elements.
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]";
constexpr std::uint64_t kDefaultBreakpointBytes = 4;  // perf's, and the kernel's for data

class Parser {
 public:
  Parser(std::string_view text, const Pmus& pmus) : text_(text), pmus_(pmus) {}

  Result<std::vector<EventRequest>> events() {
    std::vector<EventRequest> out;
    do {
      auto done = begins_group() ? group(out) : event(out);
      if (!done) return std::move(done.error());
    } while (accept(','));
    if (at_ == text_.size()) return out;
    return wrong(at_, fmt::format("'{}' has no meaning here", text_[at_]) + hint_at(out.back(), text_, at_));
  }

 private:
  using Requests = std::vector<EventRequest>;

  // "{a,b}", "name{a,b}"
  bool begins_group() const {
    const std::size_t brace = text_.find_first_of(",/:={", at_);
    return brace != std::string_view::npos && text_[brace] == '{';
  }

  Result<> group(Requests& out) {
    const std::size_t first = out.size();
    const std::string_view name = until("{");
    const std::size_t brace = at_++;
    do {
      if (auto done = event(out); !done) return done;
    } while (accept(','));
    if (!accept('}'))
      return wrong(at_, fmt::format("the closing '}}' of the group at column {} is missing", brace + 1));
    ++groups_;
    for (std::size_t i = first; i < out.size(); ++i) {
      if (out[i].object() != nullptr) return wrong(brace, "a BPF object cannot be in a group");
      out[i].group = groups_;
      out[i].group_name = name;
    }
    if (!accept(':')) return Done{};
    return modifiers(out, first, Modify::Group);
  }

  // One event in the text; a PMU's name may match several PMUs.
  Result<> event(Requests& out) {
    const std::size_t begin = at_, first = out.size();
    Result<> done = Done{};
    if (const std::size_t size = object_path_size()) {
      EventRequest& request = out.emplace_back();
      request.what =
          ObjectRequest{.path = std::string(text_.substr(at_, size)), .bindings = {}, .constants = {}};
      at_ += size;
      if (accept('/')) done = object_terms(request, begin);
    } else if (const RecorderRow* row = recorder_at(text_.substr(at_))) {
      EventRequest& request = out.emplace_back(request_of(*row));
      at_ += row->name.size();
      const bool has_terms = accept('/'), is_object = request.object() != nullptr;
      if (has_terms) done = is_object ? object_terms(request, begin) : terms(request, nullptr);
      if (done && !is_object) done = event_modifiers(out);
    } else {
      done = named_event(out);
    }
    if (!done) return done;
    for (std::size_t i = first; i < out.size(); ++i) {
      out[i].text = text_.substr(begin, at_ - begin);
      const bool is_named = !out[i].name.empty() || out[i].object() != nullptr;
      if (!is_named) out[i].name = out[i].text;
    }
    return Done{};
  }

  // The length of an object's or C source's path at this position: the longest text that ends with .o or .c
  // before a slash, a comma or the end. 0: there is none.
  std::size_t object_path_size() const {
    const std::string_view rest = text_.substr(at_);
    const std::size_t limit = std::min(rest.find_first_of(",:={}"), rest.size());
    for (std::size_t end = limit; end >= 3; --end) {
      const std::string_view path = rest.substr(0, end);
      const bool ends_here = end == rest.size() || rest[end] == ',' || rest[end] == '/' || rest[end] == '}';
      if (ends_here && (path.ends_with(".o") || path.ends_with(".c"))) return end;
    }
    return 0;
  }

  Result<> named_event(Requests& out) {
    const std::size_t begin = at_;
    const std::string_view first = word();
    if (first.empty()) return wrong(begin, "an event's name is missing");
    if (first == "mem" && peek() == ':') return breakpoint(out);
    const auto probe_row = std::ranges::find(kProbes, first, &ProbeRow::word);
    if (probe_row != std::end(kProbes) && peek() == ':') {
      probe_begin_ = begin;
      return probe(out, *probe_row);
    }
    if (const auto known = find_named_event(first)) return counter(out, known->type, known->config);
    if (const auto raw = raw_number(first)) return counter(out, abi::kRaw, *raw);
    if (peek() == '/') return pmu_event(out, begin, first);
    if (const auto type = number_in(first); type && peek() == ':') return numbered(out, begin, *type);
    if (const auto found = pmus_.with_event(first)) return pmu_alias(out, begin, *found);
    const bool is_name =
        std::ranges::find(kToolEvents, first) == std::end(kToolEvents) && cache_event_error(first).empty();
    if (peek() != ':' || !is_name || first.find('-') != std::string_view::npos)
      return unknown_event(begin, first);
    return tracepoint(out, begin, first);
  }

  Result<> tracepoint(Requests& out, std::size_t begin, std::string_view system) {
    ++at_;
    const std::size_t second_begin = at_;
    const std::string_view name = word();
    if (name.empty())
      return wrong(second_begin, fmt::format("the tracepoint's name is missing after '{}:'", system));
    EventRequest& request = out.emplace_back();
    request.what = TracepointRequest{.system = std::string(system), .name = std::string(name), .needs = {}};
    request.type = abi::kTracepoint;
    const std::string written(text_.substr(begin, at_ - begin));
    if (accept('/')) {
      if (auto done = terms(request, nullptr); !done) return done;
    }
    const std::size_t letters = at_;
    if (auto done = event_modifiers(out); !done) return done;
    if (request.name.empty()) {
      const std::string_view after = text_.substr(letters, at_ - letters);
      request.name = written + (after.empty() || after.starts_with(':') ? "" : ":") + std::string(after);
    }
    return Done{};
  }

  Result<> counter(Requests& out, std::uint32_t type, std::uint64_t config) {
    EventRequest& request = out.emplace_back();
    request.type = type;
    request.config = config;
    if (accept('/')) {
      if (auto done = terms(request, nullptr); !done) return done;
    }
    return event_modifiers(out);
  }

  // "1:0x2": type and config as numbers.
  Result<> numbered(Requests& out, std::size_t begin, std::uint64_t type) {
    ++at_;
    const std::size_t config_begin = at_;
    const std::string_view text = word();
    const auto config = number_in(text);
    if (!config) return wrong(config_begin, fmt::format("'{}' is not a number; TYPE:CONFIG takes two", text));
    if (type > ~std::uint32_t{0}) return wrong(begin, "a type has 32 bits");
    return counter(out, static_cast<std::uint32_t>(type), *config);
  }

  // "mem:ADDRESS[/LENGTH][:rwx][:modifiers]": the colon after "mem" is next.
  Result<> breakpoint(Requests& out) {
    ++at_;
    const std::size_t address_begin = at_;
    const auto address = number_in(word());
    if (!address) return wrong(address_begin, "an address is missing, such as mem:0x404060");
    EventRequest& request = out.emplace_back();
    request.type = abi::kBreakpoint;
    request.config1 = *address;
    request.bp_type = 3;  // read and written
    std::optional<std::uint64_t> length;
    if (accept('/')) {
      const std::size_t length_begin = at_;
      length = number_in(word());
      if (!length || (*length != 1 && *length != 2 && *length != 4 && *length != 8))
        return wrong(length_begin, "a length of 1, 2, 4 or 8 bytes is missing");
    }
    const std::string_view access = text_.substr(std::min(at_ + 1, text_.size()));
    if (peek() == ':' && !access.empty() &&
        std::string_view("rwx").find(access.front()) != std::string_view::npos) {
      ++at_;
      if (auto done = access_letters(request); !done) return done;
    }
    const std::uint64_t usual = request.bp_type == 4 ? sizeof(long) : kDefaultBreakpointBytes;
    request.config2 = length.value_or(usual);
    return event_modifiers(out);
  }

  Result<> access_letters(EventRequest& request) {
    const std::size_t begin = at_;
    const std::string_view letters = word();
    request.bp_type = 0;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const auto bit = std::string_view("rwx").find(letters[i]);
      if (bit == std::string_view::npos)
        return wrong(
            begin + i,
            fmt::format("'{}' is not a kind of access; known: r (read), w (write), x (execute)", letters[i]));
      const std::uint32_t one = 1U << bit;
      if ((request.bp_type & one) != 0)
        return wrong(begin + i, fmt::format("'{}' is given twice", letters[i]));
      request.bp_type |= one;
    }
    return Done{};
  }

  // "uprobe:FILE:FUNCTION[+OFFSET]", "uprobe:FILE:OFFSET", "kprobe:FUNCTION[+OFFSET]",
  // "usdt:FILE:PROVIDER:NAME". The position is at the colon after the first word.
  Result<> probe(Requests& out, const ProbeRow& row) {
    EventRequest& request = out.emplace_back();
    ProbeRequest& probe = request.what.emplace<ProbeRequest>();
    probe.kind = row.kind;
    probe.at_return = row.at_return;
    std::size_t begin = ++at_;
    const auto missing = [&](std::string_view what) {
      return wrong(begin, fmt::format("{} is missing, as in {}", what, row.example));
    };
    if (row.kind != ProbeKind::Kernel) {
      probe.path = until(":,{}");
      if (probe.path.empty()) return missing("a file");
      begin = at_;
      if (!accept(':')) return missing(row.kind == ProbeKind::Marker ? "a provider" : "a function");
      begin = at_;
    }
    if (row.kind == ProbeKind::Marker) {
      probe.provider = word();
      if (probe.provider.empty()) return missing("a provider");
      begin = at_;
      if (!accept(':')) return missing("a marker");
      begin = at_;
    }
    constexpr const char* kEnd = ",/:={}(";
    for (until(kEnd); text_.substr(at_).starts_with("::"); until(kEnd)) at_ += 2;  // "::" of a C++ name
    const std::string_view function = text_.substr(begin, at_ - begin);
    if (function.empty()) return missing(row.kind == ProbeKind::Marker ? "a marker" : "a function");
    if (auto done = probe_place(probe, function, begin); !done) return done;
    if (auto done = peek() == '(' ? arguments(request) : Result<>(Done{}); !done) return done;
    if (accept('/')) {
      if (auto done = terms(request, nullptr); !done) return done;
    }
    return event_modifiers(out);
  }

  // "(arg1, size=arg2:u32)": the opening parenthesis is next. The event is named without them.
  Result<> arguments(EventRequest& request) {
    const std::size_t open = at_++, begin = at_;
    const std::string_view text = until(")");
    if (!accept(')')) return wrong(open, "the closing ')' is missing");
    std::optional<ArgumentError> error;
    request.arguments = parse_arguments(text, error);
    if (error) return wrong(begin + error->at, error->what);
    request.name = text_.substr(probe_begin_, open - probe_begin_);
    return Done{};
  }

  // "malloc", "malloc+0x10", or in a file "0x9a0c0".
  Result<> probe_place(ProbeRequest& probe, std::string_view text, std::size_t begin) const {
    const std::size_t plus = std::min(text.find('+'), text.size());
    probe.function = text.substr(0, plus);
    if (probe.kind == ProbeKind::User && probe.function.starts_with("0x")) {
      const auto offset = number_in(probe.function);
      if (!offset || plus != text.size())
        return wrong(begin, fmt::format("'{}' is not an offset in a file", text));
      probe.offset = *offset;
      probe.function.clear();
      return Done{};
    }
    if (plus == text.size()) return Done{};
    const auto offset = number_in(text.substr(plus + 1));
    if (!offset) return wrong(begin + plus + 1, "a number of bytes is missing, as in malloc+0x10");
    if (probe.at_return) return wrong(begin + plus, "a return probe has no offset");
    probe.offset = *offset;
    return Done{};
  }

  // "cpu/event=0x3c,umask=1/". The position is at the slash after the name.
  Result<> pmu_event(Requests& out, std::size_t begin, std::string_view name) {
    const std::vector<Pmu> pmus = pmus_.matching(name);
    if (pmus.empty()) return unknown_pmu(begin, name);
    const std::size_t terms_begin = at_ + 1, first = out.size();
    for (const Pmu& pmu : pmus) {
      EventRequest& request = out.emplace_back();
      request.type = pmu.type;
      at_ = terms_begin;
      if (auto done = terms(request, &pmu); !done) return done;
    }
    return event_modifiers(out, first);
  }

  // The name of an event of a PMU, without the PMU.
  Result<> pmu_alias(Requests& out, std::size_t begin, const std::pair<Pmu, std::string>& found) {
    const std::string_view name = text_.substr(begin, at_ - begin);
    EventRequest& request = out.emplace_back();
    request.type = found.first.type;
    const auto done = set_pmu_term(request, found.first, {name, {}, false});
    if (done && !*done) return wrong(begin, fmt::format("{}: {}", name, done->error().what));
    return event_modifiers(out);
  }

  // Reads terms up to the closing slash. The position is after the opening one.
  Result<> terms(EventRequest& request, const Pmu* pmu) {
    while (!accept('/')) {
      const std::size_t begin = at_;
      TermText term{until(",/="), {}, false};
      term.has_value = accept('=');
      const std::size_t value_begin = at_;
      if (term.has_value) term.value = until(",/");
      auto done = pmu != nullptr ? set_pmu_term(request, *pmu, term) : std::nullopt;
      if (!done) done = set_general_term(request, term);
      if (!done) return unknown_term(begin, term.name, pmu);
      if (!*done)
        return wrong(term.has_value ? value_begin : begin,
                     fmt::format("{}: {}", term.name, done->error().what));
      if (peek() == '\0') return wrong(at_, "the closing '/' is missing");
      accept(',');
    }
    if (request.period && request.frequency) return wrong(at_ - 1, "period and freq exclude each other");
    return Done{};
  }

  // The letters after a colon, or directly after the slash that closes the terms.
  Result<> event_modifiers(Requests& out) { return event_modifiers(out, out.size() - 1); }
  Result<> event_modifiers(Requests& out, std::size_t first) {
    const bool has_terms = at_ > 0 && text_[at_ - 1] == '/';
    const bool follow = at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}';
    if (!accept(':') && !(has_terms && follow)) return Done{};
    return modifiers(out, first, Modify::Event);
  }

  Result<> modifiers(Requests& out, std::size_t first, Modify what) {
    const std::size_t begin = at_;
    const std::string_view letters = word();
    for (std::size_t i = first; i < out.size(); ++i) {
      if (const auto error = set_modifiers(out[i], letters, what))
        return wrong(begin + error->at, error->what);
      if (what == Modify::Event) out[i].name_has_modifiers = out[i].name.empty();
    }
    return Done{};
  }

  // "map:NAME.event=EVENT,GLOBAL=VALUE[,...]/" of an object that begins at `begin`. The position is after the
  // opening slash.
  Result<> object_terms(EventRequest& request, std::size_t begin) {
    while (!accept('/')) {
      const bool is_binding = text_.substr(at_).starts_with("map:");
      auto done = is_binding ? binding(request) : constant(request, begin);
      if (!done) return done;
      if (peek() == '\0') return wrong(at_, "the closing '/' is missing");
      if (peek() != ',' && peek() != '/') return wrong(at_, "a comma or the closing '/' is missing");
      accept(',');
    }
    return Done{};
  }

  Result<> binding(EventRequest& request) {
    const std::size_t begin = at_;
    const std::string_view key = until(",/=");
    constexpr std::string_view kMap = "map:", kEvent = ".event";
    if (!key.ends_with(kEvent) || key.size() <= kMap.size() + kEvent.size())
      return wrong(begin, fmt::format("'{}' is not understood; an object takes map:MAP.event=EVENT", key));
    if (!accept('=')) return wrong(at_, fmt::format("the name of an event is missing: {}=EVENT", key));
    const std::string_view event = until(",/");
    if (event.empty()) return wrong(at_, "the name of the event is missing after '='");
    const std::size_t name_size = key.size() - kMap.size() - kEvent.size();
    request.object()->bindings.push_back(
        {std::string(key.substr(kMap.size(), name_size)), std::string(event)});
    return Done{};
  }

  // "min_bytes=4096", "path='/usr/lib'": interpreted later, by the object's types.
  Result<> constant(EventRequest& request, std::size_t object_begin) {
    const std::size_t begin = at_;
    const std::string_view name = until(",/=");
    const bool is_name = !name.empty() && name.find_first_not_of(kNameLetters) == std::string_view::npos &&
                         std::string_view("0123456789.[]").find(name.front()) == std::string_view::npos;
    if (!is_name)
      return wrong(begin, fmt::format("'{}' is not understood; an object takes map:MAP.event=EVENT and "
                                      "GLOBAL=VALUE, for its `const volatile` globals",
                                      name));
    if (name == "help" && peek() != '=') {
      request.asks_for_help = true;
      return Done{};
    }
    ConstantSetting setting{std::string(name), std::nullopt, begin - object_begin, begin - object_begin};
    if (accept('=')) {
      const char quote = peek() == '"' || peek() == '\'' ? peek() : '\0';
      const std::size_t value_begin = quote == '\0' ? at_ : ++at_;
      setting.value_at = value_begin - object_begin;
      setting.value = until(quote == '\0' ? ",/" : std::string_view(&quote, 1));
      if (quote != '\0' && !accept(quote))
        return wrong(value_begin - 1, fmt::format("the closing {} is missing", quote));
    }
    request.object()->constants.push_back(std::move(setting));
    return Done{};
  }

  // What to write instead of `name`: another tool's events, or the nearest of `names` and the recorders.
  static std::string event_or_tool(std::string_view name, std::vector<std::string> names) {
    std::string tail = instead_of_tool(name);
    if (!tail.empty()) return tail;
    for (const RecorderRow& row : recorders()) names.emplace_back(row.name);
    return cli::suggestion(name, names);
  }

  Error unknown_event(std::size_t at, std::string_view name) const {
    if (std::ranges::find(kToolEvents, name) != std::end(kToolEvents))
      return wrong(at, fmt::format("'{}' only counts and has no samples; tacho stat prints the times", name));
    if (const std::string reason = cache_event_error(name); !reason.empty())
      return wrong(at, fmt::format("there is no '{}': {}", name, reason));
    std::vector<std::string> names;
    for (const ListedEvent& event : named_events()) {
      names.push_back(event.name);
      if (!event.alias.empty()) names.push_back(event.alias);
    }
    std::string tail = event_or_tool(name, std::move(names));
    if (tail.empty()) {
      tail =
          "; known: cycles, cpu-clock and others (tacho list), recorders (tacho list recorders), "
          "SUBSYSTEM:TRACEPOINT, PMU/TERMS/, rNNN, mem:ADDRESS, ./PROGRAM.bpf.o";
    }
    return wrong(at, fmt::format("unknown event '{}'{}", name, tail));
  }

  Error unknown_pmu(std::size_t at, std::string_view name) const {
    const std::vector<std::string> pmus = pmus_.names();
    std::string tail = event_or_tool(name, pmus);
    if (tail.empty())
      tail = fmt::format("; there are: {}; recorders: tacho list recorders", fmt::join(pmus, ", "));
    if (name == "cpu") tail = ": this machine has no CPU counters; cpu-clock samples by time";
    return wrong(at, fmt::format("there is no PMU '{}' here{}", name, tail));
  }

  Error unknown_term(std::size_t at, std::string_view name, const Pmu* pmu) const {
    std::vector<std::string> names;
    if (pmu != nullptr) {
      for (const PmuField& field : pmu->fields) names.push_back(field.name);
      for (const PmuEvent& event : pmu->events) names.push_back(event.name);
    }
    const std::vector<std::string> general = general_term_names();
    names.insert(names.end(), general.begin(), general.end());
    std::string tail = cli::suggestion(name, names);
    if (tail.empty()) {
      constexpr std::size_t kMostShown = 40;
      const std::size_t shown = std::min(names.size(), kMostShown);
      tail = fmt::format("; known: {}{}",
                         fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), " "),
                         shown < names.size() ? " ..." : "");
    }
    const std::string whose = pmu != nullptr ? fmt::format(" of PMU {}", pmu->name) : "";
    return wrong(at, fmt::format("unknown term '{}'{}{}", name, whose, tail));
  }

  Error wrong(std::size_t at, std::string_view message) const { return error_at(text_, at, message); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char letter) {
    if (peek() != letter || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  std::string_view until(std::string_view ends) {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }
  std::string_view word() { return until(",/:={}"); }

  std::string_view text_;
  const Pmus& pmus_;
  std::size_t at_ = 0;
  std::size_t groups_ = 0;
  std::size_t probe_begin_ = 0;  // start of the current probe
};

}  // namespace

Result<std::vector<EventRequest>> parse_events(std::string_view text, const Pmus& pmus) {
  const auto parse = [&pmus](std::string_view part) { return Parser(part, pmus).events(); };
  auto events = parse(text);
  return events ? with_their_probes(std::move(*events), parse) : std::move(events);
}

}  // namespace tacho::record
