// Symbols from the packs of other captures.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/build_id.h"
#include "symbolize/frame.h"
#include "symbolize/packed_names.h"

namespace tacho::symbolize {

// Uses the symbol packs of other captures for programs and libraries with equal build ids.
//
// Not for the kernel and its modules: their packs have addresses of one boot. Only addresses in samples of
// the other capture have names, since a pack does not have the ends of functions.
class OtherPacks {
 public:
  // Adds the pack of a capture, `name` in messages. Add all before the first look-up. If several have an
  // address, the first one's names are used.
  Result<> add_pack(const std::string& name, format::Bytes section);
  // Messages about what was ignored: one for each pack.
  const std::vector<std::string>& omissions() const { return omissions_; }
  // Null: no pack has the module. Valid as long as this.
  PackedSource* find_source(const Module& module);
  // A hint that a pack has the module's path with another build id: "; other.data has the names of build id
  // 0123...".
  std::string other_build_of(const Module& module) const;

 private:
  struct Merged {
    format::PackedModule module;
    std::optional<PackedSource> source;
  };
  // False: the names have another form than those before, and are ignored.
  bool merge(Merged& to, const format::PackedModule& from, const format::PackTexts& texts);

  format::PackTexts texts_;
  std::map<std::pair<ModuleKind, format::BuildId>, Merged> modules_;
  std::vector<std::string> omissions_;
  std::map<std::string, std::string, std::less<>> by_path_;  // hints for messages
};

}  // namespace tacho::symbolize
