// Every address that the samples of a capture hit, with what is known of it here.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "format/extensions/symbol_pack.h"
#include "report/samples/session.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {

struct GatheredSymbols {
  format::SymbolPack pack;
  std::size_t addresses = 0;  // distinct places that samples hit
  std::size_t named = 0;      // of these, with a function
  // The others that a person could have named: by the program or library, which lacks symbols; "" for code
  // made at run time, which lacks a map.
  std::map<std::string, std::size_t> nameless;
  // Of each jitdump the functions that were hit, in place of names in the pack: by its path.
  std::vector<symbolize::JitCode::Reduced> jitdumps;
  std::set<std::string> sources;  // with the level Code: files of the functions, with their folders
};

// Options that packing needs of a session, whatever the user says.
void set_for_gathering(SessionOptions& options);

struct GatherRules {
  format::PackLevel level = format::PackLevel::Inlines;
  // Of the modules that names are read of; may be null. Those that stacks are unwound with go by the
  // session's own.
  symbolize::FileGate* gate = nullptr;
  // Names that were packed already, and those of jitdumps, and no others.
  bool only_packed = false;
};
// Reads the whole capture.
GatheredSymbols gather_symbols(Session& session, const GatherRules& rules);

}  // namespace tacho::report
