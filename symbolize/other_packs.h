// Uses the symbol packs of other captures for programs and libraries with equal build ids.
//
// The kernel and its modules are left out: they are packed by addresses of one boot, and each capture has its
// own pack of them. Only addresses that the other capture hit have names, because a pack does not know where
// functions end.
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
#include "symbolize/name_source.h"
#include "symbolize/packed_names.h"

namespace tacho::symbolize {

class OtherPacks {
 public:
  // The section of a capture that is called `name` in messages. All must be added before one is asked for. Of
  // an address that several have, the first one's names stay.
  Result<> add(const std::string& name, format::Bytes section);
  // What was left out, and why: a line for each section of which something was.
  const std::vector<std::string>& omissions() const { return omissions_; }
  // Null: nothing of it was packed. As long as this.
  PackedSource* find(const Module& module);
  // What others have of the module's path under another build id: "; other.data has the names of build id
  // 0123...".
  std::string other_build_of(const Module& module) const;

 private:
  struct Merged {
    format::PackedModule module;
    std::optional<PackedSource> source;
  };
  // False: the names have another form than the present ones, and are left out.
  bool merge(Merged& to, const format::PackedModule& from, const format::PackTexts& texts);

  format::PackTexts texts_;
  std::map<std::pair<ModuleKind, format::BuildId>, Merged> modules_;
  std::vector<std::string> omissions_;
  std::map<std::string, std::string, std::less<>> by_path_;  // what stands in messages
};

}  // namespace tacho::symbolize
