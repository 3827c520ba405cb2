// Declarations of tacho/event.h in an object's BTF: payload schemas, channels, alternatives.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"

namespace tacho::bpf {

struct Alternative {
  std::string program;
  std::string group;
  std::string set;  // as declared, else the program's name
};

// A global variable of the object.
struct Global {
  std::string name;
  bool is_const = false, is_volatile = false;
  // Its members by their full names ("limits.low"); without members, the variable itself.
  format::PayloadSchema layout;
  std::string help;     // HELP(text)
  std::string problem;  // why its type cannot be described; then `layout` is empty

  // Whether a recorder may set it before the program is loaded. The value of a const that is not volatile is
  // compiled into the code.
  bool is_constant() const { return is_const && is_volatile; }
};

// SUMMARY(name, map): the types of the map's key and value; nothing if BTF has none, or the type cannot be
// described. A key or value that is not a struct has one field, "(key)" or "(value)".
struct SummaryTypes {
  std::string event, map;
  std::optional<format::PayloadSchema> key, value;
};

// An unknown word in a declaration of tacho/event.h, such as a misspelled role or event name.
struct UnknownWord {
  std::string declaration;  // "member 'bytes' of 'slow_read': ROLE("valu")"
  std::string word;
  std::string kind;  // "role", "format", "EVENT()", ...
  std::vector<std::string> known;
};

struct Declarations {
  std::vector<format::PayloadSchema> events;  // EVENT(name, type)
  std::vector<SummaryTypes> summaries;
  std::vector<std::pair<std::string, std::string>> channels;  // map, event: EVENT_CHANNEL(event)
  std::vector<Alternative> alternatives;                      // in order of appearance
  std::vector<Global> globals;                                // in sections .rodata, .data and .bss
  std::vector<std::string> problems;  // events whose type cannot be described, and why
  std::vector<UnknownWord> unknown_words;

  const format::PayloadSchema* event(const std::string& name) const;
};

// `btf`: the contents of the section ".BTF". An error if it is not BTF.
Result<Declarations> read_declarations(format::Bytes btf);

}  // namespace tacho::bpf
