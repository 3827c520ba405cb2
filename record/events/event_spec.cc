#include "record/events/event_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "cli/nearest.h"
#include "format/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

struct SoftwareEvent {
  std::string_view name;
  std::uint64_t config;
};

// perf's names and their short forms.
constexpr SoftwareEvent kSoftwareEvents[] = {
    {"cpu-clock", abi::kCpuClock},
    {"task-clock", abi::kTaskClock},
    {"page-faults", abi::kPageFaults},
    {"faults", abi::kPageFaults},
    {"minor-faults", abi::kMinorFaults},
    {"major-faults", abi::kMajorFaults},
    {"context-switches", abi::kContextSwitches},
    {"cs", abi::kContextSwitches},
    {"cpu-migrations", abi::kCpuMigrations},
    {"migrations", abi::kCpuMigrations},
    {"alignment-faults", abi::kAlignmentFaults},
    {"emulation-faults", abi::kEmulationFaults},
    {"dummy", abi::kDummy},
    {"bpf-output", abi::kBpfOutput},
};

// Known to perf, not to us: named so that the message can say more than "unknown".
constexpr std::string_view kHardwareEvents[] = {"cycles",
                                                "cpu-cycles",
                                                "instructions",
                                                "cache-references",
                                                "cache-misses",
                                                "branches",
                                                "branch-misses",
                                                "bus-cycles",
                                                "ref-cycles",
                                                "stalled-cycles-frontend",
                                                "stalled-cycles-backend"};

Result<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) {
    return use_error(fmt::format("'{}' is not a number", text));
  }
  return value;
}

// One thing that may stand between the slashes of a software event or a tracepoint.
struct Term {
  std::string_view name;
  bool needs_value;  // else it is a switch, which may have 0 or 1
  Result<> (*set)(EventRequest& request, std::string_view value);
};

Result<> set_count(std::optional<std::uint64_t>& field, std::string_view value) {
  const auto number = number_of(value);
  if (!number) return number.error();
  if (*number == 0) return use_error("0 is too small");
  field = *number;
  return Done{};
}

// "no-inherit", "no-inherit=1"; =0 means the opposite.
Result<> set_switch(bool& field, std::string_view value, bool meaning) {
  if (!value.empty() && value != "0" && value != "1")
    return use_error("'" + std::string(value) + "' is neither 0 nor 1");
  field = value == "0" ? !meaning : meaning;
  return Done{};
}

constexpr Term kTerms[] = {
    {"name", true,
     [](EventRequest& request, std::string_view value) -> Result<> {
       if (value.empty()) return use_error("the name is empty");
       request.name = value;
       return Done{};
     }},
    {"period", true,
     [](EventRequest& request, std::string_view value) { return set_count(request.period, value); }},
    {"freq", true,
     [](EventRequest& request, std::string_view value) { return set_count(request.frequency, value); }},
    {"no-inherit", false,
     [](EventRequest& request, std::string_view value) { return set_switch(request.inherit, value, false); }},
    {"inherit", false,
     [](EventRequest& request, std::string_view value) { return set_switch(request.inherit, value, true); }},
};

std::vector<std::string> term_names() {
  std::vector<std::string> names;
  for (const Term& term : kTerms) names.emplace_back(term.name);
  return names;
}

