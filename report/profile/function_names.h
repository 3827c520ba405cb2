// Names of functions as views show them: perf's short form, without parameters. Where functions of one view
// would have the same name (overloads, specializations, clones), these have their parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/seeded_hash.h"
#include "report/output/text_output.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

// The frame's linker name for FunctionNames. DWARF has none for static functions of C++.
inline std::string_view linker_name_of(const symbolize::Frame& frame) {
  return frame.is_inlined && frame.linker_name == frame.function ? std::string_view() : frame.linker_name;
}

class FunctionNames {
 public:
  enum class Texts : std::uint8_t {
    Stay,    // callers' texts live as long as this object
    Copied,  // they may end before
  };
  explicit FunctionNames(Texts texts) : texts_(texts) {}

  // The number of a name, from 0 up. `name`: the short form. `linker_name`: the mangled one; `name` itself if
  // it is not mangled; empty: unknown, so that no parameters are. Functions whose whole names are equal have
  // one number: the variants C1 and C2 of a constructor, instances of a Rust function with other hashes.
  std::uint32_t number_of(std::string_view name, std::string_view linker_name = {});
  std::size_t size() const { return rows_.size(); }  // the count of numbers
  std::string_view name(std::uint32_t number) const { return rows_[number].name; }
  std::string_view linker_name(std::uint32_t number) const { return rows_[number].linker_name; }

  // The name as it is shown beside all that have numbers now. Lives as long as this object.
  std::string_view shown(std::uint32_t number);

 private:
  struct Row {
    std::string_view name, linker_name;
    std::uint32_t first = 0;  // the first number with this name
  };
  // Of a name that several functions have. Long names may be 64 KiB each, so only shown ones are kept.
  struct Overloads {
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;  // by the hash of the whole name
    bool has_unknown = false;                                  // the parameters of one are not known
    // By the hash of the name with parameters: the count of functions that have it. Empty: to be made anew.
    std::unordered_map<std::uint64_t, std::uint32_t> counts;
    std::unordered_map<std::uint32_t, std::string_view> shown;  // by number
  };
  struct Linker {
    std::string_view name;  // mangled
    std::uint32_t first = 0, number = 0;
  };
  std::uint32_t add_name(std::string_view name, std::string_view linker_name, std::uint32_t first);
  std::uint32_t number_of_overload(std::uint32_t first, std::string_view linker_name);
  std::string_view kept(std::string_view text) { return texts_ == Texts::Stay ? text : store_.keep(text); }

  Texts texts_;
  TextStore store_;
  format::SeededTextHash hash_;
  std::vector<Row> rows_;
  IndexTable<> by_name_;  // first numbers
  std::vector<Linker> linkers_;
  IndexTable<> by_linker_;                                // indexes of linkers_
  std::unordered_map<std::uint32_t, Overloads> several_;  // by first number
};

}  // namespace tacho::report
