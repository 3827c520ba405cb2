// Demangles C++, Rust (legacy and v0) and OCaml names into the form that perf shows: without parameters,
// return types, or the hash of a legacy Rust name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "tsl/robin_map.h"

namespace tacho::symbolize {

enum class NameForm : std::uint8_t {
  Short,       // as perf
  Parameters,  // with parameters
  Whole,       // as addr2line -C: with parameters, and return types of templates
};

// Whether the name has the form of a mangled one. Most names are C's, and have not.
bool may_be_mangled(std::string_view name);

// Nothing: `name` is not mangled, or its readable form would exceed 64 KiB.
std::optional<std::string> demangle(std::string_view name, NameForm form = NameForm::Short);

// Caches demangled names.
class Demangler {
 public:
  explicit Demangler(NameForm form = NameForm::Short) : form_(form) {}
  // The readable form, or `name` itself. `name` must outlive the demangler; the result lives as long as it.
  std::string_view shown(std::string_view name);

 private:
  NameForm form_;
  // Key: the address of a name's bytes, since names of a symbol table do not move.
  struct Name {
    const char* data;
    std::size_t size;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const noexcept {
      return (reinterpret_cast<std::uintptr_t>(name.data) ^ name.size) * 0x9E3779B97F4A7C15 >> 16;
    }
  };
  tsl::robin_map<Name, std::string_view, NameHash> seen_;
  std::deque<std::string> texts_;
};

}  // namespace tacho::symbolize