const SoftwareEvent* find_software_event(std::string_view name) {
  const auto row = std::ranges::find(kSoftwareEvents, name, &SoftwareEvent::name);
  return row == std::end(kSoftwareEvents) ? nullptr : row;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<EventRequest>> events() {
    std::vector<EventRequest> out;
    do {
      auto request = event();
      if (!request) return std::move(request.error());
      out.push_back(std::move(*request));
    } while (accept(','));
    if (at_ < text_.size()) return wrong(at_, "'" + std::string(1, text_[at_]) + "' has no meaning here");
    return out;
  }

 private:
  Result<EventRequest> event() {
    const std::size_t begin = at_;
    if (peek() == '{')
      return wrong(at_, "groups of events ({a,b}) are not supported yet; list them without braces");
    EventRequest request;
    Result<> done = Done{};
    if (const std::size_t size = object_path_size()) {
      request.kind = EventKind::BpfObject;
      request.path = text_.substr(at_, size);
      at_ += size;
      if (accept('/')) done = bindings(request);
    } else {
      done = named_event(request);
    }
    if (!done) return std::move(done.error());
    request.text = text_.substr(begin, at_ - begin);
    return request;
  }

  // The length of the path of an object or C source that stands here: the longest text that ends in .o or .c
  // before a slash, a comma or the end. 0 when there is none.
  std::size_t object_path_size() const {
    const std::string_view rest = text_.substr(at_);
    const std::size_t limit = std::min(rest.find_first_of(",:={}"), rest.size());
    for (std::size_t end = limit; end >= 3; --end) {
      const std::string_view path = rest.substr(0, end);
      const bool ends_here = end == rest.size() || rest[end] == ',' || rest[end] == '/';
      if (ends_here && (path.ends_with(".o") || path.ends_with(".c"))) return end;
    }
    return 0;
  }

  Result<> named_event(EventRequest& request) {
    const std::size_t begin = at_;
    const std::string_view first = word();
    if (first.empty()) return wrong(begin, "an event's name is missing");
    if (const SoftwareEvent* software = find_software_event(first)) {
      request.config = software->config;
      request.name = first;
      return rest_of_event(request);
    }
    if (peek() != ':' || std::ranges::find(kHardwareEvents, first) != std::end(kHardwareEvents)) {
      return unknown_event(begin, first);
    }
    ++at_;
    const std::size_t second_begin = at_;
    const std::string_view second = word();
    if (second.empty())
      return wrong(second_begin, fmt::format("the tracepoint's name is missing after '{}:'", first));
    if (first.find('-') != std::string_view::npos) return unknown_event(begin, first);
    request.kind = EventKind::Tracepoint;
    request.system = first;
    request.tracepoint = second;
    request.name = text_.substr(begin, at_ - begin);
    return rest_of_event(request);
  }

  // Terms between slashes and modifiers after a colon, in either order of their own kind.
  Result<> rest_of_event(EventRequest& request) {
    if (accept('/')) {
      if (auto done = terms(request); !done) return done;
    }
    if (accept(':')) {
      if (auto done = modifiers(request); !done) return done;
    }
    return Done{};
  }

  Result<> terms(EventRequest& request) {
    while (!accept('/')) {
      const std::size_t begin = at_;
      const std::string_view name = until(",/=");
      const auto term = std::ranges::find(kTerms, name, &Term::name);
      if (term == std::end(kTerms)) return unknown_term(begin, name);
      const bool has_value = accept('=');
      const std::size_t value_begin = at_;
      const std::string_view value = has_value ? until(",/") : std::string_view{};
      if (term->needs_value && !has_value) return wrong(begin, fmt::format("'{}' needs a value", name));
      if (has_value && value.empty()) return wrong(value_begin, fmt::format("{}: the value is empty", name));
      if (auto done = term->set(request, value); !done) {
        return wrong(value_begin, fmt::format("{}: {}", name, done.error().what));
      }
      if (peek() == '\0') return not_closed();
      accept(',');
    }
    if (request.period && request.frequency) return wrong(at_ - 1, "period and freq exclude each other");
    return Done{};
  }

  Result<> modifiers(EventRequest& request) {
    const std::size_t begin = at_;
    const std::string_view letters = word();
    bool user = false, kernel = false;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      user |= letters[i] == 'u';
      kernel |= letters[i] == 'k';
      if (letters[i] != 'u' && letters[i] != 'k') {
        return wrong(begin + i,
                     std::string("unknown modifier '") + letters[i] + "'; known: u (user), k (kernel)");
      }
    }
    if (!user && !kernel) return wrong(begin, "a modifier is missing; known: u (user), k (kernel)");
    request.exclude_user = !user;
    request.exclude_kernel = !kernel;
    if (request.name.find(':') == std::string::npos || request.kind == EventKind::Tracepoint) {
      request.name.append(1, ':').append(letters);
    }
    return Done{};
  }

  // "map:NAME.event=EVENT[,...]/": the opening slash is behind us.
  Result<> bindings(EventRequest& request) {
    while (!accept('/')) {
      const std::size_t begin = at_;
      const std::string_view key = until(",/=");
      constexpr std::string_view kMap = "map:", kEvent = ".event";
      if (!key.starts_with(kMap) || !key.ends_with(kEvent) || key.size() <= kMap.size() + kEvent.size()) {
        return wrong(begin, fmt::format("'{}' is not understood; an object takes map:MAP.event=EVENT", key));
      }
      if (!accept('=')) return wrong(at_, fmt::format("the name of an event is missing: {}=EVENT", key));
      const std::string_view event = until(",/");
      if (event.empty()) return wrong(at_, "the name of the event is missing after '='");
      const std::size_t name_size = key.size() - kMap.size() - kEvent.size();
      request.bindings.push_back({std::string(key.substr(kMap.size(), name_size)), std::string(event)});
      if (peek() == '\0') return not_closed();
      accept(',');
    }
    return Done{};
  }

  Error unknown_event(std::size_t at, std::string_view name) const {
    if (std::ranges::find(kHardwareEvents, name) != std::end(kHardwareEvents)) {
      return wrong(
          at,
          fmt::format("hardware events such as '{}' are not supported yet; cpu-clock samples by time", name));
    }
    std::string tail = cli::suggestion(name, software_event_names());
    if (tail.empty())
      tail = "; known: software events such as cpu-clock, SUBSYSTEM:TRACEPOINT, ./PROGRAM.bpf.o";
    return wrong(at, fmt::format("unknown event '{}'{}", name, tail));
  }

  Error unknown_term(std::size_t at, std::string_view name) const {
    std::string tail = cli::suggestion(name, term_names());
    if (tail.empty()) {
      tail = "; known:";
      for (const std::string& known : term_names()) tail += " " + known;
    }
    return wrong(at, fmt::format("unknown term '{}'{}", name, tail));
  }

  Error not_closed() const { return wrong(at_, "the closing '/' is missing"); }

  // Letters are counted from 1, as people count.
  Error wrong(std::size_t at, std::string_view message) const {
    return use_error(fmt::format("-e {}: letter {}: {}", text_, at + 1, message));
  }

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
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<EventRequest>> parse_events(std::string_view text) { return Parser(text).events(); }

std::vector<std::string> software_event_names() {
  std::vector<std::string> names;
  for (const SoftwareEvent& event : kSoftwareEvents) names.emplace_back(event.name);
  return names;
}

}  // namespace tacho::record
