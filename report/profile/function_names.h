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

  // The id of a function's name. `name`: the short form. `linker_name`: the mangled one; `name` itself if it
  // is not mangled; empty: unknown, so that no parameters are. Functions whose whole names are equal have one
  // id: the variants C1 and C2 of a constructor, instances of a Rust function with other hashes.
  NameId id_of(std::string_view name, std::string_view linker_name = {});
  Ids<NameId> ids() const { return rows_.ids(); }
  std::size_t size() const { return rows_.size(); }
  std::string_view name(NameId id) const { return rows_[id].name; }
  std::string_view linker_name(NameId id) const { return rows_[id].linker_name; }

  // The name as it is shown beside all that have ids now. Lives as long as this object.
  std::string_view shown(NameId id);

 private:
  struct Row {
    std::string_view name, linker_name;
    NameId first{};  // the first id with this name
  };
  // Of a name that several functions have. Long names may be 64 KiB each, so only shown ones are kept.
  struct Overloads {
    std::unordered_map<std::uint64_t, NameId> ids;  // by the hash of the whole name
    bool has_unknown = false;                       // the parameters of one are not known
    // By the hash of the name with parameters: the count of functions that have it. Empty: to be made anew.
    std::unordered_map<std::uint64_t, std::uint32_t> counts;
    std::unordered_map<NameId, std::string_view> shown;
  };
  struct Linker {
    std::string_view name;  // mangled
    NameId first{}, id{};
  };
  NameId add_name(std::string_view name, std::string_view linker_name, NameId first);
  NameId id_of_overload(NameId first, std::string_view linker_name);
  std::string_view kept(std::string_view text) { return texts_ == Texts::Stay ? text : store_.keep(text); }

  Texts texts_;
  TextStore store_;
  format::SeededTextHash hash_;
  IdVector<NameId, Row> rows_;
  IndexTable<NameId> by_name_;  // the first id of each name
  std::vector<Linker> linkers_;
  IndexTable<> by_linker_;                         // indexes of linkers_
  std::unordered_map<NameId, Overloads> several_;  // by first id
};

}  // namespace tacho::report
