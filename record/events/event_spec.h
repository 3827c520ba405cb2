// Parser of -e, in perf's language: groups, terms, modifiers, probes, BPF objects. PMUs are looked up in
// sysfs here; whether a tracepoint or a map exists is checked later.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_names.h"
#include "record/events/event_request.h"

namespace tacho::record {

// One term between the slashes after an event's name: "period=1000", or "no-inherit".
struct TermText {
  std::string_view name, value;
  bool has_value = false;
};

// Sets a term that every event accepts; nullopt: no such term.
std::optional<Result<>> set_general_term(EventRequest& request, const TermText& term);
// Sets a term of a PMU: a field, or a named event; nullopt: no such term.
std::optional<Result<>> set_pmu_term(EventRequest& request, const Pmu& pmu, const TermText& term);
std::vector<std::string> general_term_names();

// A decimal number, or a hexadecimal one with 0x.
std::optional<std::uint64_t> number_in(std::string_view text);
// "r1a8": the number after the letter is hexadecimal, without 0x.
std::optional<std::uint64_t> raw_number(std::string_view word);

// The first wrong letter, and why.
struct LetterError {
  std::size_t at = 0;
  std::string what;
};
enum class Modify { Event, Group };  // modifiers of a group are added to those of its events
std::optional<LetterError> set_modifiers(EventRequest& request, std::string_view letters, Modify what);
// Whether all letters are modifiers.
bool are_modifiers(std::string_view letters);

// A hint for a syntax error in `text` at column `at`, after an object's terms: in "open/path=/etc/" the first
// slash of the value closes the terms. Empty: the error has another cause.
std::string hint_at(const EventRequest& object, std::string_view text, std::size_t at);

// Parses the text of -e:
// "cycles:u,{faults,cs}:S,sched:sched_switch,cpu/event=0x3c/,./prog.bpf.o/map:channel.event=evt/". An error
// has the column of the first wrong character.
Result<std::vector<EventRequest>> parse_events(std::string_view text, const Pmus& pmus = Pmus());

}  // namespace tacho::record
